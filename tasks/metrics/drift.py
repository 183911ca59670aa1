"""Intent drift and directional alignment (EYT-Bench section 3.5.2, Eq. 1).

The text of an intent is `<label>: <definition>`, of a pair both on two lines. Per dialogue, drift is the mean
over turns of 1 − cos(gold, predicted), and alignment is Spearman's ρ between turn index and the cosine of the
predicted latent intent with the text of the final intent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from tasks.foundation.stats.ranks import spearman_by_group
from tasks.foundation.tables.types import Language

Encode = Callable[[Sequence[str]], np.ndarray]
EncodeIn = Callable[[Language], Encode | None]
"""How texts of a language are encoded; None where no encoder here knows it."""
FEWEST_TURNS = 3
"""Turns from which an alignment can be told."""
CONSTANT = 1e-9
"""Cosines closer than this are the same."""


def intent_texts(labels: pl.Series, definitions: Mapping[str, str]) -> pl.Series:
    """`<label>: <definition>` of each; the label alone where it has none; null for no label."""
    said = {label: f"{label}: {definition}" for label, definition in definitions.items()}
    return labels.replace_strict(said, default=labels, return_dtype=pl.String)


def pair_texts(one: pl.Series, other: pl.Series) -> pl.Series:
    """Both texts on two lines; null unless both are there."""
    return one + "\n" + other


def encode_texts(texts: Iterable[pl.Series], encode: Encode) -> dict[str, np.ndarray]:
    """Unit vectors (float64) of the distinct texts, encoded in sorted order so that batches do not depend on rows."""
    distinct = sorted({text for each in texts for text in each.unique() if text is not None})
    if not distinct:
        return {}
    return dict(zip(distinct, encode(distinct).astype(np.float64), strict=True))


def compute_turn_drifts(gold: pl.Series, predicted: pl.Series, vectors: Mapping[str, np.ndarray]) -> np.ndarray:
    """1 − cosine of gold and predicted text [turns]: exactly 0 for equal texts, 1 for no (readable) prediction."""
    turns = pl.DataFrame({"gold": gold, "predicted": predicted}, schema={"gold": pl.String, "predicted": pl.String})
    pairs = turns.unique()
    drifts = [_drift(one, other, vectors) for one, other in pairs.iter_rows()]
    found = turns.join(
        pairs.with_columns(pl.Series("drift", drifts, dtype=pl.Float64)),
        on=["gold", "predicted"],
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    return found["drift"].to_numpy()


def _drift(gold: str | None, predicted: str | None, vectors: Mapping[str, np.ndarray]) -> float:
    if gold is None or predicted is None:
        return 1.0
    return 0.0 if gold == predicted else 1.0 - float(vectors[gold] @ vectors[predicted])


def mean_by_conversation(values: np.ndarray, conversation: np.ndarray, conversations: int) -> np.ndarray:
    """Mean of the values [turns] that are not NaN within each conversation [conversations]; NaN without any."""
    known = np.isfinite(values)
    count = np.bincount(conversation[known], minlength=conversations)
    total = np.bincount(conversation[known], weights=values[known], minlength=conversations)
    return np.divide(total, count, out=np.full(conversations, np.nan), where=count > 0)


def alignments(position: np.ndarray, cosine: np.ndarray, conversation: np.ndarray, conversations: int) -> np.ndarray:
    """Spearman's ρ between turn index and cosine of each conversation [conversations]; turns [turns] in any order, and
    without those that have no cosine (NaN).

    NaN with fewer than three turns or a constant series.
    """
    known = np.isfinite(cosine)
    position, cosine, conversation = position[known], cosine[known], conversation[known]
    found = spearman_by_group(position, cosine, conversation, conversations)
    lowest, highest = np.full(conversations, np.inf), np.full(conversations, -np.inf)
    np.minimum.at(lowest, conversation, cosine)
    np.maximum.at(highest, conversation, cosine)
    few = np.bincount(conversation, minlength=conversations) < FEWEST_TURNS
    return np.where(few | (highest - lowest < CONSTANT), np.nan, found)
