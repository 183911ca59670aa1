"""Rankings compared: Kendall's τ, Spearman's ρ, and which pairs changed places."""

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


def spearman_by_group(x: np.ndarray, y: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
    """Spearman's ρ of the two series [n] within each group [groups]; `group` [n] in any order. NaN for a group of fewer
    than two and where either series is constant. scipy has it for one group at a time; tests hold the two against each
    other."""
    size = np.bincount(group, minlength=groups)
    middle = (size + 1) / 2
    a, b = (_rank_within(side, group, size) - middle[group] for side in (x, y))
    parts = [np.bincount(group, weights=each, minlength=groups) for each in (a * b, a * a, b * b)]
    spread = np.sqrt(parts[1]) * np.sqrt(parts[2])
    return np.divide(parts[0], spread, out=np.full(groups, np.nan), where=spread > 0)


def _rank_within(values: np.ndarray, group: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Mid-ranks [n], from 1, of the values within their groups, of which each has `size` members."""
    order = np.lexsort((values, group))
    sorted_values, sorted_groups = values[order], group[order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (sorted_values[1:] != sorted_values[:-1]) | (sorted_groups[1:] != sorted_groups[:-1])
    first = np.nonzero(begins)[0]
    last = np.append(first[1:], len(order)) - 1
    before = (np.cumsum(size) - size)[sorted_groups]
    found = np.empty(len(order))
    found[order] = ((first + last) / 2)[np.cumsum(begins) - 1] - before + 1
    return found


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
