"""Bootstrap clustered by dialogue: seeded, percentile, vectorised (design: uncertainty and comparison).

A resample draws as many clusters as there are, with replacement. Its draw depends on the seed and the
number of clusters only, so two targets on the same dialogues (in the same order) meet the same resamples,
and the difference of their values, resample by resample, is paired. A dialogue that adds nothing to a value
(void, unscored) is drawn all the same, which keeps the resamples of all targets the same.

Fewer than two clusters, or values that no resample can tell apart (all equal), have no interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tasks.foundation.ids import seed_of
from tasks.foundation.stats.sums import Formula

CONFIDENCE = 0.95
_TAILS = [50 * (1 - CONFIDENCE), 100 - 50 * (1 - CONFIDENCE)]
FEWEST = 2
"""Clusters from which there is anything to resample."""
SAME = 1e-12
"""Resampled values closer than this (relative) are equal: what differs is only the order of summing."""
NOTHING = 1e-9
"""Differences smaller than this (relative to what differs, and never to less than 1) are 0, for the same reason."""


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Part:
    """What is resampled: columns summed by cluster [clusters, k], and the formula of the value."""

    sums: np.ndarray
    formula: Formula


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """How uncertainty is found: the number of resamples and the seed of their draw."""

    resamples: int
    seed: int

    def counts(self, clusters: int) -> np.ndarray:
        """How often each resample drew each cluster: float64 [resamples, clusters], rows summing to `clusters`."""
        return _counts(clusters, self.resamples, self.seed)

    def distributions(self, parts: Sequence[Part]) -> list[np.ndarray]:
        """Each part's value in every resample [resamples], NaN where undefined; parts share their clusters.

        One matrix product for all of them.
        """
        if not parts or not self.resamples or len(parts[0].sums) < FEWEST:
            return [np.full(self.resamples, np.nan) for _ in parts]
        summed = self.counts(len(parts[0].sums)) @ np.concatenate([part.sums for part in parts], axis=1)
        edges = np.cumsum([part.sums.shape[1] for part in parts])[:-1]
        resampled = np.split(summed, edges, axis=1)
        return [part.formula(sums) for part, sums in zip(parts, resampled, strict=True)]

    def interval(self, sums: np.ndarray, formula: Formula) -> Interval | None:
        """The 95 % percentile interval; None for fewer than two clusters and for all-equal input."""
        return intervals_of(self.distributions([Part(sums, formula)]))[0]


def intervals_of(distributions: Sequence[np.ndarray]) -> list[Interval | None]:
    """The central 95 % of the defined values of each; None where there are none or all are equal."""
    if not distributions or not len(distributions[0]):
        return [None] * len(distributions)
    table = np.stack(distributions)
    with np.errstate(invalid="ignore"):
        whole = np.isfinite(table).all(axis=1)
    ends = np.full((len(table), 2), np.nan)
    ends[whole] = np.percentile(table[whole], _TAILS, axis=1).T
    for place in np.nonzero(~whole)[0]:
        values = table[place][np.isfinite(table[place])]
        ends[place] = np.percentile(values, _TAILS) if len(values) else np.nan
    return [
        None if _varying(values) is None else Interval(float(low), float(high))
        for values, (low, high) in zip(table, ends, strict=True)
    ]


def wilson_interval(share: float, n: int) -> Interval:
    """Wilson's 95 % interval of a share of `n` dialogues: for a share of 0 or 1, whose resamples are all alike."""
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(share * n, n, alpha=1 - CONFIDENCE, method="wilson")
    return Interval(float(low), float(high))


def differences(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """`one` less `other`, resample by resample, and exactly 0 where only rounding sets them apart."""
    found = one - other
    with np.errstate(invalid="ignore"):
        found[np.abs(found) <= NOTHING * np.maximum(1.0, np.maximum(np.abs(one), np.abs(other)))] = 0.0
    return found


def two_sided_p(distribution: np.ndarray) -> float | None:
    """p of "no difference" from resampled differences: 2 · (the smaller tail beyond 0, 0 included, + 1) /
    (resamples + 1), at most 1, so never 0. None when no value is defined."""
    values = distribution[np.isfinite(distribution)]
    if not len(values):
        return None
    tail = min(int((values <= 0).sum()), int((values >= 0).sum()))
    return min(1.0, 2 * (tail + 1) / (len(values) + 1))


def _varying(distribution: np.ndarray) -> np.ndarray | None:
    values = distribution[np.isfinite(distribution)]
    if len(values) == 0:
        return None
    spread = float(np.ptp(values))
    return None if spread <= SAME * max(1.0, float(np.abs(values).max())) else values


@lru_cache(maxsize=8)
def _counts(clusters: int, resamples: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed_of(seed, "bootstrap", clusters))
    drawn = generator.integers(0, clusters, size=(resamples, clusters))
    flat = (drawn + clusters * np.arange(resamples)[:, None]).ravel()
    counts = np.bincount(flat, minlength=resamples * clusters).reshape(resamples, clusters).astype(float)
    counts.setflags(write=False)
    return counts
