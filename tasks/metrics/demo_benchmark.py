"""DEMO: the cells of its scores, comparisons of targets and of judges, and agreement on labels and scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import polars as pl

from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.tables.evaluation import Comparison, Metric, Rank
from tasks.metrics.catalogue import INTERACTION_DIMENSIONS
from tasks.metrics.cells import Breakdown, CellMeasurer
from tasks.metrics.comparison_rows import (
    JudgePair,
    compare_judges,
    compare_targets,
    compare_thinking,
    measure_rank_agreement,
    rank_targets,
)
from tasks.metrics.demo_scores import CRITERIA, compute_demo_metrics, compute_interaction_metrics
from tasks.metrics.demo_study import Read, Study, load_study
from tasks.metrics.label_agreement import Found
from tasks.metrics.observed import Observed, mean_over_units
from tasks.metrics.repeats import measure_variance
from tasks.metrics.score_agreement import Judged, measure_judge_agreement

GROUPS: tuple[Breakdown, ...] = ((), ("language",))
CELLS: tuple[Breakdown, ...] = tuple(("target", *group) for group in GROUPS)
BY_GOAL: tuple[Breakdown, ...] = (("target", "goal_type"), ("target", "language", "goal_type"))
PLAYED: tuple[Breakdown, ...] = (("target", "partner"), ("target", "language", "partner"))
"""Cells of interaction alone: awareness has no partner."""

SCALE = tuple(float(score) for score in range(11))


@dataclass(frozen=True)
class DemoBench:
    """The benchmark of one build. `panel` is the configured one; judges outside it have rows of their own."""

    study: Study
    awareness_scores: pl.DataFrame
    interaction_scores: pl.DataFrame
    panel: tuple[str, ...]
    bootstrap: Bootstrap

    @staticmethod
    def of(read: Read, panel: Sequence[str], bootstrap: Bootstrap) -> DemoBench:
        scores = read("awareness_scores"), read("interaction_scores")
        return DemoBench(load_study(read), *scores, tuple(panel), bootstrap)

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
        panel = self.study.scores(*self.numbers(self.panel))
        scores = compute_demo_metrics(*panel)
        rows = [
            *self.measurer.rows("demo", [*scores, *self.faults()], CELLS),
            *self.measurer.rows("demo", scores, BY_GOAL),
            *self.measurer.rows("demo", compute_interaction_metrics(panel[1]), PLAYED),
            *self.measurer.family_rows("demo", scores, GROUPS, families),
        ]
        for judge in self.judges:
            own = compute_demo_metrics(*self.study.scores(*self.numbers([judge])))
            rows += self.measurer.rows("demo", own, CELLS, judge)
        compared = [
            *compare_targets("demo", self.measurer, scores, GROUPS),
            *compare_judges("demo", self.measurer, list(self._judge_pairs()), GROUPS),
            *compare_thinking("demo", self.measurer, scores, GROUPS, thinking_pairs),
        ]
        return rows, compared, list(rank_targets("demo", self.measurer, scores, GROUPS))

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
