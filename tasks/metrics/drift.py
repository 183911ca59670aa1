"""Intent drift and directional alignment (EYT-Bench section 3.5.2, Eq. 1).

The text of an intent is `<label>: <definition>`, of a pair both on two lines. Per dialogue, drift is the mean
over turns of 1 − cos(gold, predicted), and alignment is Spearman's ρ between turn index and the cosine of the
predicted latent intent with the text of the final intent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tasks.foundation.stats.ranks import spearman
from tasks.foundation.tables.types import Language

Encode = Callable[[Sequence[str]], np.ndarray]
EncodeIn = Callable[[Language], Encode | None]
"""How texts of a language are encoded; None where no encoder here knows it."""
FEWEST_TURNS = 3
"""Turns from which an alignment can be told."""
CONSTANT = 1e-9
"""Cosines closer than this are the same."""


def intent_text(label: str | None, definitions: Mapping[str, str]) -> str | None:
    """`<label>: <definition>`; the label alone where it has none; None for no label."""
    if label is None:
        return None
    return f"{label}: {definitions[label]}" if label in definitions else label


def pair_text(one: str | None, other: str | None) -> str | None:
    """Both texts on two lines; None unless both are there."""
    return None if one is None or other is None else f"{one}\n{other}"


def encode_texts(texts: Sequence[str | None], encode: Encode) -> dict[str, np.ndarray]:
    """Unit vectors (float64) of the distinct texts, encoded in sorted order so that batches do not depend on rows."""
    distinct = sorted({text for text in texts if text is not None})
    if not distinct:
        return {}
    return dict(zip(distinct, encode(distinct).astype(np.float64), strict=True))


def compute_turn_drifts(
    gold: Sequence[str | None], predicted: Sequence[str | None], vectors: Mapping[str, np.ndarray]
) -> np.ndarray:
    """1 − cosine of gold and predicted text [turns]: exactly 0 for equal texts, 1 for no (readable) prediction."""
    return np.array([_drift(one, other, vectors) for one, other in zip(gold, predicted, strict=True)], dtype=float)


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


def alignment(position: np.ndarray, cosine: np.ndarray) -> float:
    """Spearman's ρ between turn index and cosine [turns] of one dialogue, turns without a cosine (NaN) left out.

    NaN with fewer than three turns or a constant series.
    """
    known = np.isfinite(cosine)
    if known.sum() < FEWEST_TURNS or np.ptp(cosine[known]) < CONSTANT:
        return np.nan
    found = spearman(position[known], cosine[known])
    return np.nan if found is None else found


def alignments(position: np.ndarray, cosine: np.ndarray, conversation: np.ndarray, conversations: int) -> np.ndarray:
    """Alignment of each conversation [conversations]; turns [turns] in any order."""
    found = np.full(conversations, np.nan)
    order = np.argsort(conversation, kind="stable")
    edges = np.searchsorted(conversation[order], np.arange(conversations + 1))
    for place in range(conversations):
        turns = order[edges[place] : edges[place + 1]]
        found[place] = alignment(position[turns], cosine[turns])
    return found
