"""EYT-Bench: the cells of its metrics, comparisons of targets and of judges, and agreement on its scores."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, islice

import numpy as np
import polars as pl

from tasks.foundation.ids import canonical_json
from tasks.foundation.settings.sections import MetricsSection
from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.tables.evaluation import Comparison, Metric, Rank
from tasks.metrics.alpha_sweep import RankChange, compare_ranks
from tasks.metrics.catalogue import DIMENSION_METRIC, METRICS, SUB_INDICATORS
from tasks.metrics.cells import Breakdown, CellMeasurer, Key
from tasks.metrics.comparison_rows import (
    Comparer,
    JudgePair,
    measure_rank_agreement,
    members_of,
)
from tasks.metrics.eyt_metrics import (
    Trajectory,
    compute_judged_metrics,
    compute_objective_metrics,
    compute_simulator_metrics,
    compute_sliced_metrics,
    compute_sweep_metrics,
)
from tasks.metrics.eyt_study import Read, Study, load_study
from tasks.metrics.label_agreement import Found
from tasks.metrics.observed import Measure, Observed
from tasks.metrics.panel import combine_scores, find_common_judges, judges_by_target
from tasks.metrics.repeats import mean_by_unit, measure_variance
from tasks.metrics.score_agreement import (
    HALVES,
    Judged,
    Rated,
    measure_human_agreement,
    measure_judge_agreement,
    measure_judge_human_agreement,
)
from tasks.metrics.subjective import dimension_scores

log = logging.getLogger(__name__)

GROUPS: tuple[Breakdown, ...] = ((), ("pool",), ("language",), ("pool", "language"))
CELLS: tuple[Breakdown, ...] = tuple(("target", *group) for group in GROUPS)
BY_SIMULATOR: tuple[Breakdown, ...] = (("target", "simulator"), ("target", "pool", "simulator"))
SLICED: tuple[Breakdown, ...] = (("target",), ("target", "pool"))
SWEPT: tuple[Breakdown, ...] = ((), ("pool",))
HEALTH: tuple[Breakdown, ...] = (("simulator",), ("pool", "simulator"))

SLICES_HELD = 24
"""Slices of metrics at once: each is several columns over all conversations."""
SATISFACTION_SCALE = (1.0, 2.0, 3.0, 4.0, 5.0)


@dataclass(frozen=True)
class EytBench:
    """The benchmark of one build. `panel` is the configured one; judges outside it have rows of their own."""

    study: Study
    turn_judgements: pl.DataFrame
    final_judgements: pl.DataFrame
    human_ratings: pl.DataFrame
    panel: tuple[str, ...]
    settings: MetricsSection
    bootstrap: Bootstrap

    @staticmethod
    def of(
        read: Read, panel: Sequence[str], settings: MetricsSection, bootstrap: Bootstrap, tried: Sequence[str] = ()
    ) -> EytBench:
        """`tried`: the targets that conversations were held with, those too of whom none is left."""
        of_turns = read("turn_judgements", columns=("conversation_id", "turn_index", "judge", *SUB_INDICATORS))
        of_ends = read("final_intent_judgements", columns=("conversation_id", "judge", "completed", "satisfaction"))
        study = load_study(read, tried)
        return EytBench(study, of_turns, of_ends, read("human_ratings"), tuple(panel), settings, bootstrap)

    @cached_property
    def judges(self) -> tuple[str, ...]:
        """Every judge that has judged, sorted."""
        return tuple(sorted({*self.turn_judgements["judge"].unique(), *self.final_judgements["judge"].unique()}))

    @cached_property
    def measurer(self) -> CellMeasurer:
        return CellMeasurer(self.study.units, self.bootstrap)

    @property
    def _aside(self) -> CellMeasurer:
        """A measurer for metrics that nothing is compared by: it goes with them."""
        return CellMeasurer(self.study.units, self.bootstrap)

    @cached_property
    def panel_turns(self) -> np.ndarray:
        """The panel's sub-scores [turns, judges, 15]."""
        return self.turn_scores(self.panel)

    def turn_scores(self, judges: Sequence[str]) -> np.ndarray:
        """Sub-scores [turns, judges, 15] of some judges, NaN where unscored."""
        everybody, scores = self._every_score
        return scores[:, [everybody.index(judge) for judge in judges]].astype(float)

    @cached_property
    def _every_score(self) -> tuple[list[str], np.ndarray]:
        """All judges, those of the panel that have not judged too, and their sub-scores in single floats, as stored."""
        everybody = sorted({*self.judges, *self.panel})
        return everybody, self.study.turn_scores(self.turn_judgements, everybody)

    def judged(self, judges: Sequence[str], targets: Collection[str] | None = None) -> list[Observed]:
        """The judged metrics of a panel; with `targets`, of no others."""
        turns = self.turn_scores(judges)
        final, there = self.study.final_scores(self.final_judgements, judges)
        if targets is not None:
            others = ~np.isin(self.study.units.keys["target"].astype(str), sorted(targets))
            turns[others[self.study.conversation]], final[others], there[others] = np.nan, np.nan, False
        seen = self._judged_turns(turns) | there
        found = compute_judged_metrics(self.study, turns, final, there, self.settings)
        return [replace(each, panel=tuple(judges), judged=seen) for each in found]

    def _judged_turns(self, turns: np.ndarray) -> np.ndarray:
        """Which judge has scored some turn of which conversation [conversations, judges]; `turns` as `turn_scores`."""
        found = np.zeros((len(self.study.units), turns.shape[1]), dtype=bool)
        np.logical_or.at(found, self.study.conversation, np.isfinite(turns).any(axis=2))
        return found

    def compared(self, panel: Sequence[Observed]) -> Sequence[Observed]:
        """The judged metrics as targets are compared by them: where judges of the panel lack some target, by the judges
        that have judged all."""
        units, judged = self.study.units, panel[0].judged
        assert judged is not None, "judged metrics say who has judged"
        by_target = judges_by_target(judged, ~self.study.void, units.keys["target"], self.panel)
        judges, targets = find_common_judges(self.panel, by_target)
        if judges == self.panel and targets == by_target.keys():
            return panel
        log.warning(
            "targets are compared by the judgements of %s alone, the judges of the panel that have judged %s",
            *(", ".join(judges), ", ".join(sorted(targets))),
        )
        return [replace(each, partly=True) for each in self.judged(judges, targets)]

    def metrics_and_comparisons(
        self, trajectory: Trajectory, thinking_pairs: Sequence[tuple[str, str]], families: Mapping[str, str]
    ) -> tuple[list[Metric], list[Comparison], list[Rank]]:
        """Every row of the three tables; `families` by target."""
        if not len(self.study.units):
            return [], [], []
        objective = compute_objective_metrics(self.study, trajectory)
        panel = self.judged(self.panel)
        rows = [
            *self.measurer.rows("eyt", [*objective, *panel], (*CELLS, *BY_SIMULATOR)),
            *(row for judge in self.judges for row in self._aside.rows("eyt", self.judged([judge]), CELLS, judge)),
            *self._sliced(trajectory),
            *self.measurer.family_rows("eyt", [*objective, *panel], SWEPT, families),
            *self._sweep(),
            *self._aside.rows("eyt", compute_simulator_metrics(self.study, self.settings.mattr_window), HEALTH),
        ]
        comparer = Comparer("eyt", self.measurer, self.settings.primary.eyt)
        observed = [*objective, *self.compared(panel)]
        compared = [
            *comparer.compare_targets(observed, GROUPS),
            *comparer.compare_judges(list(self._judge_pairs()), GROUPS),
            *comparer.compare_pairs("thinking", observed, GROUPS, thinking_pairs),
            *comparer.compare_pools([*objective, *panel]),
        ]
        ranks, pairs = comparer.rank_and_compare(observed, GROUPS)
        return rows, [*compared, *pairs], ranks

    def _sliced(self, trajectory: Trajectory) -> Iterator[Metric]:
        sliced = iter(compute_sliced_metrics(self.study, trajectory, self.panel_turns, self.settings.panel_rule))
        while some := list(islice(sliced, SLICES_HELD)):
            yield from (row for row in self._aside.rows("eyt", some, SLICED) if row.n or row.n_unscored)

    def _sweep(self) -> Iterator[Metric]:
        """The swept scores, then τ and flips of the targets' rankings within each pool and over all."""
        swept = compute_sweep_metrics(self.study, self.panel_turns, self.settings.panel_rule, self.settings.alpha_sweep)
        measurer = self._aside
        yield from measurer.rows("eyt", swept, SLICED)
        for key, mask in self.study.units.cells(SWEPT):
            for name in DIMENSION_METRIC.values():
                measured = {
                    float(each.slice["alpha"]): self._by_target(each, mask, measurer)  # type: ignore[arg-type]
                    for each in swept
                    if each.metric == f"{name}_weighted"
                }
                for change in compare_ranks({alpha: _values(found) for alpha, found in measured.items()}):
                    yield from _make_rank_rows(name, key, change, list(measured[change.alphas[0]].values()))

    def _by_target(self, observed: Observed, mask: np.ndarray, measurer: CellMeasurer) -> dict[str, Measure]:
        return {
            target: measurer.measure([observed], self.study.units.where({"target": target}) & mask)[0]
            for target in members_of(measurer, mask)
        }

    def _judge_pairs(self) -> Iterator[JudgePair]:
        turns = self.turn_scores(self.judges)
        final, _ = self.study.final_scores(self.final_judgements, self.judges)
        for a, b in combinations(range(len(self.judges)), 2):
            yield JudgePair(
                self.judges[a],
                self.judges[b],
                *(
                    compute_judged_metrics(
                        self.study,
                        _shared(turns, one, other),
                        _shared(final, one, other),
                        np.isfinite(_shared(final, one, other)[:, :, 0]),
                        self.settings,
                    )
                    for one, other in ((a, b), (b, a))
                ),
            )

    def judge_agreement(self) -> Iterator[Found]:
        """Of judges with one another, by dimension, on satisfaction and on the final intent."""
        if len(self.judges) < 2:
            return
        clusters = self.study.units.clusters
        turns = self._dimensions(self.judges)
        final, _ = self.study.final_scores(self.final_judgements, self.judges)
        things = [
            Judged(name, turns[:, :, place], clusters[self.study.conversation], HALVES, 20.0)
            for place, name in enumerate(DIMENSION_METRIC.values())
        ]
        things.append(Judged("satisfaction", final[:, :, 1], clusters, SATISFACTION_SCALE, 25.0))
        things.append(Judged("final_intent", final[:, :, 0], clusters, ()))
        for thing in things:
            yield from measure_judge_agreement(thing, self.judges, self.bootstrap)
        yield from measure_rank_agreement(self.measurer, list(self._judge_pairs()), SWEPT)

    def variance(self) -> Iterator[Found]:
        """Where the differences between conversations come from, as the panel scores them: mean of a dimension over a
        conversation's turns, and satisfaction."""
        if not self.judges:
            return
        units = self.study.units
        turns = self._dimensions(self.panel)
        final, _ = self.study.final_scores(self.final_judgements, self.panel)
        scores = {
            name: mean_by_unit(turns[:, :, place], self.study.conversation, len(units))
            for place, name in enumerate(DIMENSION_METRIC.values())
        }
        for name, given in {**scores, "satisfaction": final[:, :, 1]}.items():
            yield from measure_variance(name, given, self.panel, units, slice(None), self.bootstrap)

    def human_agreement(self) -> Iterator[Found]:
        """Of people with one another on the turns they rated blind."""
        for rated in self._rated():
            yield from measure_human_agreement(rated, self.bootstrap)

    def judge_human_agreement(self) -> Iterator[Found]:
        """Of the panel and each judge with people, on the turns that people rated blind."""
        for rated in self._rated() if self.judges else ():
            yield from measure_judge_human_agreement(rated, self.bootstrap)

    def _dimensions(self, judges: Sequence[str]) -> np.ndarray:
        """Turn scores [turns, judges, 3], 0–5."""
        cube = self.turn_scores(judges)
        return np.stack([dimension_scores(cube[:, place]) for place in range(len(judges))], axis=1)

    def _rated(self) -> Iterator[Rated]:
        """What people rated blind (ratings made after seeing the judge's are left out), a dimension at a time."""
        turns = self.study.turns.select("conversation_id", "turn_index").with_row_index("turn")
        blind = self.human_ratings.filter(~pl.col("saw_judge"))
        ratings = blind.join(turns, on=["conversation_id", "turn_index"], how="inner")
        if ratings.is_empty():
            return
        judges = self._dimensions(self.judges) if self.judges else np.full((len(turns), 0, 3), np.nan)
        scores = combine_scores(self.panel_turns.swapaxes(1, 2), self.settings.panel_rule)
        panel = dimension_scores(scores)
        conversation, units = self.study.conversation, self.study.units
        for place, (dimension, metric) in enumerate(DIMENSION_METRIC.items()):
            rows = ratings.filter(pl.col("dimension") == dimension)
            if rows.is_empty():
                continue
            rated = np.array(sorted(set(rows["turn"])), dtype=int)
            people = tuple(sorted(set(rows["annotator"])))
            humans = np.full((len(rated), len(people)), np.nan)
            columns = [people.index(name) for name in rows["annotator"]]
            humans[np.searchsorted(rated, rows["turn"].to_numpy()), columns] = rows["score"].to_numpy()
            yield Rated(
                metric,
                humans,
                people,
                judges[rated][:, :, place],
                self.judges,
                panel[rated, place],
                self.panel,
                self.study.position[rated],
                units.keys["target"][conversation[rated]],
                units.clusters[conversation[rated]],
            )


