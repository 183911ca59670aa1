"""Every metric of EYT-Bench over the conversations of a study, before it is cut into cells."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl

from tasks.foundation.settings.sections import MetricsSection
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.types import HeldRows
from tasks.foundation.texts.languages import language_of
from tasks.metrics.accuracy import accuracy, label_f1, unreadable_share
from tasks.metrics.catalogue import LABELS
from tasks.metrics.completion import compute_completion_metrics, satisfaction
from tasks.metrics.drift import (
    FEWEST_TURNS,
    EncodeIn,
    alignments,
    compute_turn_drifts,
    encode_texts,
    intent_texts,
    mean_by_conversation,
    pair_texts,
)
from tasks.metrics.eyt_study import Study
from tasks.metrics.observed import Observed, mean_over_units
from tasks.metrics.panel import Rule, combine_scores
from tasks.metrics.simulator_health import compute_health_metrics
from tasks.metrics.subjective import compute_subjective_metrics, unweighted_by_turn, weighted_by_alpha

TAXONOMY = {"explicit": "explicit_intent", "latent": "latent_intent"}

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Trajectory:
    """How the predicted intents lie to the gold ones and to the final intent, by turn.

    `drifts` by kind (latent, explicit, pair) [turns], NaN where infrastructure took the prediction; `near`, the
    cosine of the predicted latent intent with the final intent [turns], NaN where either is missing.
    """

    drifts: Mapping[str, np.ndarray]
    near: np.ndarray


def compute_objective_metrics(study: Study, trajectory: Trajectory) -> list[Observed]:
    """What needs no judge: labels, drift, alignment, length, faults."""
    nothing = np.zeros(len(study.void), dtype=bool)
    length = study.conversations["t_actual"].to_numpy().astype(float)
    found = []
    for label in LABELS:
        gold, predicted = study.gold(label), study.predicted(label)
        found.append(accuracy(f"{label}_accuracy", gold == predicted, study.counted))
        found.append(label_f1(f"{label}_macro_f1", gold, predicted, study.counted))
    found.append(unreadable_share(study.unreadable, study.counted))
    found += compute_trajectory_metrics(study, trajectory)
    found.append(mean_over_units("t_actual", length, void=study.void))
    found.append(mean_over_units("void_share", study.void.astype(float), void=nothing))
    found.append(mean_over_units("target_fault_share", study.target_fault.astype(float), void=study.void))
    return found


def compute_trajectory_metrics(study: Study, trajectory: Trajectory) -> list[Observed]:
    """The three drifts and the alignment; a prediction lost to infrastructure is no turn of theirs."""
    found = []
    for name, drifts in trajectory.drifts.items():
        values = mean_by_conversation(drifts, study.conversation, len(study.void))
        found.append(mean_over_units(f"drift_{name}", values, void=study.void))
    values = alignments(study.position, trajectory.near, study.conversation, len(study.void))
    turns, told = (
        np.bincount(study.conversation, weights=weights, minlength=len(study.void))
        for weights in (~study.lost, np.isfinite(trajectory.near))
    )
    unreadable = (turns >= FEWEST_TURNS) & (told < FEWEST_TURNS)  # a short talk or a constant series has no alignment
    return [*found, mean_over_units("alignment", values, void=study.void, applies=unreadable)]


def trajectory_of(study: Study, encode_in: EncodeIn) -> Trajectory:
    """Encodes every label and final intent once."""
    gold, predicted = _texts(study.gold), _texts(study.predicted)
    finals = study.conversations["final_intent"].gather(study.conversation)
    encode = encode_in("en")
    assert encode is not None, "labels and definitions are English"
    english = finals.filter(_in_language(finals, "en"))
    vectors = encode_texts([*gold.values(), *predicted.values(), english], encode)
    drifts = {
        name: np.where(study.lost, np.nan, compute_turn_drifts(gold[name], predicted[name], vectors)) for name in gold
    }
    near = _near_finals(finals, predicted["latent"], vectors, encode_in)
    told = (predicted["latent"].is_not_null() & finals.is_not_null()).to_numpy() & ~study.lost
    return Trajectory(drifts, np.where(told, near, np.nan))


def make_drift_rows(study: Study, trajectory: Trajectory) -> HeldRows:
    """The trajectory, a row a turn."""
    drifts = {f"drift_{name}": values for name, values in trajectory.drifts.items()}
    values = pl.DataFrame({**drifts, "final_intent_cosine": trajectory.near}).fill_nan(None)
    rows = study.turns.select("conversation_id", "turn_index").hstack(values)
    return TABLES["turn_drifts"].holding(rows.to_arrow())


def _near_finals(
    finals: pl.Series, latent: pl.Series, vectors: Mapping[str, np.ndarray], encode_in: EncodeIn
) -> np.ndarray:
    """The cosine of each turn's latent intent with the final intent [turns]; NaN where no encoder here knows both
    languages."""
    near = np.full(len(finals), np.nan)
    for language in LANGUAGES:
        turns = _in_language(finals, language)
        if not turns.any():
            continue
        ends, labels = finals.filter(turns), latent.filter(turns)
        if language == "en":
            near[turns.to_numpy()] = 1 - compute_turn_drifts(ends, labels, vectors)
        elif (encode := encode_in(language)) is not None:
            near[turns.to_numpy()] = 1 - compute_turn_drifts(ends, labels, encode_texts([ends, labels], encode))
        else:
            log.warning("no encoder here knows %s: final intents in it have no alignment", LANGUAGES[language])
    if others := {final for final in finals.unique() if final is not None and _language(final) not in LANGUAGES}:
        log.warning("%d final intents are in no language that an encoder here knows: no alignment", len(others))
    return near


def _in_language(texts: pl.Series, language: str) -> pl.Series:
    """Mask of the texts in a language."""
    return texts.is_in([text for text in texts.unique() if text is not None and _language(text) == language])


@lru_cache(maxsize=8192)  # the same few hundred final intents stand beside every turn
def _language(text: str) -> str | None:
    return language_of(text)


def _texts(side: Callable[[str], np.ndarray]) -> dict[str, pl.Series]:
    """The intent texts of one side by kind of drift: latent, explicit and pair."""
    texts: dict[str, pl.Series] = {}
    for label in ("latent", "explicit"):
        definitions = {one.name: one.definition for one in taxonomy(TAXONOMY[label]).labels}
        texts[label] = intent_texts(pl.Series(label, side(label).tolist(), dtype=pl.String), definitions)
    return {**texts, "pair": pair_texts(texts["explicit"], texts["latent"])}


def compute_judged_metrics(
    study: Study, turn_scores: np.ndarray, final: np.ndarray, judged: np.ndarray, settings: MetricsSection
) -> list[Observed]:
    """What a panel's judgements give: sub-scores [turns, judges, 15], final [conversations, judges, 2] and which
    conversations [conversations, judges] it has rows of."""
    scores = combine_scores(turn_scores.swapaxes(1, 2), settings.panel_rule)
    place = (study.conversation, study.position, study.void)
    return [
        *compute_completion_metrics(final[:, :, 0], np.asarray(judged.any(axis=1)), study.void),
        satisfaction(final[:, :, 1], study.void),
        *compute_subjective_metrics(scores, *place, settings.alpha),
    ]


def compute_sweep_metrics(study: Study, turn_scores: np.ndarray, rule: Rule, alphas: Sequence[float]) -> list[Observed]:
    """The weighted dimensions under every weight of the sweep."""
    scores = combine_scores(turn_scores.swapaxes(1, 2), rule)
    return weighted_by_alpha(scores, study.conversation, study.position, study.void, alphas)


def compute_sliced_metrics(
    study: Study, trajectory: Trajectory, turn_scores: np.ndarray, rule: Rule
) -> Iterator[Observed]:
    """Accuracy by gold label and by turn; drift by turn; the dimensions by turn, early and late."""
    yield from _drifts_by_turn(study, trajectory)
    for label in LABELS:
        gold, metric = study.gold(label), f"{label}_accuracy"
        correct = gold == study.predicted(label)
        for name in sorted(set(gold)):
            yield accuracy(metric, correct, study.counted, gold == name, {"label": name})
        for turn in np.unique(study.position):
            yield accuracy(metric, correct, study.counted, study.position == turn, {"turn": int(turn)})
    scores = combine_scores(turn_scores.swapaxes(1, 2), rule)
    yield from unweighted_by_turn(scores, study.conversation, study.position, study.void)


def _drifts_by_turn(study: Study, trajectory: Trajectory) -> Iterator[Observed]:
    """The latent drift of one turn, over the conversations that have a prediction there."""
    for turn in np.unique(study.position):
        here = study.position == turn
        values = mean_by_conversation(
            np.where(here, trajectory.drifts["latent"], np.nan), study.conversation, len(study.void)
        )
        reached = np.isfinite(values)
        cut: dict[str, object] = {"turn": int(turn)}
        yield mean_over_units("drift_latent", values, void=study.void & reached, applies=reached, slice=cut)


def compute_simulator_metrics(study: Study, window: int) -> list[Observed]:
    """Simulator health over the conversations that were held."""
    conversations = study.conversations
    return compute_health_metrics(
        study.heard,
        stopped_early=(conversations["stop_reason"] == "achieved").to_numpy(),
        simulator_fault=(conversations["fault"] == "simulator").to_numpy(),
        void=study.void,
        missing=~study.present,
        window=window,
    )
