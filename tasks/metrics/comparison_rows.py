"""Rows of `comparisons`: every target against the best, and every two judges on the same target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.foundation.tables.results import Comparison
from tasks.metrics.catalogue import METRICS
from tasks.metrics.cells import Breakdown, Cutter
from tasks.metrics.compare import Difference, Side, best_of, corrected, paired_differences
from tasks.metrics.observed import Observed

Benchmark = Literal["demo", "eyt"]


@dataclass(frozen=True, eq=False)
class JudgePair:
    """Two judges' metrics over the units, each from only those judgements that both gave."""

    judge_a: str
    judge_b: str
    metrics_a: Sequence[Observed]
    metrics_b: Sequence[Observed]


def target_comparisons(
    benchmark: Benchmark, cutter: Cutter, observed: Sequence[Observed], groups: Sequence[Breakdown]
) -> Iterator[Comparison]:
    """Each metric that has a better end, in each cell of the groups: the best target against every other."""
    compared = [each for each in observed if METRICS[each.metric].better is not None]
    for key, mask in cutter.units.cells(groups):
        members = members_of(cutter, mask)
        measured = {target: cutter.measure(compared, _mask(places, len(mask))) for target, places in members.items()}
        for place, each in enumerate(compared):
            values = {target: found[place].value for target, found in measured.items()}
            best = best_of(each.metric, values)
            if best is None:
                continue
            sides = _sides(each, members, cutter)
            others = [target for target in sorted(values) if target != best and values[target] is not None]
            found = paired_differences([(sides[best], sides[other]) for other in others], cutter.bootstrap)
            for other, difference, p_holm in zip(others, found, corrected(found), strict=True):
                yield _row(benchmark, each.metric, key, (best, other), (None, None), difference, p_holm)


def judge_comparisons(
    benchmark: Benchmark, cutter: Cutter, pairs: Sequence[JudgePair], groups: Sequence[Breakdown]
) -> Iterator[Comparison]:
    """Each metric that has a better end, for each target: judge a's value less judge b's on the same judgements.

    Holm's correction is over the targets of one metric and cell.
    """
    for pair in pairs:
        for key, mask in cutter.units.cells(groups):
            members = members_of(cutter, mask)
            for a, b in zip(pair.metrics_a, pair.metrics_b, strict=True):
                if METRICS[a.metric].better is None:
                    continue
                sides_a, sides_b = _sides(a, members, cutter), _sides(b, members, cutter)
                found = paired_differences([(sides_a[target], sides_b[target]) for target in members], cutter.bootstrap)
                judges = (pair.judge_a, pair.judge_b)
                for target, difference, p_holm in zip(members, found, corrected(found), strict=True):
                    if difference.difference is not None:
                        yield _row(benchmark, a.metric, key, (target, target), judges, difference, p_holm)


def _sides(observed: Observed, members: Mapping[str, np.ndarray], cutter: Cutter) -> dict[str, Side]:
    """Each target's side of a comparison, over the clusters of all of them."""
    clusters = cutter.units.clusters
    present = np.unique(np.concatenate([clusters[places] for places in members.values()]))
    return {
        target: Side.of(observed.only(places), np.searchsorted(present, clusters[places]), len(present))
        for target, places in members.items()
    }


def _mask(places: np.ndarray, size: int) -> np.ndarray:
    mask = np.zeros(size, dtype=bool)
    mask[places] = True
    return mask


def members_of(cutter: Cutter, mask: np.ndarray) -> dict[str, np.ndarray]:
    """The places of each target's units within a mask; targets without any are left out."""
    found = {target: np.nonzero(cutter.units.where({"target": target}) & mask)[0] for target in _targets(cutter)}
    return {target: places for target, places in found.items() if len(places)}


def _targets(cutter: Cutter) -> list[str]:
    return cutter.units.values("target")


def _row(
    benchmark: Benchmark,
    metric: str,
    key: Mapping[str, str],
    targets: tuple[str, str],
    judges: tuple[str | None, str | None],
    found: Difference,
    p_holm: float | None,
) -> Comparison:
    return Comparison(
        benchmark=benchmark,
        metric=metric,
        pool=key.get("pool"),
        language=key.get("language"),
        target_a=targets[0],
        target_b=targets[1],
        judge_a=judges[0],
        judge_b=judges[1],
        difference=found.difference,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        p=found.p,
        p_holm=p_holm,
        n=found.n,
    )
