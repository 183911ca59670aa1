"""Rows of `comparisons`: the best target against every other, every two on the primary metrics, two judges on one
target, a model that thinks against the same one that does not, and one target on two persona pools; and rows of
`ranks`.

What was named beforehand (`metrics.primary`) is tested: Holm's correction is over the primary metrics of a cell
together, and their ranks hold together. All other metrics are descriptive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from typing import Literal, TypeVar

import numpy as np

from tasks.foundation.stats.agreement import Agreed
from tasks.foundation.stats.bootstrap import Cut, Design, Part, errors_of, intervals_of, resampled_errors
from tasks.foundation.stats.multiplicity import ROUNDING, find_apart, holm, least_holm
from tasks.foundation.stats.ranks import kendall_rows, spearman_rows
from tasks.foundation.tables.evaluation import Comparison, ComparisonKind, Rank
from tasks.metrics.catalogue import METRICS
from tasks.metrics.cells import Breakdown, CellMeasurer
from tasks.metrics.compare import (
    ComparisonSide,
    Difference,
    Paired,
    find_best,
    paired_differences,
    unpaired_differences,
)
from tasks.metrics.label_agreement import Found
from tasks.metrics.observed import Observed

RANK_STATISTICS = {"spearman": spearman_rows, "kendall": kendall_rows}
FEWEST_RANKED = 3
"""Two targets are in the same order, or in the other: no correlation."""

MANY = 40
"""Clusters of which a resample surely draws some that are not among a given quarter."""

Benchmark = Literal["demo", "eyt"]
Result = TypeVar("Result")


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


@dataclass(frozen=True, eq=False)
class Compared:
    """A comparison before its family is complete."""

    metric: str
    targets: tuple[str, str]
    found: Difference
    judges: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Comparer:
    """Compares what a benchmark's targets have done, in cells. `primary`: the metrics that are tested."""

    benchmark: Benchmark
    measurer: CellMeasurer
    primary: Sequence[str]

    def compare_targets(self, observed: Sequence[Observed], groups: Sequence[Breakdown]) -> Iterator[Comparison]:
        """Each metric that has a better end, in each cell of the groups: the best target against every other.

        Where targets met different conditions (another simulator, another protocol), the best of those that have some
        in common against these; so nobody's rank rests on conditions that others never met. A target that has given
        nothing at all is never the best.
        """
        compared = _comparable(observed)
        for key, found in self._each(groups, lambda mask: self._with_best(compared, mask)):
            yield from self._rows("best", key, found)

    def _each(
        self, groups: Sequence[Breakdown], find: Callable[[np.ndarray], Result]
    ) -> Iterator[tuple[Mapping[str, str], Result]]:
        """What is found of each cell of the groups (a mask of units): once, of several that hold the same units."""
        known: dict[bytes, Result] = {}
        for key, mask in self.measurer.units.cells(groups):
            cell = np.packbits(mask).tobytes()
            if cell not in known:
                known[cell] = find(mask)
            yield key, known[cell]

    def _with_best(self, compared: Sequence[Observed], mask: np.ndarray) -> list[Compared]:
        """The best target of a cell with every other, by each metric."""
        members = members_of(self.measurer, mask)
        failed = self.measurer.units.failed(members)
        measured = {
            target: self.measurer.measure(compared, _mask(places, len(mask))) for target, places in members.items()
        }
        alike = _under_like_conditions(members, self.measurer)
        found: list[Compared] = []
        for (place, each), targets in product(enumerate(compared), alike):
            values = {target: measured[target][place].value for target in targets}
            best = find_best(each.metric, {target: values[target] for target in targets if target not in failed})
            if best is None:
                continue
            others = [target for target in targets if target != best and values[target] is not None]
            pairs = [(Arm(each, members[best]), Arm(each, members[other])) for other in others]
            for other, difference in zip(others, _paired(pairs, members, self.measurer), strict=True):
                found.append(Compared(each.metric, (best, other), difference, each.panel if each.partly else ()))
        return found

    def compare_pairs(
        self,
        kind: ComparisonKind,
        observed: Sequence[Observed],
        groups: Sequence[Breakdown],
        pairs: Sequence[tuple[str, str]],
    ) -> Iterator[Comparison]:
        """For each pair (of thinking: the model that thinks, the same one that does not) of which both are targets: the
        first less the second."""

        def find(mask: np.ndarray) -> list[Compared]:
            members = members_of(self.measurer, mask)
            there = [pair for pair in pairs if members.keys() >= set(pair)]
            found: list[Compared] = []
            for each in _comparable(observed) if there else ():
                arms = [(Arm(each, members[a]), Arm(each, members[b])) for a, b in there]
                for pair, difference in zip(there, _paired(arms, members, self.measurer), strict=True):
                    found.append(Compared(each.metric, pair, difference, each.panel if each.partly else ()))
            return found

        for key, found in self._each(groups, find):
            yield from self._rows(kind, key, found)

    def compare_pools(self, observed: Sequence[Observed]) -> Iterator[Comparison]:
        """For every two pools and each target: its value on the first less that on the second, unpaired."""
        for one, other in combinations(self.measurer.units.values("pool"), 2):
            members = [members_of(self.measurer, self.measurer.units.where({"pool": pool})) for pool in (one, other)]
            targets = sorted(members[0].keys() & members[1].keys())
            on_one, on_other = ({target: each[target] for target in targets} for each in members)
            found: list[Compared] = []
            for each in _comparable(observed):
                present = _clusters_of([*on_one.values(), *on_other.values()], self.measurer)
                pairs = [
                    (
                        _side(Arm(each, on_one[target]), present, self.measurer),
                        _side(Arm(each, on_other[target]), present, self.measurer),
                    )
                    for target in targets
                ]
                for target, difference in zip(
                    targets, unpaired_differences(pairs, self.measurer.bootstrap), strict=True
                ):
                    found.append(Compared(each.metric, (target, target), difference))
            yield from self._rows("pools", {"pool": one, "pool_b": other}, found)

    def compare_judges(self, pairs: Sequence[JudgePair], groups: Sequence[Breakdown]) -> Iterator[Comparison]:
        """Each metric that has a better end, for each target: judge a's value less judge b's on the same judgements."""

        def find(pair: JudgePair, mask: np.ndarray) -> list[Compared]:
            members = members_of(self.measurer, mask)
            found: list[Compared] = []
            for a, b in zip(pair.metrics_a, pair.metrics_b, strict=True):
                if METRICS[a.metric].better is None:
                    continue
                arms = [(Arm(a, places), Arm(b, places)) for places in members.values()]
                for target, difference in zip(members, _paired(arms, members, self.measurer), strict=True):
                    found.append(Compared(a.metric, (target, target), difference))
            return found

        for pair in pairs:
            for key, found in self._each(groups, partial(find, pair)):
                yield from self._rows("judges", key, found, (pair.judge_a, pair.judge_b))

    def _rows(
        self,
        kind: ComparisonKind,
        key: Mapping[str, str],
        compared: Sequence[Compared],
        judges: tuple[str | None, str | None] = (None, None),
    ) -> Iterator[Comparison]:
        """The rows of one cell, with Holm's correction over those of its primary metrics. What cannot be computed is a
        row only beside the best."""
        there = [each for each in compared if kind == "best" or each.found.difference is not None]
        family = [each for each in there if each.metric in self.primary and kind != "pairs"]
        corrected = holm([each.found.p for each in family])
        p_holm = {id(each): p for each, p in zip(family, corrected, strict=True)}
        tests = sum(each.found.p is not None for each in family)
        for each in there:
            difference, primary = each.found.difference, each.metric in self.primary
            sign = -1.0 if METRICS[each.metric].better == "low" else 1.0
            yield Comparison(
                kind=kind,
                benchmark=self.benchmark,
                metric=each.metric,
                pool=key.get("pool"),
                pool_b=key.get("pool_b"),
                language=key.get("language"),
                target_a=each.targets[0],
                target_b=each.targets[1],
                judge_a=judges[0],
                judge_b=judges[1],
                difference=difference,
                ci_low=each.found.ci_low,
                ci_high=each.found.ci_high,
                p=each.found.p,
                p_holm=p_holm.get(id(each)),
                is_primary=primary,
                p_holm_least=least_holm(tests, self.measurer.bootstrap.resamples) if each in family else None,
                n=each.found.n,
                is_reversed=kind == "best" and difference is not None and sign * difference < -ROUNDING,
                judges=list(each.judges),
                is_apart=None,
            )

    def rank_targets(self, observed: Sequence[Observed], groups: Sequence[Breakdown]) -> Iterator[Rank]:
        """Each target's place by each metric that has a better end, in each cell of the groups, and the places that the
        data leave it. A target that nobody surely beats is in the confidence set of the best, unless it has given
        nothing at all."""
        for key, failed, standing in self.stand(observed, groups):
            yield from self._ranks(key, standing, failed)

    def rank_and_compare(
        self, observed: Sequence[Observed], groups: Sequence[Breakdown]
    ) -> tuple[list[Rank], list[Comparison]]:
        """The ranks, and the pairs of targets that they rest on, those of the primary metrics."""
        ranks, pairs = list[Rank](), list[Comparison]()
        for key, failed, standing in self.stand(observed, groups):
            ranks += self._ranks(key, standing, failed)
            if standing.observed.metric in self.primary:
                pairs += self._pairs(key, standing)
        return ranks, pairs

    def stand(
        self, observed: Sequence[Observed], groups: Sequence[Breakdown]
    ) -> Iterator[tuple[Mapping[str, str], set[str], _Standing]]:
        """How the targets stand to one another by each metric that has a better end, in each cell of the groups: every
        two are compared on what both have done, all pairs of a metric and cell (all those of the primary metrics
        together) with 95 % confidence. Also the targets that have given nothing at all."""
        compared = _comparable(observed)
        families = [[each for each in compared if each.metric in self.primary]]
        families += [[each] for each in compared if each.metric not in self.primary]

        def find(mask: np.ndarray) -> tuple[set[str], list[_Standing]]:
            members = members_of(self.measurer, mask)
            found: list[_Standing] = []
            for targets, family in product(_under_like_conditions(members, self.measurer), families):
                places = {target: members[target] for target in targets}
                standing = [_Standing.of(each, places, self.measurer) for each in family]
                _tell_apart(standing, self.primary, self.measurer)
                found += standing
            return self.measurer.units.failed(members), found

        for key, (failed, found) in self._each(groups, find):
            yield from ((key, failed, each) for each in found)

    def _pairs(self, key: Mapping[str, str], standing: _Standing) -> Iterator[Comparison]:
        """The pairs of a standing that have something in common."""
        judges = standing.observed.panel if standing.observed.partly else ()
        told = {(one.targets): apart for one, apart in standing.told}
        compared = [Compared(one.metric, one.targets, one.found, judges) for one, _ in standing.told]
        for row in self._rows("pairs", key, compared):
            yield row.model_copy(update={"is_apart": told[row.target_a, row.target_b]})

    def _ranks(self, key: Mapping[str, str], standing: _Standing, failed: set[str]) -> Iterator[Rank]:
        metric, values = standing.observed.metric, standing.values
        ahead = {target: standing.sign * value for target, value in values.items()}
        for target in values:
            better, worse = standing.surely[target]
            yield Rank(
                benchmark=self.benchmark,
                metric=metric,
                pool=key.get("pool"),
                language=key.get("language"),
                target=target,
                rank=1 + sum(other - ahead[target] > ROUNDING for other in ahead.values()),
                rank_low=1 + better,
                rank_high=len(values) - worse,
                may_be_best=not better and target not in failed,
                is_primary=metric in self.primary,
                n_targets=len(values),
                judges=list(standing.observed.panel) if standing.observed.partly else [],
            )


