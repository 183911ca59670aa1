"""DEMO: the cells of its scores, comparisons of targets and of judges, and agreement on labels and scores."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import polars as pl

from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.tables.evaluation import Comparison, Metric, Rank
from tasks.metrics.catalogue import INTERACTION_DIMENSIONS
from tasks.metrics.cells import Breakdown, CellMeasurer
from tasks.metrics.comparison_rows import (
    Comparer,
    JudgePair,
    measure_rank_agreement,
)
from tasks.metrics.demo_scores import CRITERIA, compute_demo_metrics
from tasks.metrics.demo_study import Read, Study, Tried, load_study
from tasks.metrics.label_agreement import Found
from tasks.metrics.observed import Observed, mean_over_units
from tasks.metrics.panel import find_common_judges, judges_by_target
from tasks.metrics.repeats import measure_variance
from tasks.metrics.score_agreement import Judged, measure_judge_agreement

log = logging.getLogger(__name__)

GROUPS: tuple[Breakdown, ...] = ((), ("language",))
CELLS: tuple[Breakdown, ...] = tuple(("target", *group) for group in GROUPS)
BY_GOAL: tuple[Breakdown, ...] = (("target", "goal_type"), ("target", "language", "goal_type"))
PLAYED: tuple[Breakdown, ...] = (("target", "partner"), ("target", "language", "partner"))
"""Cells of interaction alone: awareness has no partner."""

OF_INTERACTION = (*INTERACTION_DIMENSIONS, "interaction")
SCALE = tuple(float(score) for score in range(11))


@dataclass(frozen=True)
class DemoBench:
    """The benchmark of one build. `panel` is the configured one; judges outside it have rows of their own."""

    study: Study
    awareness_scores: pl.DataFrame
    interaction_scores: pl.DataFrame
    panel: tuple[str, ...]
    primary: tuple[str, ...]
    bootstrap: Bootstrap

    @staticmethod
    def of(
        read: Read, panel: Sequence[str], primary: Sequence[str], bootstrap: Bootstrap, tried: Tried = lambda table: ()
    ) -> DemoBench:
        """`tried`: the targets that a table's stage has run for, those too of whom it has no row."""
        scores = read("awareness_scores"), read("interaction_scores")
        return DemoBench(load_study(read, tried), *scores, tuple(panel), tuple(primary), bootstrap)

    @cached_property
    def judges(self) -> tuple[str, ...]:
        """Every judge that has judged, sorted."""
        return tuple(sorted({*self.awareness_scores["judge"], *self.interaction_scores["judge"]}))

    @cached_property
    def measurer(self) -> CellMeasurer:
        return CellMeasurer(self.study.units, self.bootstrap)

    def numbers(self, judges: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Awareness [predictions, judges, 2] and interaction [interactions, judges, 4], NaN where unscored."""
        awareness = self.study.awareness_numbers(self.awareness_scores, judges)
        return awareness, self.study.interaction_numbers(self.interaction_scores, judges)

    def metrics_and_comparisons(
        self, thinking_pairs: Sequence[tuple[str, str]], families: Mapping[str, str]
    ) -> tuple[list[Metric], list[Comparison], list[Rank]]:
        """Every row of the three tables; `families` by target."""
        if not len(self.study.units):
            return [], [], []
        scores = self.scores(self.panel)
        rows = [
            *self.measurer.rows("demo", [*scores, *self.faults()], CELLS),
            *self.measurer.rows("demo", scores, BY_GOAL),
            *self.measurer.rows("demo", [each for each in scores if each.metric in OF_INTERACTION], PLAYED),
            *self.measurer.family_rows("demo", scores, GROUPS, families),
        ]
        for judge in self.judges:
            rows += self.measurer.rows("demo", self.scores([judge]), CELLS, judge)
        comparer = Comparer("demo", self.measurer, self.primary)
        observed = self.compared(scores)
        compared = [
            *comparer.compare_targets(observed, GROUPS),
            *comparer.compare_judges(list(self._judge_pairs()), GROUPS),
            *comparer.compare_all(observed, GROUPS),
            *comparer.compare_pairs("thinking", observed, GROUPS, thinking_pairs),
        ]
        return rows, compared, list(comparer.rank_targets(observed, GROUPS))

    def scores(self, judges: Sequence[str], targets: Collection[str] | None = None) -> list[Observed]:
        """The scores of a panel; with `targets`, of no others."""
        numbers = self.numbers(judges)
        seen = np.concatenate([np.isfinite(cube).any(axis=2) for cube in numbers])
        if targets is not None:
            others = ~np.isin(self.study.units.keys["target"].astype(str), sorted(targets))
            for cube, part in zip(numbers, np.split(others, [len(numbers[0])]), strict=True):
                cube[part] = np.nan
        found = compute_demo_metrics(*self.study.scores(*numbers))
        return [replace(each, panel=tuple(judges), judged=seen) for each in found]

    def compared(self, scores: Sequence[Observed]) -> Sequence[Observed]:
        """The scores as targets are compared by them: where judges of the panel lack some target, by the judges that
        have judged all."""
        judged, targets = scores[0].judged, self.study.units.keys["target"]
        assert judged is not None, "scores say who has judged"
        void = np.concatenate([self.study.predictions["void"].to_numpy(), self.study.interactions["void"].to_numpy()])
        by_target = judges_by_target(judged, ~void, targets, self.panel)
        judges, compared = find_common_judges(self.panel, by_target)
        if judges == self.panel and compared == by_target.keys():
            return scores
        log.warning(
            "targets are compared by the judgements of %s alone, the judges of the panel that have judged %s",
            *(", ".join(judges), ", ".join(sorted(compared))),
        )
        return [replace(each, partly=True) for each in self.scores(judges, compared)]

    def faults(self) -> list[Observed]:
        """Shares of the interactions that a fault made void, and, of the others, that the target's own fault ended."""
        before = np.full(len(self.study.predictions), np.nan)
        played = np.zeros(len(before), dtype=bool)
        void = self.study.interactions["void"].to_numpy()
        target = (self.study.interactions["fault"] == "target").fill_null(False).to_numpy()
        there = np.concatenate([played, np.ones(len(void), dtype=bool)])

        def share(metric: str, values: np.ndarray, left_out: np.ndarray) -> Observed:
            everything = np.concatenate([before, values.astype(float)])
            return mean_over_units(metric, everything, void=np.concatenate([played, left_out]), applies=there)

        return [share("void_share", void, np.zeros_like(void)), share("target_fault_share", target, void)]

    def _judge_pairs(self) -> Iterator[JudgePair]:
        awareness, interaction = self.numbers(self.judges)
        for a, b in combinations(range(len(self.judges)), 2):
            sides = (
                compute_demo_metrics(
                    *self.study.scores(_shared(awareness, one, other), _shared(interaction, one, other))
                )
                for one, other in ((a, b), (b, a))
            )
            yield JudgePair(self.judges[a], self.judges[b], *sides)

    def judge_agreement(self) -> Iterator[Found]:
        """Of judges with one another, by criterion and dimension."""
        if len(self.judges) < 2:
            return
        awareness, interaction = self.numbers(self.judges)
        clusters = self.study.units.clusters
        first = len(self.study.predictions)
        things = [Judged(name, awareness[:, :, place], clusters[:first], SCALE) for place, name in enumerate(CRITERIA)]
        things += [
            Judged(name, interaction[:, :, place], clusters[first:], SCALE)
            for place, name in enumerate(INTERACTION_DIMENSIONS)
        ]
        for thing in things:
            yield from measure_judge_agreement(thing, self.judges, self.bootstrap)
        yield from measure_rank_agreement(self.measurer, list(self._judge_pairs()), GROUPS)

    def variance(self) -> Iterator[Found]:
        """Where the differences between answers, and between interactions, come from, as the panel scores them."""
        if not self.judges:
            return
        awareness, interaction = self.numbers(self.panel)
        first = len(self.study.predictions)
        for cube, names, places in (
            (awareness, CRITERIA, slice(0, first)),
            (interaction, INTERACTION_DIMENSIONS, slice(first, None)),
        ):
            for place, name in enumerate(names):
                scores = cube[:, :, place]
                yield from measure_variance(name, scores, self.panel, self.study.units, places, self.bootstrap)


def _shared(cube: np.ndarray, one: int, other: int) -> np.ndarray:
    """What judge `one` gave where `other` gave something too: [units, judges, k] → [units, 1, k]."""
    both = np.isfinite(cube[:, one]) & np.isfinite(cube[:, other])
    return np.where(both, cube[:, one], np.nan)[:, None]