def _shared(cube: np.ndarray, one: int, other: int) -> np.ndarray:
    """What judge `one` gave where `other` gave something too: [..., judges, k] → [..., 1, k]."""
    both = np.isfinite(cube[:, one]) & np.isfinite(cube[:, other])
    return np.where(both, cube[:, one], np.nan)[:, None]


def _values(found: Mapping[str, Measure]) -> dict[str, float]:
    return {target: one.value for target, one in found.items() if one.value is not None}


def _make_rank_rows(name: str, key: Key, change: RankChange, ranked: Sequence[Measure]) -> Iterator[Metric]:
    flips = [list(pair) for pair in change.flips]
    cut: dict[str, object] = {"alpha": list(change.alphas)}
    yield _make_rank_row(f"{name}_rank_tau", key, cut, change.tau, ranked)
    can_flip = sum(one.value is not None for one in ranked) > 1
    value = float(len(flips)) if can_flip else None
    yield _make_rank_row(f"{name}_rank_flips", key, {**cut, "flips": flips}, value, ranked)


def _make_rank_row(
    metric: str, key: Key, cut: dict[str, object], value: float | None, ranked: Sequence[Measure]
) -> Metric:
    """What the ranking rests on is what the scores of all its targets rest on."""
    kind = METRICS[metric]
    return Metric(
        benchmark="eyt",
        pool=key.get("pool"),
        language=None,
        target=None,
        simulator=None,
        judge=None,
        partner=None,
        goal_type=None,
        slice=canonical_json(cut),
        metric=metric,
        value=value,
        n=sum(one.n for one in ranked),
        n_unit=kind.n_unit,
        n_unscored=sum(one.n_unscored for one in ranked),
        n_fault=sum(one.n_fault for one in ranked),
        ci_low=None,
        ci_high=None,
        units=sum(one.units for one in ranked),
        units_void=sum(one.units_void for one in ranked),
        worst_low=None,
        worst_high=None,
        absent_judges=sorted({judge for one in ranked for judge in one.absent}),
        widened=None,
        unit=kind.unit,
    )
