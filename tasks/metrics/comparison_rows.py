"""Rows of `comparisons`: the best target against every other, two judges on one target, a model that thinks against
the same one that does not, and one target on two persona pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal

import numpy as np

from tasks.foundation.stats.agreement import Agreed
from tasks.foundation.stats.bootstrap import FEWEST, Part, differences, intervals_of
from tasks.foundation.stats.multiplicity import ROUNDING, find_apart
from tasks.foundation.stats.ranks import kendall_rows, spearman_rows
from tasks.foundation.tables.evaluation import Comparison, ComparisonKind, Rank
from tasks.metrics.catalogue import METRICS
from tasks.metrics.cells import Breakdown, CellMeasurer
from tasks.metrics.compare import (
    ComparisonSide,
    Difference,
    correct_p_values,
    find_best,
    paired_differences,
    unpaired_differences,
)
from tasks.metrics.label_agreement import Found
from tasks.metrics.observed import Observed

RANK_STATISTICS = {"spearman": spearman_rows, "kendall": kendall_rows}
FEWEST_RANKED = 3
"""Two targets are in the same order, or in the other: no correlation."""

Benchmark = Literal["demo", "eyt"]


@dataclass(frozen=True, eq=False)
class JudgePair:
    """Two judges' metrics over the units, each from only those judgements that both gave."""

    judge_a: str
    judge_b: str
    metrics_a: Sequence[Observed]
    metrics_b: Sequence[Observed]


@dataclass(frozen=True, eq=False)
class Arm:
    """One side of a comparison: a metric, and the places of the units it is taken over."""

    observed: Observed
    places: np.ndarray


def compare_targets(
    benchmark: Benchmark, measurer: CellMeasurer, observed: Sequence[Observed], groups: Sequence[Breakdown]
) -> Iterator[Comparison]:
    """Each metric that has a better end, in each cell of the groups: the best target against every other.

    Where targets met different conditions (another simulator, another protocol), the best of those that have some in
    common against these; so nobody's rank rests on conditions that others never met.
    """
    compared = _comparable(observed)
    for key, mask in measurer.units.cells(groups):
        members = members_of(measurer, mask)
        measured = {target: measurer.measure(compared, _mask(places, len(mask))) for target, places in members.items()}
        alike = _under_like_conditions(members, measurer)
        for (place, each), targets in product(enumerate(compared), alike):
            values = {target: measured[target][place].value for target in targets}
            best = find_best(each.metric, values)
            if best is None:
                continue
            others = [target for target in targets if target != best and values[target] is not None]
            pairs = [(Arm(each, members[best]), Arm(each, members[other])) for other in others]
            found = _paired(pairs, members, measurer)
            for other, difference, p_holm in zip(others, found, correct_p_values(found), strict=True):
                yield _row("best", benchmark, each.metric, key, (best, other), difference, p_holm)


def rank_targets(
    benchmark: Benchmark, measurer: CellMeasurer, observed: Sequence[Observed], groups: Sequence[Breakdown]
) -> Iterator[Rank]:
    """Each target's place by each metric that has a better end, in each cell of the groups, and the places that the
    data leave it: every two targets are compared on what both have done, all pairs of a metric and cell together with
    95 % confidence. A target that nobody surely beats is in the confidence set of the best."""
    compared = _comparable(observed)
    for key, mask in measurer.units.cells(groups):
        members = members_of(measurer, mask)
        for targets, each in product(_under_like_conditions(members, measurer), compared):
            sign = -1.0 if METRICS[each.metric].better == "low" else 1.0
            places = {target: members[target] for target in targets}
            values = {
                target: value
                for target in targets
                if (value := measurer.measure([each], _mask(places[target], len(mask)))[0].value) is not None
            }
            ahead = _count_surely_ahead(measurer, each, {target: places[target] for target in values}, sign)
            for target, value in values.items():
                better, worse = ahead[target]
                yield Rank(
                    benchmark=benchmark,
                    metric=each.metric,
                    pool=key.get("pool"),
                    language=key.get("language"),
                    target=target,
                    rank=1 + sum(sign * (other - value) > ROUNDING for other in values.values()),
                    rank_low=1 + better,
                    rank_high=len(values) - worse,
                    may_be_best=not better,
                    n_targets=len(values),
                )


