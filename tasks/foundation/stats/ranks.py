"""Rankings compared: Kendall's τ, and which pairs changed places."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

SAME = 1e-9
"""Values closer than this are tied: the difference is one of rounding."""


def kendall_tau(one: Mapping[str, float], other: Mapping[str, float]) -> float | None:
    """τ-b over the names that both have, values within 1e-9 tied; None for fewer than two, or when either ranks all
    alike."""
    from scipy.stats import kendalltau

    names = sorted(one.keys() & other.keys())
    if len(names) < 2:
        return None
    tau = float(kendalltau(*(levels([side[name] for name in names]) for side in (one, other))).statistic)
    return None if math.isnan(tau) else tau


def levels(values: Sequence[float]) -> list[int]:
    """The level of each value, 0 for the lowest; values within 1e-9 of the next lower one share its level.

    >>> levels([0.5, 0.3, 0.5 + 1e-15])
    [1, 0, 1]
    """
    order = np.argsort(values, kind="stable")
    steps = np.diff(np.asarray(values, float)[order]) > SAME
    found = np.zeros(len(values), int)
    found[order[1:]] = np.cumsum(steps)
    return [int(level) for level in found]


def rank_flips(one: Mapping[str, float], other: Mapping[str, float]) -> list[tuple[str, str]]:
    """Every pair of names strictly ordered one way in `one` and strictly the other way in `other`.

    The first of a pair is ahead in `one`; pairs are sorted. A tie (within 1e-9) on either side is no flip.
    """
    flips = []
    for a, b in combinations(sorted(one.keys() & other.keys()), 2):
        before, after = one[a] - one[b], other[a] - other[b]
        if before * after < 0 and min(abs(before), abs(after)) > SAME:
            flips.append((a, b) if before > 0 else (b, a))
    return sorted(flips)


def spearman(x: np.ndarray, y: np.ndarray) -> float | None:
    """Spearman's ρ of two series [n]; None for n < 2 and when either is constant."""
    from scipy.stats import spearmanr

    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(spearmanr(x, y).statistic)


def spearman_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spearman's ρ of each row of two tables [rows, n]; NaN where either row is constant or has a gap."""
    from scipy.stats import rankdata

    ranks = [rankdata(side, axis=1, nan_policy="propagate") for side in (x, y)]
    centred = [side - side.mean(axis=1, keepdims=True) for side in ranks]
    return _correlation(*centred)


def kendall_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Kendall's τ-b of each row of two tables [rows, n], values within 1e-9 tied; NaN as in `spearman_rows`."""
    one, other = np.triu_indices(x.shape[1], 1)
    signs = []
    for side in (x, y):
        apart = side[:, one] - side[:, other]
        signs.append(np.where(np.abs(apart) <= SAME, 0.0, np.sign(apart)))
    return _correlation(*signs)


def _correlation(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Σxy / √(Σx² Σy²) by row; NaN where a side has no spread."""
    spread = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    return np.divide((x * y).sum(axis=1), spread, out=np.full(len(x), np.nan), where=spread > 0)
