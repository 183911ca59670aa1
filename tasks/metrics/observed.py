"""A metric before it is cut into cells: what each unit adds to it; and its value in one cell.

A unit is a conversation (EYT-Bench) or a scored item or interaction (DEMO). Every metric is a formula over
sums of per-unit columns, so a cell is a mask over units, and its interval resamples the units' clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tasks.foundation.stats.bootstrap import (
    FEWEST,
    Bootstrap,
    Design,
    Interval,
    Part,
    intervals_of,
    spread,
    widening,
    wilson_interval,
)
from tasks.foundation.stats.sums import Formula, by_cluster, ratio
from tasks.metrics.catalogue import METRICS, NUnit
from tasks.metrics.panel import PRESENT

MUCH_VOID = 0.05
"""Share of void units above which a score has worst-case bounds."""


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

    panel: tuple[str, ...] = ()
    """The judges that it needs."""
    judged: np.ndarray | None = None
    """Which of them has judged which unit [units, judges]."""
    partly: bool = False
    """The panel here is a part of the configured one: judges that some target lacks are left out."""

    def only(self, units: np.ndarray) -> Observed:
        """Only the units chosen by a mask or places."""
        counts = {name: getattr(self, name)[units] for name in ("columns", "n", "unscored", "fault")}
        return replace(self, **counts, judged=None if self.judged is None else self.judged[units])

    @property
    def there(self) -> np.ndarray:
        """Mask [units] of those that the metric is about, whatever became of them."""
        return (self.n > 0) | (self.unscored > 0) | (self.fault > 0)

    @property
    def void(self) -> np.ndarray:
        """Mask [units] of those of which a fault left nothing."""
        return (self.fault > 0) & (self.n == 0) & (self.unscored == 0)

    @property
    def absent(self) -> tuple[str, ...]:
        """The judges of the panel that have judged fewer than half of the units that are not void."""
        owed = self.there & ~self.void
        if self.judged is None or not owed.any():
            return ()
        shares = self.judged[owed].mean(axis=0)
        return tuple(judge for judge, share in zip(self.panel, shares, strict=True) if share < PRESENT)


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

    `value` is None when the cell, or one of its pools, has nothing to compute it from; the interval is None besides for
    fewer than two dialogues that count (in the cell, or in one of its pools) and where all are alike, but for a share
    of 0 or 1, which has Wilson's of the dialogues. `n`, `n_unscored` and `n_fault` count `n_unit`; `units` and
    `units_void` count units. `worst_low` and `worst_high` are None where few units are void. `widened`: how much wider
    the interval is because dialogues share characters; None: not.
    """

    value: float | None
    n: int
    n_unit: NUnit
    n_unscored: int
    n_fault: int
    ci_low: float | None
    ci_high: float | None
    units: int
    units_void: int
    worst_low: float | None
    worst_high: float | None
    absent: tuple[str, ...]
    widened: float | None


@dataclass(frozen=True, eq=False)
class Sample:
    """Units that metrics are measured over: codes of their dialogues, of the pool of each, and of the characters of
    each dialogue ([units, 2], -1: not known; None: none are shared)."""

    clusters: np.ndarray
    pools: np.ndarray
    characters: np.ndarray | None = None

    @property
    def design(self) -> Design:
        """How its dialogues lie, in the order of their codes."""
        first = np.unique(self.clusters, return_index=True)[1]
        pools = np.unique(self.pools[first], return_inverse=True)[1].ravel()
        return Design(pools, None if self.characters is None else self.characters[first])


def measure(
    observed: Sequence[Observed], clusters: np.ndarray, bootstrap: Bootstrap, sample: Sample | None = None
) -> list[Measure]:
    """The values of several metrics over the same units; `clusters` [units] are codes of their dialogues. With a
    `sample` in several pools a value is the plain mean of the pools' own."""
    sample = sample or Sample(clusters, np.zeros(len(clusters), dtype=int))
    design = sample.design
    pool_of = design.strata[np.unique(clusters, return_inverse=True)[1].ravel()]
    parts = [_part(each, clusters, pool_of) for each in observed]
    effects = [part.effects(design) for part in parts] if design.characters is not None else []
    by = widening(np.stack(effects, axis=1), design) if effects else np.ones(len(parts))
    values = [part.value(design) for part in parts]
    resampled = bootstrap.distributions(parts, design)
    intervals = intervals_of([spread(*each) for each in zip(resampled, values, by, strict=True)])
    return [
        _measure(each, clusters, pool_of, part, design, interval, float(wider))
        for each, part, interval, wider in zip(observed, parts, intervals, by, strict=True)
    ]


def _part(observed: Observed, clusters: np.ndarray, pool_of: np.ndarray) -> Part:
    """A slice (a turn, a gold label) that only some pools have is one of these pools."""
    pools = np.unique(pool_of[observed.n > 0]).tolist() if observed.slice else None
    return Part(by_cluster(observed.columns, clusters), observed.formula, pools)


def _measure(
    observed: Observed,
    clusters: np.ndarray,
    pool_of: np.ndarray,
    part: Part,
    design: Design,
    interval: Interval | None,
    widened: float,
) -> Measure:
    metric, value = METRICS[observed.metric], part.value(design)
    known = bool(np.isfinite(value))
    counted = np.unique(clusters[observed.n > 0], return_index=True)[1]
    of_pools = np.bincount(pool_of[observed.n > 0][counted], minlength=len(design.rows))
    pools = range(len(of_pools)) if part.strata is None else part.strata
    if not known or min((of_pools[pool] for pool in pools), default=0) < FEWEST:
        interval = None
    elif interval is None and metric.unit == "share" and value in (0.0, 1.0):
        interval = wilson_interval(value, len(counted))
    if interval is not None and metric.scale is not None and widened > 1:
        low, high = (min(max(end, metric.scale[0]), metric.scale[1]) for end in (interval.low, interval.high))
        interval = Interval(low, high)
    worst = _worst(observed, pool_of, part, design)
    return Measure(
        value=value if known else None,
        n=int(observed.n.sum()),
        n_unit=metric.n_unit,
        n_unscored=int(observed.unscored.sum()),
        n_fault=int(observed.fault.sum()),
        ci_low=None if interval is None else interval.low,
        ci_high=None if interval is None else interval.high,
        units=int(observed.there.sum()),
        units_void=int(observed.void.sum()),
        worst_low=None if worst is None else worst.low,
        worst_high=None if worst is None else worst.high,
        absent=observed.absent,
        widened=widened if interval is not None and widened > 1 else None,
    )


def _worst(observed: Observed, pool_of: np.ndarray, part: Part, design: Design) -> Interval | None:
    """The value if every void unit had the lowest, and the highest value of the scale, void units weighing as much as
    the others of their pool do on average; None where few are void, nothing counts, or it is no mean on a scale."""
    scale = METRICS[observed.metric].scale
    pools = range(len(design.rows)) if part.strata is None else part.strata
    there, void = (
        np.bincount(pool_of, weights=mask, minlength=len(design.rows)) for mask in (observed.there, observed.void)
    )
    if scale is None or not observed.n.any() or any(not there[pool] for pool in pools):
        return None
    lost = {pool: void[pool] / there[pool] for pool in pools}
    if float(np.mean(list(lost.values()))) <= MUCH_VOID:
        return None
    ends = [0.0, 0.0]
    for pool, share in lost.items():
        own = Part(part.sums, part.formula, (pool,)).value(design) if share < 1 else 0.0
        for side in range(2):
            ends[side] += ((1 - share) * own + share * scale[side]) / len(lost)
    return Interval(*ends) if np.isfinite(ends).all() else None
