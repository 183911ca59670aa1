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
    Design,
    Part,
    differences,
    intervals_of,
    share_equal,
    spread,
    two_sided_p,
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
    """One side of a comparison: a metric's columns and counts summed by dialogue, [clusters, k] and [clusters]."""

    sums: np.ndarray
    n: np.ndarray
    formula: Formula

    @staticmethod
    def of(observed: Observed, places: np.ndarray, clusters: np.ndarray, size: int) -> ComparisonSide:
        """Over the units of `observed` at some places, whose cluster codes [places] are below `size`."""
        sums = sum_rows(observed.columns[places], clusters, size)
        n = np.bincount(clusters, weights=np.asarray(observed.n[places], dtype=float), minlength=size)
        return ComparisonSide(sums, n, observed.formula)

    def where(self, mask: np.ndarray) -> ComparisonSide:
        """With only the dialogues of a mask [clusters]."""
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
            parts += [Part(side.where(both).sums, side.formula, pools) for side in (a, b)]
        parts = share_equal(parts)
        whole = np.array([part.value(design) for part in parts])
        resampled = np.stack(bootstrap.distributions(parts, design), axis=1)
        found, drawn = differences(whole[0::2], whole[1::2]), differences(resampled[:, 0::2], resampled[:, 1::2])
        of_each = {id(part): part.effects(design) for part in {id(part): part for part in parts}.values()}
        added = np.stack([of_each[id(part)] for part in parts], axis=1)
        effects = added[:, 0::2] - added[:, 1::2]
        dialogues = np.array([int(each.sum()) for each in counted])
        enough = np.array([each.any() and int(each[each > 0].min()) >= FEWEST for each in counted])
        return Paired(found, drawn, effects, widening(effects, design), dialogues, enough)

    def measure(self) -> list[Difference]:
        """Each difference by itself, with its interval and p."""
        drawn = spread(self.resampled, self.whole, self.by)
        each = zip(self.whole, drawn.T, self.dialogues, self.enough, strict=True)
        return [_difference(float(whole), drawn, int(n), bool(enough)) for whole, drawn, n, enough in each]


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
    found = []
    for place, (a, b) in enumerate(pairs):
        whole = (np.atleast_1d(side.formula(side.sums.sum(axis=0))) for side in (a, b))
        value = float(differences(*whole)[0])
        distribution = differences(resampled[2 * place], resampled[2 * place + 1])
        enough = min(a.dialogues, b.dialogues) >= FEWEST
        found.append(_difference(value, distribution, int(((a.n > 0) | (b.n > 0)).sum()), enough))
    return found


def _difference(value: float, distribution: np.ndarray, n: int, enough: bool) -> Difference:
    if not np.isfinite(value):
        return Difference(None, None, None, None, n)
    if not enough:
        return Difference(value, None, None, None, n)
    interval, p = intervals_of([distribution])[0], two_sided_p(distribution)
    if interval is None:
        return Difference(value, None, None, p, n)
    return Difference(value, interval.low, interval.high, p, n)


def find_best(metric: str, values: Mapping[str, float | None]) -> str | None:
    """The target with the best value, the first by name of several; None when there is none or no end is better."""
    better = METRICS[metric].better
    known = {target: value for target, value in values.items() if value is not None}
    if better is None or not known:
        return None
    sign = -1 if better == "high" else 1
    return min(known, key=lambda target: (sign * known[target], target))