def _count_surely_ahead(
    measurer: CellMeasurer, observed: Observed, members: Mapping[str, np.ndarray], sign: float
) -> dict[str, tuple[int, int]]:
    """By target, how many others are surely better than it, and how many surely worse."""
    pairs = list(combinations(members, 2))
    counts = {target: [0, 0] for target in members}
    if pairs:
        present = _clusters_of(list(members.values()), measurer)
        sides = []
        for one, other in pairs:
            arms = _shared(Arm(observed, members[one]), Arm(observed, members[other]), measurer)
            sides.append([_side(arm, present, measurer) for arm in arms])
        parts = [Part(side.sums, side.formula) for pair in sides for side in pair]
        whole = np.array([float(part.formula(part.sums.sum(axis=0))) for part in parts])
        resampled = np.stack(measurer.bootstrap.distributions(parts), axis=1)
        found = differences(whole[0::2], whole[1::2])
        dialogues = np.array([min(side.dialogues for side in pair) for pair in sides])
        enough = dialogues >= FEWEST
        apart = find_apart(
            np.where(enough, found, np.nan), differences(resampled[:, 0::2], resampled[:, 1::2]), dialogues
        )
        for (one, other), difference, surely in zip(pairs, found, apart, strict=True):
            if surely:
                ahead, behind = (one, other) if sign * difference > 0 else (other, one)
                counts[behind][0] += 1
                counts[ahead][1] += 1
    return {target: (better, worse) for target, (better, worse) in counts.items()}


def compare_thinking(
    benchmark: Benchmark,
    measurer: CellMeasurer,
    observed: Sequence[Observed],
    groups: Sequence[Breakdown],
    pairs: Sequence[tuple[str, str]],
) -> Iterator[Comparison]:
    """For each pair (the model that thinks, the same one that does not) of which both are targets: the first less the
    second. Holm's correction is over the pairs of one metric and cell."""
    for key, mask in measurer.units.cells(groups):
        members = members_of(measurer, mask)
        there = [pair for pair in pairs if members.keys() >= set(pair)]
        for each in _comparable(observed) if there else ():
            found = _paired([(Arm(each, members[a]), Arm(each, members[b])) for a, b in there], members, measurer)
            for pair, difference, p_holm in zip(there, found, correct_p_values(found), strict=True):
                if difference.difference is not None:
                    yield _row("thinking", benchmark, each.metric, key, pair, difference, p_holm)


def compare_pools(benchmark: Benchmark, measurer: CellMeasurer, observed: Sequence[Observed]) -> Iterator[Comparison]:
    """For every two pools and each target: its value on the first less that on the second, unpaired. Holm's correction
    is over the targets of one metric and two pools."""
    for one, other in combinations(measurer.units.values("pool"), 2):
        members = [members_of(measurer, measurer.units.where({"pool": pool})) for pool in (one, other)]
        targets = sorted(members[0].keys() & members[1].keys())
        on_one, on_other = ({target: each[target] for target in targets} for each in members)
        for each in _comparable(observed):
            present = _clusters_of([*on_one.values(), *on_other.values()], measurer)
            pairs = [
                (
                    _side(Arm(each, on_one[target]), present, measurer),
                    _side(Arm(each, on_other[target]), present, measurer),
                )
                for target in targets
            ]
            found = unpaired_differences(pairs, measurer.bootstrap)
            for target, difference, p_holm in zip(targets, found, correct_p_values(found), strict=True):
                if difference.difference is not None:
                    key = {"pool": one, "pool_b": other}
                    yield _row("pools", benchmark, each.metric, key, (target, target), difference, p_holm)


def compare_judges(
    benchmark: Benchmark, measurer: CellMeasurer, pairs: Sequence[JudgePair], groups: Sequence[Breakdown]
) -> Iterator[Comparison]:
    """Each metric that has a better end, for each target: judge a's value less judge b's on the same judgements.

    Holm's correction is over the targets of one metric and cell.
    """
    for pair in pairs:
        for key, mask in measurer.units.cells(groups):
            members = members_of(measurer, mask)
            for a, b in zip(pair.metrics_a, pair.metrics_b, strict=True):
                if METRICS[a.metric].better is None:
                    continue
                found = _paired([(Arm(a, places), Arm(b, places)) for places in members.values()], members, measurer)
                judges = (pair.judge_a, pair.judge_b)
                for target, difference, p_holm in zip(members, found, correct_p_values(found), strict=True):
                    if difference.difference is not None:
                        yield _row("judges", benchmark, a.metric, key, (target, target), difference, p_holm, judges)


def measure_rank_agreement(
    measurer: CellMeasurer, pairs: Sequence[JudgePair], groups: Sequence[Breakdown]
) -> Iterator[Found]:
    """Whether two judges order the targets alike (EYT-Bench Tables 9 and 14): Spearman's ρ and Kendall's τ-b of the
    targets' values under each, on the judgements that both gave, by metric and pool or language; n counts targets.
    The intervals resample the dialogues. Nothing for fewer than `FEWEST_RANKED` targets."""
    for pair in pairs:
        for key, mask in measurer.units.cells(groups):
            members = members_of(measurer, mask)
            for a, b in zip(pair.metrics_a, pair.metrics_b, strict=True):
                if METRICS[a.metric].better is not None:
                    category = ", ".join(["order of targets", a.metric, *key.values()])
                    for agreed in _rank_agreement(measurer, members, a, b):
                        yield Found(category, (pair.judge_a, pair.judge_b), agreed)


