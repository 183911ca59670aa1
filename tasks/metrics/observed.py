"""A metric before it is cut into cells: what each unit adds to it; and its value in one cell.

A unit is a conversation (EYT-Bench) or a scored item or interaction (DEMO). Every metric is a formula over
sums of per-unit columns, so a cell is a mask over units, and its interval resamples the units' clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tasks.foundation.stats.bootstrap import FEWEST, Bootstrap, Interval, Part, intervals_of, wilson_interval
from tasks.foundation.stats.sums import Formula, by_cluster, ratio
from tasks.metrics.catalogue import METRICS, NUnit


@dataclass(frozen=True, eq=False)
class Observed:
    """One metric over all units.

    `columns` [units, k] is what `formula` needs, zeros for a unit that has nothing to add. `n`, `unscored` and
    `fault` [units] count, in the metric's own n_unit: what the value rests on, what lacks a readable score,
    what a fault made void. `slice` is the further cut ({"alpha": 0.05}); empty for none.
    """

    metric: str
    columns: np.ndarray
    formula: Formula
    n: np.ndarray
    unscored: np.ndarray
    fault: np.ndarray
    slice: dict[str, object] = field(default_factory=dict)

    def only(self, units: np.ndarray) -> Observed:
        """Only the units chosen by a mask or places."""
        counts = (self.n[units], self.unscored[units], self.fault[units])
        return Observed(self.metric, self.columns[units], self.formula, *counts, self.slice)


def mean_over_units(
    metric: str,
    values: np.ndarray,
    *,
    void: np.ndarray,
    applies: np.ndarray | None = None,
    scale: float = 1.0,
    slice: dict[str, object] | None = None,
) -> Observed:
    """The mean of one value a unit [units], NaN where it has none; void units are counted as faults only.

    A unit without a value is unscored, unless the mask `applies` says that it cannot have one.
    """
    scored = np.isfinite(values) & ~void
    unscored = ~scored & ~void if applies is None else ~scored & ~void & applies
    columns = np.stack([np.where(scored, values, 0.0), scored.astype(float)], axis=1)
    return Observed(metric, columns, ratio(scale), scored, unscored, void, slice or {})


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric's value in one cell.

    `value` is None when the cell has nothing to compute it from; the interval is None besides for fewer than two
    dialogues that count and where all are alike, but for a share of 0 or 1, which has Wilson's of the dialogues. `n`,
    `n_unscored` and `n_fault` count `n_unit`.
    """

    value: float | None
    n: int
    n_unit: NUnit
    n_unscored: int
    n_fault: int
    ci_low: float | None
    ci_high: float | None


def measure(observed: Sequence[Observed], clusters: np.ndarray, bootstrap: Bootstrap) -> list[Measure]:
    """The values of several metrics over the same units; `clusters` [units] are codes of their dialogues."""
    parts = [Part(by_cluster(each.columns, clusters), each.formula) for each in observed]
    intervals = intervals_of(bootstrap.distributions(parts))
    return [_measure(each, clusters, interval) for each, interval in zip(observed, intervals, strict=True)]


def _measure(observed: Observed, clusters: np.ndarray, interval: Interval | None) -> Measure:
    value = observed.formula(observed.columns.sum(axis=0))
    known = bool(np.isfinite(value))
    enough = len(np.unique(clusters[observed.n > 0])) >= FEWEST
    if not known or not enough:
        interval = None
    elif interval is None and METRICS[observed.metric].unit == "share" and value in (0.0, 1.0):
        interval = wilson_interval(float(value), len(np.unique(clusters[observed.n > 0])))
    return Measure(
        value=float(value) if known else None,
        n=int(observed.n.sum()),
        n_unit=METRICS[observed.metric].n_unit,
        n_unscored=int(observed.unscored.sum()),
        n_fault=int(observed.fault.sum()),
        ci_low=None if interval is None else interval.low,
        ci_high=None if interval is None else interval.high,
    )
