"""Where the differences of scores come from: items, simulations of an item, judges, and the rest.

Scores y of item i, its simulation k (drawn anew, so nested in the item) and judge j (crossed with both):
y = mean + item + simulation + judge + rest, each random. The components are the ANOVA (method of moments) estimators of
a balanced layout, negative ones taken as 0. Libraries estimate such models one at a time by iteration; these formulas
are sums over items, so that they can be resampled. What a judge has against single items is in the rest.

With one judge its component cannot be told and the rest is part of the simulations.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tasks.foundation.stats.agreement import Agreed, measure_columns
from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.stats.sums import Formula, quotient

SHARES = ("item_share", "simulation_share", "judge_share", "rest_share")
FEWEST_ITEMS = 3
"""Below that the spread of items tells nothing."""


def split_variance(
    scores: np.ndarray, items: np.ndarray, clusters: np.ndarray, bootstrap: Bootstrap
) -> Iterator[Agreed]:
    """The share of each component, 0–1, of the variance of `scores` [simulations, judges] of `items` [simulations]
    (codes), resampled by cluster; `n` counts items. Nothing for fewer than three items with two simulations.

    Items count that have the usual number of simulations with a score of every judge.
    """
    layout = _balance(scores, items, clusters)
    if layout is None:
        return
    cube, of = layout
    simulations, judges = cube.shape[1:]
    columns = _sum_columns(cube)
    for place, name in enumerate(SHARES):
        if judges > 1 or place < 2:
            formula = share_formula(simulations, judges, place)
            value = float(formula(columns.sum(axis=0)))
            yield measure_columns(name, value, columns, formula, of, bootstrap)


def _balance(scores: np.ndarray, items: np.ndarray, clusters: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Scores [items, simulations, judges] without gaps, and each item's cluster."""
    whole = np.isfinite(scores).all(axis=1) if scores.shape[1] else np.zeros(len(scores), dtype=bool)
    found: dict[int, list[int]] = {}
    for place in np.nonzero(whole)[0]:
        found.setdefault(int(items[place]), []).append(int(place))
    several = [len(places) for places in found.values() if len(places) > 1]
    if not several:
        return None
    usual = max(set(several), key=lambda size: (several.count(size), size))
    kept = [places[:usual] for places in found.values() if len(places) >= usual]
    if len(kept) < FEWEST_ITEMS:
        return None
    return scores[np.array(kept)], clusters[np.array([places[0] for places in kept])]


def _sum_columns(cube: np.ndarray) -> np.ndarray:
    """By item: 1, its mean and that squared, Σ over simulations of squared means, Σ of squares, its mean by judge."""
    mean = cube.mean(axis=(1, 2))
    by_simulation = (cube.mean(axis=2) ** 2).sum(axis=1)
    squares = (cube**2).sum(axis=(1, 2))
    return np.column_stack([np.ones(len(cube)), mean, mean**2, by_simulation, squares, cube.mean(axis=1)])


def share_formula(simulations: int, judges: int, component: int) -> Formula:
    """Sums of the columns above [..., 5 + judges] → the share of one component (place in `SHARES`)."""

    def formula(sums: np.ndarray) -> np.ndarray:
        n, total, squared, by_simulation, squares = np.moveaxis(sums[..., :5], -1, 0)
        mean = quotient(total, n)
        per_judge = quotient(sums[..., 5:], n[..., None])
        size = simulations * judges
        of_items = size * (squared - n * mean**2)
        of_simulations = judges * by_simulation - size * squared
        of_judges = n * simulations * ((per_judge**2).sum(axis=-1) - judges * mean**2)
        of_rest = squares - n * size * mean**2 - of_items - of_simulations - of_judges
        item = quotient(of_items, n - 1)
        simulation = quotient(of_simulations, n * (simulations - 1))
        judge = quotient(of_judges, np.full_like(n, judges - 1))
        rest = quotient(of_rest, (judges - 1) * (n * simulations - 1)) if judges > 1 else np.zeros_like(n)
        parts = np.stack(
            [
                (item - simulation) / size,
                (simulation - rest) / judges,
                np.nan_to_num((judge - rest) / (n * simulations)),
                rest,
            ],
            axis=-1,
        ).clip(min=0)
        return quotient(parts[..., component], parts.sum(axis=-1))

    return formula