@dataclass(eq=False)
class _Standing:
    """The targets of a cell by one metric: their values, and how many others are surely better and worse than each."""

    observed: Observed
    places: Mapping[str, np.ndarray]
    values: dict[str, float]
    surely: dict[str, list[int]]
    told: list[tuple[Compared, bool]]
    """The pairs by a primary metric, each with whether its two are surely not equal."""

    @staticmethod
    def of(observed: Observed, places: Mapping[str, np.ndarray], measurer: CellMeasurer) -> _Standing:
        size = len(measurer.units)
        measured = {
            target: measurer.measure([observed], _mask(where, size))[0].value for target, where in places.items()
        }
        values = {target: value for target, value in measured.items() if value is not None}
        return _Standing(observed, places, values, {target: [0, 0] for target in values}, [])

    @property
    def sign(self) -> float:
        return -1.0 if METRICS[self.observed.metric].better == "low" else 1.0

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return list(combinations(self.values, 2))


def _tell_apart(several: Sequence[_Standing], primary: Sequence[str], measurer: CellMeasurer) -> None:
    """Counts who is surely ahead of whom, all pairs of all these metrics together."""
    paired, errors, drawn_errors = [], [], []
    for each in several:
        present = _clusters_of([each.places[target] for target in each.values], measurer)
        arms = {target: Arm(each.observed, each.places[target]) for target in each.values}
        design = _design(present, measurer)
        sides = _sides([(arms[one], arms[other]) for one, other in each.pairs], present, design, measurer)
        paired.append(Paired.of(sides, measurer.bootstrap, design))
        errors.append(errors_of(paired[-1].effects, design) * paired[-1].by)
        drawn_errors.append(resampled_errors(paired[-1].effects, design, measurer.bootstrap))
    if not sum(len(each.whole) for each in paired):
        return
    whole = np.concatenate([np.where(each.enough, each.whole, np.nan) for each in paired])
    drawn, of_drawn = (np.concatenate(each, axis=1) for each in ([one.resampled for one in paired], drawn_errors))
    apart = iter(find_apart(whole, np.concatenate(errors), drawn, of_drawn))
    for each, differences in zip(several, paired, strict=True):
        surely = [bool(next(apart)) for _ in each.pairs]
        if each.observed.metric in primary:
            compared = zip(each.pairs, differences.measure(), strict=True)
            found = [Compared(each.observed.metric, pair, difference) for pair, difference in compared]
            each.told += zip(found, surely, strict=True)
        for (one, other), difference, differs in zip(each.pairs, differences.whole, surely, strict=True):
            if differs:
                ahead, behind = (one, other) if each.sign * difference > 0 else (other, one)
                each.surely[behind][0] += 1
                each.surely[ahead][1] += 1


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
    present = _clusters_of(list(members.values()), measurer)
    sides = [
        tuple(_side(arm, present, measurer) for arm in _shared(Arm(a, places), Arm(b, places), measurer))
        for places in members.values()
    ]
    judged = [pair for pair in sides if min(side.dialogues for side in pair)]
    if len(judged) < FEWEST_RANKED:
        return
    design = _design(present, measurer)
    parts = [Part(side.sums, side.formula) for pair in judged for side in pair]
    values = np.array([part.value(design) for part in parts])
    resampled = np.stack(measurer.bootstrap.distributions(parts, design))
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
    present = _clusters_of(list(members.values()), measurer)
    design = _design(present, measurer)
    return paired_differences(_sides(pairs, present, design, measurer), measurer.bootstrap, design)


