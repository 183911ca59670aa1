"""DEMO's scores: element awareness, dialogue agent interaction, and both together (DEMO section 2.2, Table 2).

A score is a number 0–10 that one judge gave by one criterion; 10 is best, for hallucination too. Every average
is the plain mean over all scored numbers, so a task with more items weighs more: with 4,000 items × 2 criteria
and 1,000 episodes × 4 dimensions, `overall_pooled` is (2 · awareness + interaction) / 3, which is what Table 2
prints. `overall_mean` is the plain mean of the two averages, which is what its caption says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.foundation.stats.sums import Formula, mean_of_means, quotient, ratio
from tasks.metrics.catalogue import AWARENESS_TASKS, INTERACTION_DIMENSIONS
from tasks.metrics.observed import Observed

CRITERIA = ("accuracy", "hallucination")


@dataclass(frozen=True, eq=False)
class Scores:
    """Sums of a panel's scores by unit and column (a task, or a dimension): all arrays [units, columns].

    `total` and `count` are over the scored numbers, `unscored` counts numbers a judge owes, `fault` numbers
    that there cannot be.
    """

    total: np.ndarray
    count: np.ndarray
    unscored: np.ndarray
    fault: np.ndarray


def collect_scores(numbers: np.ndarray, columns: np.ndarray, width: int, fault: np.ndarray) -> Scores:
    """From numbers [units, judges, criteria], NaN where unscored.

    `columns` [units, criteria] names the column each number belongs to. Units marked in `fault` [units] owe
    no number: all of theirs count as void.
    """
    scored = np.isfinite(numbers) & ~fault[:, None, None]
    judges = numbers.shape[1]
    total, count, unscored, void = (np.zeros((len(numbers), width)) for _ in range(4))
    rows = np.arange(len(numbers))
    for criterion in range(numbers.shape[2]):
        column, given = columns[:, criterion], scored[:, :, criterion]
        total[rows, column] += np.where(given, numbers[:, :, criterion], 0).sum(axis=1)
        count[rows, column] += given.sum(axis=1)
        unscored[rows, column] += np.where(fault, 0, (~given).sum(axis=1))
        void[rows, column] += np.where(fault, judges, 0)
    return Scores(total, count, unscored, void)


def compute_demo_metrics(awareness: Scores, interaction: Scores) -> list[Observed]:
    """All score metrics of DEMO over the same units; awareness has a column a task, interaction one a dimension."""
    found = [_pooled(task, [(awareness, [column])], ratio()) for column, task in enumerate(AWARENESS_TASKS)]
    found.append(_pooled("awareness", [(awareness, None)], ratio()))
    found += compute_interaction_metrics(interaction)
    both = [(awareness, None), (interaction, None)]
    found.append(_pooled("overall_pooled", both, pooled_overall))
    found.append(_pooled("overall_mean", both, mean_of_means(2)))
    return found


def compute_interaction_metrics(interaction: Scores) -> list[Observed]:
    """The four dimensions and their pooled mean."""
    found = [_pooled(name, [(interaction, [column])], ratio()) for column, name in enumerate(INTERACTION_DIMENSIONS)]
    return [*found, _pooled("interaction", [(interaction, None)], ratio())]


def pooled_overall(sums: np.ndarray) -> np.ndarray:
    """Columns [awareness sum, count, interaction sum, count] → the mean over all numbers; NaN when a part has none."""
    both = (sums[..., 1] > 0) & (sums[..., 3] > 0)
    return np.where(both, quotient(sums[..., 0] + sums[..., 2], sums[..., 1] + sums[..., 3]), np.nan)


def _pooled(metric: str, parts: Sequence[tuple[Scores, list[int] | None]], formula: Formula) -> Observed:
    def summed(name: str) -> list[np.ndarray]:
        return [
            (getattr(scores, name) if chosen is None else getattr(scores, name)[:, chosen]).sum(axis=1)
            for scores, chosen in parts
        ]

    totals, counts = summed("total"), summed("count")
    columns = np.stack([column for pair in zip(totals, counts, strict=True) for column in pair], axis=1)
    return Observed(metric, columns, formula, sum(counts), sum(summed("unscored")), sum(summed("fault")))  # type: ignore[arg-type]


def task_columns(tasks: Sequence[str]) -> np.ndarray:
    """The column of each unit's two criteria: both that of its task [units, 2]."""
    place: Mapping[str, int] = {task: column for column, task in enumerate(AWARENESS_TASKS)}
    columns = np.array([place[task] for task in tasks], dtype=int).reshape(-1, 1)
    return np.repeat(columns, len(CRITERIA), axis=1)
