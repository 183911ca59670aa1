"""Targets compared with the best, and judges with one another: paired on the same dialogues.

Both sides meet the same resamples of the dialogues that both have; what only one has (a void conversation)
is no part of the difference. p is corrected after Holm over the comparisons of one metric and cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.foundation.stats.bootstrap import Bootstrap, interval_of, two_sided_p
from tasks.foundation.stats.multiplicity import holm
from tasks.metrics.catalogue import METRICS
from tasks.metrics.observed import Observed


@dataclass(frozen=True, slots=True)
class Difference:
    """a − b over the `n` dialogues that both have; None where not computable (no shared dialogue; for interval
    and p also one dialogue, or differences that are all equal)."""

    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    n: int


def paired_difference(
    a: Observed, clusters_a: np.ndarray, b: Observed, clusters_b: np.ndarray, clusters: int, bootstrap: Bootstrap
) -> Difference:
    """The difference of one metric between two sets of units; cluster codes are below `clusters`."""
    sums_a, n_a = _by_code(a, clusters_a, clusters)
    sums_b, n_b = _by_code(b, clusters_b, clusters)
    shared = (n_a > 0) & (n_b > 0)
    sums_a, sums_b, n = sums_a[shared], sums_b[shared], int(shared.sum())
    value = float(a.formula(sums_a.sum(axis=0)) - b.formula(sums_b.sum(axis=0)))
    if not np.isfinite(value):
        return Difference(None, None, None, None, n)
    distribution = bootstrap.distribution(sums_a, a.formula) - bootstrap.distribution(sums_b, b.formula)
    interval = interval_of(distribution)
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return Difference(value, low, high, two_sided_p(distribution), n)


def best_of(metric: str, values: Mapping[str, float | None]) -> str | None:
    """The target with the best value, the first by name of several; None when there is none or no end is better."""
    better = METRICS[metric].better
    known = {target: value for target, value in values.items() if value is not None}
    if better is None or not known:
        return None
    sign = -1 if better == "high" else 1
    return min(known, key=lambda target: (sign * known[target], target))


def against_best(
    observed: Observed,
    values: Mapping[str, float | None],
    members: Mapping[str, np.ndarray],
    clusters: np.ndarray,
    bootstrap: Bootstrap,
) -> tuple[str, dict[str, Difference]] | None:
    """The best target and its difference to every other that has a value, by name.

    `members` gives each target's units (places), `clusters` [units] their codes. None when nobody is best.
    """
    best = best_of(observed.metric, values)
    if best is None:
        return None
    size = int(clusters.max(initial=-1)) + 1
    others = [target for target in sorted(values) if target != best and values[target] is not None]
    mine = members[best]
    return best, {
        other: paired_difference(
            observed.only(mine),
            clusters[mine],
            observed.only(members[other]),
            clusters[members[other]],
            size,
            bootstrap,
        )
        for other in others
    }


def corrected(differences: Sequence[Difference]) -> list[float | None]:
    """Holm's p of each difference, over all of them."""
    return holm([difference.p for difference in differences])


def _by_code(observed: Observed, codes: np.ndarray, clusters: int) -> tuple[np.ndarray, np.ndarray]:
    sums = np.zeros((clusters, observed.columns.shape[1]))
    np.add.at(sums, codes, observed.columns)
    return sums, np.bincount(codes, weights=np.asarray(observed.n, dtype=float), minlength=clusters)
