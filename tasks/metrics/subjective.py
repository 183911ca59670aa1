"""The three subjective dimensions (EYT-Bench section 3.5.3, Eqs. 2–4), weighted and not, on 0–100.

A dimension's score of a turn is the sum of its five sub-indicators, 0–5, reported × 20; a sub-indicator is
reported × 20 too, so that the five add up to the dimension's unweighted score. A turn with an unscored
sub-indicator is unscored in its dimension; it drops out and the weights of the others are rescaled. A
dialogue with more than half its turns unscored leaves the cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.foundation.stats.sums import difference
from tasks.foundation.stats.turn_weights import turn_weights
from tasks.metrics.catalogue import DIMENSION_METRIC, SUB_INDICATORS
from tasks.metrics.observed import Observed, mean_over_units

SCALE = 20.0
EARLY = 2
"""Turns that are early."""


@dataclass(frozen=True, eq=False)
class ScoredTurns:
    """One score a turn [turns], NaN where unscored, with its conversation and 1-based position there.

    `void` [conversations]: conversations that a fault made void.
    """

    scores: np.ndarray
    conversation: np.ndarray
    position: np.ndarray
    void: np.ndarray

    @property
    def scored(self) -> np.ndarray:
        return np.isfinite(self.scores)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Values [turns] summed by conversation, unscored turns left out."""
        kept = self.scored
        weights = np.broadcast_to(values, self.scores.shape)[kept].astype(float)
        return np.bincount(self.conversation[kept], weights=weights, minlength=len(self.void))

    @property
    def lengths(self) -> np.ndarray:
        """Turns of each conversation, scored or not."""
        return np.bincount(self.conversation, minlength=len(self.void))

    @property
    def stays(self) -> np.ndarray:
        """Mask [conversations]: at least half of its turns (and one) are scored."""
        scored = self.sums(np.ones(1))
        return (scored > 0) & (2 * (self.lengths - scored) <= self.lengths)

    def means(self, weights: np.ndarray) -> np.ndarray:
        """Weighted mean over the scored turns of each conversation that stays; else NaN."""
        total, mass = self.sums(np.where(self.scored, self.scores, 0) * weights), self.sums(weights)
        return np.divide(total, mass, out=np.full(len(self.void), np.nan), where=self.stays & (mass > 0))

    def kept_scores(self) -> np.ndarray:
        """Scores [turns] of the conversations that stay; NaN elsewhere."""
        return np.where(self.stays[self.conversation], self.scores, np.nan)


def dimension_scores(sub_scores: np.ndarray) -> np.ndarray:
    """Sub-scores [turns, 15] → the three dimensions' turn scores [turns, 3], 0–5; NaN where a part is unscored."""
    return sub_scores.reshape(len(sub_scores), len(DIMENSION_METRIC), -1).sum(axis=2)


def weights_of(conversation: np.ndarray, position: np.ndarray, conversations: int, alpha: float) -> np.ndarray:
    """The warm-up weight of every turn [turns], made for its own conversation's length."""
    lengths = np.bincount(conversation, minlength=conversations)
    longest = int(lengths.max(initial=0))
    table = np.zeros((longest + 1, longest))
    for length in np.unique(lengths):
        table[length, :length] = turn_weights(int(length), alpha)
    return np.asarray(table[lengths[conversation], position - 1])