def _sides(
    pairs: Sequence[tuple[Arm, Arm]], present: np.ndarray, design: Design, measurer: CellMeasurer
) -> list[tuple[ComparisonSide, ComparisonSide]]:
    """The two sides of each pair, each over what both have, and told as what is left of all that its arm has."""
    tasks, n_tasks = measurer.units.tasks, measurer.units.n_tasks
    arms = {id(arm): arm for pair in pairs for arm in pair}
    counted = {one: arm.places[arm.observed.n[arm.places] > 0] for one, arm in arms.items()}
    has = {one: _mask(tasks[places], n_tasks) for one, places in counted.items()}
    wholes = {one: _side(Arm(arm.observed, counted[one]), present, measurer).sums for one, arm in arms.items()}
    sides: dict[tuple[int, int], ComparisonSide] = {}
    differs = {one: np.zeros(len(present), dtype=bool) for one in arms}
    for its, other in ((id(one), id(other)) for pair in pairs for one, other in (pair, pair[::-1])):
        places = counted[its][has[other][tasks[counted[its]]]]
        sides[its, other] = _side(Arm(arms[its].observed, places), present, measurer)
        differs[other] |= (sides[its, other].sums != wholes[its]).any(axis=1)
    rows = {one: _few(np.nonzero(those)[0], design) for one, those in differs.items()}

    def side(its: int, other: int) -> ComparisonSide:
        found, few = sides[its, other], rows[other]
        return found if few is None else replace(found, cut=Cut(wholes[its], few))

    return [(side(id(one), id(other)), side(id(other), id(one))) for one, other in pairs]


