"""Two sides of a comparison: paired on the same dialogues, or on different ones.

Paired (two targets, two judges), both sides meet the same resamples of dialogues, with what both sides have of each
(the same items, episodes or seeds); what only one has (the other's was void) is no part of the difference. Over several
pools it is the plain mean of the differences in those pools of which both have something. Unpaired (one target on two
persona pools), all dialogues of both are resampled together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.foundation.stats.bootstrap import (
    FEWEST,
    Bootstrap,
    Cut,
    Design,
    Part,
    differences,
    effects_of,
    intervals_of,
    share_equal,
    spread,
    two_sided_ps,
    values_of,
    widening,
)
from tasks.foundation.stats.sums import Formula, sum_rows
from tasks.metrics.catalogue import METRICS
from tasks.metrics.observed import Observed


@dataclass(frozen=True, slots=True)
class Difference:
    """a − b over `n` dialogues: those that both sides have, or, unpaired, those of both together. None where not
    computable: a side without any; for interval and p also a side of one dialogue; for the interval also differences
    that are the same in all resamples."""

    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    n: int


@dataclass(frozen=True, eq=False)
class ComparisonSide:
    """One side of a comparison: a metric's columns and counts summed by dialogue, [clusters, k] and [clusters]; and
    what the columns hardly differ from."""

    sums: np.ndarray
    n: np.ndarray
    formula: Formula
    cut: Cut | None = None

    @staticmethod
    def of(observed: Observed, places: np.ndarray, clusters: np.ndarray, size: int) -> ComparisonSide:
        """Over the units of `observed` at some places, whose cluster codes [places] are below `size`."""
        sums = sum_rows(observed.columns[places], clusters, size)
        n = np.bincount(clusters, weights=np.asarray(observed.n[places], dtype=float), minlength=size)
        return ComparisonSide(sums, n, observed.formula)

    def where(self, mask: np.ndarray) -> ComparisonSide:
        """With only the dialogues of a mask [clusters]."""
        if not self.n[~mask].any() and not self.sums[~mask].any():
            return self
        return ComparisonSide(self.sums * mask[:, None], self.n * mask, self.formula)

    @property
    def dialogues(self) -> int:
        """How many it has something of."""
        return int((self.n > 0).sum())


@dataclass(frozen=True, eq=False)
class Paired:
    """Pairs of sides, each over the dialogues that both have, and their differences: `whole` [pairs], and in every
    resample `resampled` [resamples, pairs]. NaN where not defined. `effects` [clusters, pairs]: what each dialogue adds
    to a difference; `by` [pairs]: how much further the resampled ones have to lie because dialogues share characters.
    `dialogues` [pairs] that the differences rest on; `enough` [pairs]: two or more, and of each pool."""

    whole: np.ndarray
    resampled: np.ndarray
    effects: np.ndarray
    by: np.ndarray
    dialogues: np.ndarray
    enough: np.ndarray

    @staticmethod
    def of(
        pairs: Sequence[tuple[ComparisonSide, ComparisonSide]], bootstrap: Bootstrap, design: Design | None = None
    ) -> Paired:
        """All sides have the same clusters, which lie as `design` says."""
        if not pairs:
            none, effects = np.zeros(0), np.zeros((0 if design is None else len(design.strata), 0))
            return Paired(none, np.zeros((bootstrap.resamples, 0)), effects, none, none.astype(int), none.astype(bool))
        design = design or Design.simple(len(pairs[0][0].n))
        parts, counted = [], []
        for a, b in pairs:
            both = (a.n > 0) & (b.n > 0)
            counted.append(np.bincount(design.strata[both], minlength=len(design.rows)))
            pools = np.nonzero(counted[-1])[0].tolist()
            shared = (side.where(both) for side in (a, b))
            parts += [Part(side.sums, side.formula, pools, side.cut) for side in shared]
        parts = share_equal(parts)
        different = {id(part): part for part in parts}
        places = {part: place for place, part in enumerate(different)}
        one, other = np.array([places[id(part)] for part in parts]).reshape(-1, 2).T
        parts = list(different.values())
        whole, resampled = values_of(parts, design), np.stack(bootstrap.distributions(parts, design))
        found, drawn = differences(whole[one], whole[other]), differences(resampled[one], resampled[other]).T
        added = effects_of(parts, design)
        effects = added[:, one] - added[:, other]
        dialogues = np.array([int(each.sum()) for each in counted])
        enough = np.array([each.any() and int(each[each > 0].min()) >= FEWEST for each in counted])
        return Paired(found, drawn, effects, widening(effects, design), dialogues, enough)

    def measure(self) -> list[Difference]:
        """Each difference by itself, with its interval and p."""
        drawn = spread(self.resampled, self.whole, self.by)
        return _differences(self.whole, drawn.T, self.dialogues, self.enough)


def paired_differences(
    pairs: Sequence[tuple[ComparisonSide, ComparisonSide]], bootstrap: Bootstrap, design: Design | None = None
) -> list[Difference]:
    """The difference of each pair, over the dialogues that both of the pair have."""
    return Paired.of(pairs, bootstrap, design).measure()


def unpaired_differences(
    pairs: Sequence[tuple[ComparisonSide, ComparisonSide]], bootstrap: Bootstrap
) -> list[Difference]:
    """The difference of each pair, each side over the dialogues it has."""
    resampled = bootstrap.distributions([Part(side.sums, side.formula) for pair in pairs for side in pair])
    if not pairs:
        return []
    wholes = np.array([float(side.formula(side.sums.sum(axis=0))) for pair in pairs for side in pair])
    drawn = np.stack(resampled)
    return _differences(
        differences(wholes[0::2], wholes[1::2]),
        differences(drawn[0::2], drawn[1::2]),
        np.array([((a.n > 0) | (b.n > 0)).sum() for a, b in pairs]),
        np.array([min(a.dialogues, b.dialogues) >= FEWEST for a, b in pairs]),
    )


def _differences(whole: np.ndarray, drawn: np.ndarray, n: np.ndarray, enough: np.ndarray) -> list[Difference]:
    """Each difference [k] with the interval and p of its resampled ones [k, resamples]."""
    known = np.isfinite(whole)
    told = known & enough
    return [
        Difference(
            float(whole[place]) if known[place] else None,
            interval.low if interval and told[place] else None,
            interval.high if interval and told[place] else None,
            p if told[place] else None,
            int(n[place]),
        )
        for place, (interval, p) in enumerate(zip(intervals_of(list(drawn)), two_sided_ps(drawn), strict=True))
    ]


def find_best(metric: str, values: Mapping[str, float | None]) -> str | None:
    """The target with the best value, the first by name of several; None when there is none or no end is better."""
    better = METRICS[metric].better
    known = {target: value for target, value in values.items() if value is not None}
    if better is None or not known:
        return None
    sign = -1 if better == "high" else 1
    return min(known, key=lambda target: (sign * known[target], target))