def _rank_agreement(
    measurer: CellMeasurer, members: Mapping[str, np.ndarray], a: Observed, b: Observed
) -> Iterator[Agreed]:
    present = _clusters_of(list(members.values()), measurer) if members else np.empty(0, int)
    sides = [
        tuple(_side(arm, present, measurer) for arm in _shared(Arm(a, places), Arm(b, places), measurer))
        for places in members.values()
    ]
    judged = [pair for pair in sides if min(side.dialogues for side in pair)]
    if len(judged) < FEWEST_RANKED:
        return
    parts = [Part(side.sums, side.formula) for pair in judged for side in pair]
    values = np.array([float(part.formula(part.sums.sum(axis=0))) for part in parts])
    resampled = np.stack(measurer.bootstrap.distributions(parts))
    for name, correlate in RANK_STATISTICS.items():
        value = float(correlate(values[None, 0::2], values[None, 1::2])[0])
        known = np.isfinite(value)
        interval = intervals_of([correlate(resampled[0::2].T, resampled[1::2].T)])[0] if known else None
        ends = (interval.low, interval.high) if interval else (None, None)
        yield Agreed(name, value if known else None, len(judged), *ends)


def _under_like_conditions(members: Mapping[str, np.ndarray], measurer: CellMeasurer) -> list[list[str]]:
    """The targets, sorted, in groups that have conditions in common, directly or over others."""
    groups: list[tuple[set[str], list[str]]] = []
    for target, places in members.items():
        met, targets = measurer.units.conditions(places), [target]
        apart = []
        for conditions, others in groups:
            if conditions & met:
                met, targets = met | conditions, targets + others
            else:
                apart.append((conditions, others))
        groups = [*apart, (met, targets)]
    return sorted(sorted(targets) for _, targets in groups)


def _comparable(observed: Sequence[Observed]) -> list[Observed]:
    return [each for each in observed if METRICS[each.metric].better is not None]


def _paired(
    pairs: Sequence[tuple[Arm, Arm]], members: Mapping[str, np.ndarray], measurer: CellMeasurer
) -> list[Difference]:
    """The differences of pairs within a cell, each over what its two arms both have.

    The resamples are over the clusters of all `members`, so that all comparisons of a cell meet the same ones.
    """
    present = _clusters_of(list(members.values()), measurer) if members else np.empty(0, int)
    shared = (_shared(one, other, measurer) for one, other in pairs)
    sides = [(_side(one, present, measurer), _side(other, present, measurer)) for one, other in shared]
    return paired_differences(sides, measurer.bootstrap)


def _shared(one: Arm, other: Arm, measurer: CellMeasurer) -> tuple[Arm, Arm]:
    """Both arms with only those units that count in one and have a counterpart that counts in the other."""
    tasks = measurer.units.tasks
    counted = [arm.places[arm.observed.n[arm.places] > 0] for arm in (one, other)]
    both = np.intersect1d(tasks[counted[0]], tasks[counted[1]])
    left = [places[np.isin(tasks[places], both)] for places in counted]
    return Arm(one.observed, left[0]), Arm(other.observed, left[1])


def _side(arm: Arm, present: np.ndarray, measurer: CellMeasurer) -> ComparisonSide:
    """An arm summed over the clusters `present` (codes, ascending)."""
    clusters = np.searchsorted(present, measurer.units.clusters[arm.places])
    return ComparisonSide.of(arm.observed.only(arm.places), clusters, len(present))


def _clusters_of(several: Sequence[np.ndarray], measurer: CellMeasurer) -> np.ndarray:
    return np.unique(measurer.units.clusters[np.concatenate(several)])


def _mask(places: np.ndarray, size: int) -> np.ndarray:
    mask = np.zeros(size, dtype=bool)
    mask[places] = True
    return mask


def members_of(measurer: CellMeasurer, mask: np.ndarray) -> dict[str, np.ndarray]:
    """The places of each target's units within a mask; targets without any are left out."""
    found = {target: np.nonzero(measurer.units.where({"target": target}) & mask)[0] for target in _targets(measurer)}
    return {target: places for target, places in found.items() if len(places)}


def _targets(measurer: CellMeasurer) -> list[str]:
    return measurer.units.values("target")


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