def _few(rows: np.ndarray, design: Design) -> np.ndarray | None:
    """Clusters, if they are few of every stratum: where a resample might draw no others, what is left of a sum that
    ought to be 0 would be rounding."""
    of_each = np.bincount(design.strata[rows], minlength=len(design.rows))
    few = all(not some or (4 * some <= len(all_) >= MANY) for some, all_ in zip(of_each, design.rows, strict=True))
    return rows if few else None


def _shared(one: Arm, other: Arm, measurer: CellMeasurer) -> tuple[Arm, Arm]:
    """Both arms with only those units that count in one and have a counterpart that counts in the other."""
    tasks = measurer.units.tasks
    counted = [arm.places[arm.observed.n[arm.places] > 0] for arm in (one, other)]
    both = np.logical_and(*(_mask(tasks[places], measurer.units.n_tasks) for places in counted))
    left = [places[both[tasks[places]]] for places in counted]
    return Arm(one.observed, left[0]), Arm(other.observed, left[1])


def _side(arm: Arm, present: np.ndarray, measurer: CellMeasurer) -> ComparisonSide:
    """An arm summed over the clusters `present` (codes, ascending)."""
    clusters = np.searchsorted(present, measurer.units.clusters[arm.places])
    return ComparisonSide.of(arm.observed, arm.places, clusters, len(present))


def _clusters_of(several: Sequence[np.ndarray], measurer: CellMeasurer) -> np.ndarray:
    return np.unique(measurer.units.clusters[np.concatenate(several)]) if several else np.empty(0, int)


def _design(present: np.ndarray, measurer: CellMeasurer) -> Design:
    """How the clusters `present` (codes, ascending) lie."""
    units = measurer.units
    return units.sample(units.first_of(present)).design


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
