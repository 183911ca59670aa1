"""What asking again shows: votes with candidates reversed, judgements drawn twice, simulations held several times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from tasks.foundation.stats.agreement import cohen_kappa, mean_of, raw_agreement
from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.stats.ratings import Ratings
from tasks.foundation.stats.sums import quotient
from tasks.foundation.stats.variance import split_variance
from tasks.metrics.cells import Units
from tasks.metrics.label_agreement import Found, Label, collect_vote_ratings, group_ratings
from tasks.metrics.score_agreement import HALVES

FIRST, AGAIN = "first", "again"
TENTHS = tuple(float(score) for score in range(11))
SCALES: Mapping[str, tuple[float, ...]] = {
    **dict.fromkeys(("empathy", "persona_alignment", "anthropomorphic"), HALVES),
    "satisfaction": (1.0, 2.0, 3.0, 4.0, 5.0),
    "completed": (),
}
"""Every possible score of a dimension; of others, 0 to 10."""


def measure_position(
    votes: pl.DataFrame, repeats: pl.DataFrame, reviews: pl.DataFrame, bootstrap: Bootstrap
) -> Iterator[Found]:
    """Of each voter, by element group: `flips`, the share of votes that went to another candidate once the order was
    reversed, and Cohen's κ of both votes; n counts votes that could be read both times."""
    first, again = collect_vote_ratings(votes, reviews), collect_vote_ratings(repeats, reviews)
    for voter in sorted(set(repeats["voter"])):
        both: dict[Label, Mapping[str, str]] = {
            label: {FIRST: first[label][voter], AGAIN: given[voter]}
            for label, given in again.items()
            if voter in given and voter in first.get(label, {})
        }
        for category, rated in group_ratings(both, (FIRST, AGAIN)):
            flips = (rated.codes[:, 0] != rated.codes[:, 1]).astype(float)
            yield Found(category, (voter,), mean_of("flips", flips, rated.clusters, bootstrap))
            yield Found(category, (voter,), cohen_kappa(rated, bootstrap))


def measure_retest(repeats: pl.DataFrame, bootstrap: Bootstrap) -> Iterator[Found]:
    """Of each judge with its second draw, by dimension: raw agreement, κ (quadratic weights for scores) and the mean of
    the second less the first; clustered by what was judged, the turns of a conversation together."""
    scored = repeats.drop_nulls(["first", "again"])
    for (judge, dimension), rows in scored.group_by(["judge", "dimension"], maintain_order=True):
        scale = SCALES.get(str(dimension), TENTHS)
        names = [thing.split("/")[1] for thing in rows["thing"]]
        clusters = np.unique(names, return_inverse=True)[1]
        scores = rows.select("first", "again").to_numpy()
        rated = Ratings.of_scores(scores, (FIRST, AGAIN), clusters, scale)
        apart = scores[:, 1] - scores[:, 0]
        for agreed in (
            raw_agreement(rated, bootstrap),
            cohen_kappa(rated, bootstrap, "quadratic" if scale else None),
            mean_of("again_minus_first", apart, clusters, bootstrap),
        ):
            yield Found(str(dimension), (str(judge),), agreed)


def measure_variance(
    category: str, scores: np.ndarray, judges: Sequence[str], units: Units, places: slice, bootstrap: Bootstrap
) -> Iterator[Found]:
    """Shares of the variance of `scores` [simulations, judges] of the units at `places`, targets' means apart. The item
    is what a target's tries at the same task have in common, whatever their sample (which ends a task's id)."""
    target, tasks = units.keys["target"][places].astype(str), units.task_ids[places]
    if not len(scores):
        return
    tried = [f"{one}|{task.rpartition('|')[0]}" for one, task in zip(target, tasks, strict=True)]
    items = np.unique(tried, return_inverse=True)[1]
    centred = scores.astype(float).copy()
    for name in set(target):
        own = target == name
        if np.isfinite(centred[own]).any():
            centred[own] -= np.nanmean(centred[own])
    for agreed in split_variance(centred, items, units.clusters[places], bootstrap):
        yield Found(category, tuple(judges), agreed)


def mean_by_unit(scores: np.ndarray, unit: np.ndarray, units: int) -> np.ndarray:
    """Means [units, judges] of the scores [turns, judges] that there are; NaN where there are none."""
    given = np.isfinite(scores)
    total, count = np.zeros((units, scores.shape[1])), np.zeros((units, scores.shape[1]))
    np.add.at(total, unit, np.where(given, scores, 0.0))
    np.add.at(count, unit, given)
    return quotient(total, count)