def compute_subjective_metrics(
    sub_scores: np.ndarray, conversation: np.ndarray, position: np.ndarray, void: np.ndarray, alpha: float
) -> list[Observed]:
    """Weighted, unweighted, early − late, and the sub-indicators. Sub-scores [turns, 15], NaN where unscored."""
    weights = weights_of(conversation, position, len(void), alpha)
    found: list[Observed] = []
    for name, scores in zip(DIMENSION_METRIC.values(), dimension_scores(sub_scores).T, strict=True):
        turns = ScoredTurns(scores, conversation, position, void)
        found += [
            mean_over_units(f"{name}_weighted", turns.means(weights), void=void, scale=SCALE),
            mean_over_units(f"{name}_unweighted", turns.means(np.ones(len(scores))), void=void, scale=SCALE),
            compare_early_and_late(f"{name}_early_minus_late", turns),
            early_minus_late_pooled(f"{name}_early_minus_late_pooled", turns),
        ]
    for name, scores in zip(SUB_INDICATORS, sub_scores.T, strict=True):
        turns = ScoredTurns(scores, conversation, position, void)
        found.append(mean_over_units(name, turns.means(np.ones(len(scores))), void=void, scale=SCALE))
    return found


def compare_early_and_late(metric: str, turns: ScoredTurns) -> Observed:
    """Per dialogue, the mean of turns 1–2 less the mean of turns ≥ 3, unweighted; over dialogues with both."""
    early = turns.position <= EARLY
    means = [turns.means(part.astype(float)) for part in (early, ~early)]
    long = turns.lengths > EARLY
    return mean_over_units(metric, means[0] - means[1], void=turns.void, applies=long, scale=SCALE)


def early_minus_late_pooled(metric: str, turns: ScoredTurns) -> Observed:
    """The mean over all early turns of a cell less that over all late ones (nearer EYT-Bench Table 8)."""
    early = turns.position <= EARLY
    kept = ScoredTurns(turns.kept_scores(), turns.conversation, turns.position, turns.void)
    scores = np.where(kept.scored, kept.scores, 0)
    columns = [kept.sums(scores * early), kept.sums(early), kept.sums(scores * ~early), kept.sums(~early)]
    usable = np.where(turns.void, 0, 1)
    table = np.stack(columns, axis=1) * usable[:, None]
    n = table[:, 1] + table[:, 3]
    return Observed(
        metric,
        table,
        difference(SCALE),
        n,
        np.where(turns.void, 0, turns.lengths - n),
        np.where(turns.void, np.maximum(turns.lengths, 1), 0),
    )


def weighted_by_alpha(
    sub_scores: np.ndarray,
    conversation: np.ndarray,
    position: np.ndarray,
    void: np.ndarray,
    alphas: Sequence[float],
) -> list[Observed]:
    """The weighted scores under other warm-up weights, as slices {"alpha": …} (EYT-Bench section 4.8)."""
    found: list[Observed] = []
    for alpha in alphas:
        weights = weights_of(conversation, position, len(void), alpha)
        for name, scores in zip(DIMENSION_METRIC.values(), dimension_scores(sub_scores).T, strict=True):
            means = ScoredTurns(scores, conversation, position, void).means(weights)
            slice: dict[str, object] = {"alpha": alpha}
            found.append(mean_over_units(f"{name}_weighted", means, void=void, scale=SCALE, slice=slice))
    return found


def unweighted_by_turn(
    sub_scores: np.ndarray, conversation: np.ndarray, position: np.ndarray, void: np.ndarray
) -> Iterator[Observed]:
    """The dimensions turn by turn, {"turn": 3}, and early and late, {"part": "early"}: means over dialogues."""
    for name, scores in zip(DIMENSION_METRIC.values(), dimension_scores(sub_scores).T, strict=True):
        turns = ScoredTurns(scores, conversation, position, void)
        for slice, chosen in _cuts(position):
            means = turns.means(chosen.astype(float))
            there = np.bincount(conversation[chosen], minlength=len(void)) > 0
            metric = f"{name}_unweighted"
            yield mean_over_units(metric, means, void=void, applies=there, scale=SCALE, slice=slice)


def _cuts(position: np.ndarray) -> Iterator[tuple[dict[str, object], np.ndarray]]:
    yield {"part": "early"}, position <= EARLY
    yield {"part": "late"}, position > EARLY
    for turn in np.unique(position):
        yield {"turn": int(turn)}, position == turn
