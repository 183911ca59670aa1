"""Bootstrap clustered by dialogue: seeded, percentile, vectorised (design: uncertainty and comparison).

A resample draws as many clusters as there are, with replacement. Its draw depends on the seed and the
number of clusters only, so two targets on the same dialogues (in the same order) meet the same resamples,
and the difference of their values, resample by resample, is paired.

Fewer than two clusters, or values that no resample can tell apart (all equal), have no interval and no p.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tasks.foundation.ids import seed_of
from tasks.foundation.stats.sums import Formula

CONFIDENCE = 0.95
SAME = 1e-12
"""Resampled values closer than this (relative) are equal: what differs is only the order of summing."""


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """How uncertainty is found: the number of resamples and the seed of their draw."""

    resamples: int
    seed: int

    def counts(self, clusters: int) -> np.ndarray:
        """How often each resample drew each cluster: float64 [resamples, clusters], rows summing to `clusters`."""
        return _counts(clusters, self.resamples, self.seed)

    def distribution(self, sums: np.ndarray, formula: Formula) -> np.ndarray:
        """The formula's value in every resample of the clusters of `sums` [clusters, k]; NaN where undefined."""
        if len(sums) < 2:
            return np.full(self.resamples, np.nan)
        return formula(self.counts(len(sums)) @ sums)

    def interval(self, sums: np.ndarray, formula: Formula) -> Interval | None:
        """The 95 % percentile interval; None for fewer than two clusters and for all-equal input."""
        return interval_of(self.distribution(sums, formula))


def interval_of(distribution: np.ndarray) -> Interval | None:
    """The central 95 % of the defined values; None when there are none or all are equal."""
    values = _varying(distribution)
    if values is None:
        return None
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(values, [tail, 100 - tail])
    return Interval(float(low), float(high))


def two_sided_p(distribution: np.ndarray) -> float | None:
    """p of "no difference" from resampled differences: 2 · (the smaller tail beyond 0, + 1) / (resamples + 1),
    at most 1, so never 0. None when no value is defined or all are equal."""
    values = _varying(distribution)
    if values is None:
        return None
    tail = min(int((values <= 0).sum()), int((values >= 0).sum()))
    return min(1.0, 2 * (tail + 1) / (len(values) + 1))


def _varying(distribution: np.ndarray) -> np.ndarray | None:
    values = distribution[np.isfinite(distribution)]
    if len(values) == 0:
        return None
    spread = float(np.ptp(values))
    return None if spread <= SAME * max(1.0, float(np.abs(values).max())) else values


@lru_cache(maxsize=4)
def _counts(clusters: int, resamples: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed_of(seed, "bootstrap", clusters))
    drawn = generator.integers(0, clusters, size=(resamples, clusters))
    flat = (drawn + clusters * np.arange(resamples)[:, None]).ravel()
    counts = np.bincount(flat, minlength=resamples * clusters).reshape(resamples, clusters).astype(float)
    counts.setflags(write=False)
    return counts
