"""Rows of `comparisons`: the best target against every other, two judges on one target, a model that thinks against
the same one that does not, and one target on two persona pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from tasks.foundation.tables.results import Comparison, ComparisonKind
from tasks.metrics.catalogue import METRICS
from tasks.metrics.cells import Breakdown, Cutter
from tasks.metrics.compare import (
    Difference,
    Side,
    best_of,
    corrected,
    paired_differences,
    unpaired_differences,
)
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
    compared = _comparable(observed)
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
                yield _row("best", benchmark, each.metric, key, (best, other), difference, p_holm)


def thinking_comparisons(
    benchmark: Benchmark,
    cutter: Cutter,
    observed: Sequence[Observed],
    groups: Sequence[Breakdown],
    pairs: Sequence[tuple[str, str]],
) -> Iterator[Comparison]:
    """For each pair (the model that thinks, the same one that does not) of which both are targets: the first less the
    second. Holm's correction is over the pairs of one metric and cell."""
    for key, mask in cutter.units.cells(groups):
        members = members_of(cutter, mask)
        there = [pair for pair in pairs if members.keys() >= set(pair)]
        for each in _comparable(observed) if there else ():
            sides = _sides(each, members, cutter)
            found = paired_differences([(sides[a], sides[b]) for a, b in there], cutter.bootstrap)
            for pair, difference, p_holm in zip(there, found, corrected(found), strict=True):
                if difference.difference is not None:
                    yield _row("thinking", benchmark, each.metric, key, pair, difference, p_holm)


def pool_comparisons(benchmark: Benchmark, cutter: Cutter, observed: Sequence[Observed]) -> Iterator[Comparison]:
    """For every two pools and each target: its value on the first less that on the second, unpaired. Holm's correction
    is over the targets of one metric and two pools."""
    for one, other in combinations(cutter.units.values("pool"), 2):
        members = [members_of(cutter, cutter.units.where({"pool": pool})) for pool in (one, other)]
        targets = sorted(members[0].keys() & members[1].keys())
        on_one, on_other = ({target: each[target] for target in targets} for each in members)
        for each in _comparable(observed):
            sides = _sides_of(each, [*on_one.values(), *on_other.values()], cutter)
            pairs = list(zip(sides[: len(on_one)], sides[len(on_one) :], strict=True))
            found = unpaired_differences(pairs, cutter.bootstrap)
            for target, difference, p_holm in zip(targets, found, corrected(found), strict=True):
                if difference.difference is not None:
                    key = {"pool": one, "pool_b": other}
                    yield _row("pools", benchmark, each.metric, key, (target, target), difference, p_holm)


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
                        yield _row("judges", benchmark, a.metric, key, (target, target), difference, p_holm, judges)


def _comparable(observed: Sequence[Observed]) -> list[Observed]:
    return [each for each in observed if METRICS[each.metric].better is not None]


def _sides(observed: Observed, members: Mapping[str, np.ndarray], cutter: Cutter) -> dict[str, Side]:
    """Each target's side of a comparison, over the clusters of all of them."""
    return dict(zip(members, _sides_of(observed, list(members.values()), cutter), strict=True))


def _sides_of(observed: Observed, several: Sequence[np.ndarray], cutter: Cutter) -> list[Side]:
    """A side for each of some sets of places, over the clusters of all of them."""
    if not several:
        return []
    clusters = cutter.units.clusters
    present = np.unique(np.concatenate([clusters[places] for places in several]))
    return [
        Side.of(observed.only(places), np.searchsorted(present, clusters[places]), len(present)) for places in several
    ]


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
    kind: ComparisonKind,
    benchmark: Benchmark,
    metric: str,
    key: Mapping[str, str],
    targets: tuple[str, str],
    found: Difference,
    p_holm: float | None,
    judges: tuple[str | None, str | None] = (None, None),
) -> Comparison:
    return Comparison(
        kind=kind,
        benchmark=benchmark,
        metric=metric,
        pool=key.get("pool"),
        pool_b=key.get("pool_b"),
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
