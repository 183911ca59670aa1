"""What asking again shows: reversed ballots, second draws, and shares of a variance that is known."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest

from tasks.foundation.ids import is_drawn
from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.stats.variance import SHARES, split_variance
from tasks.foundation.tables import TABLES
from tasks.metrics.cells import Units
from tasks.metrics.repeats import measure_position, measure_retest, measure_variance

BOOTSTRAP = Bootstrap(200, 7)


def test_a_share_is_drawn_by_what_is_drawn_and_a_larger_one_holds_a_smaller_one() -> None:
    drawn = {share: {n for n in range(4000) if is_drawn(share, 0, "kind", n)} for share in (0.0, 0.1, 0.3, 1.0)}
    assert (len(drawn[0.0]), len(drawn[1.0])) == (0, 4000)
    assert drawn[0.1] < drawn[0.3]
    assert abs(len(drawn[0.1]) - 400) < 4 * (4000 * 0.1 * 0.9) ** 0.5


def _frame(table: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    frame = pl.from_arrow(TABLES[table].arrow(rows))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _vote(dialogue: str, voter: str, candidates: list[Any], candidate: int | None) -> dict[str, Any]:
    return {
        "dialogue_id": dialogue,
        "element": "scene.topic",
        "voter": voter,
        "family": "f",
        "candidates": json.dumps([{"value": value} for value in candidates]),
        "presentation": 0,
        "candidate": candidate,
        "reason": None,
    }


def _edit(dialogue: str) -> dict[str, Any]:
    return {
        "dialogue_id": dialogue,
        "element": "scene.topic",
        "annotator": "x",
        "family": "f",
        "action": "edit",
        "proposed": '"new"',
        "reason": None,
    }


def test_a_voter_that_takes_whatever_stands_first_flips_always_and_one_that_reads_never() -> None:
    votes, again, reviews = [], [], []
    for number in range(10):
        dialogue = f"d{number}"
        order = ["old", "new"] if number % 2 else ["new", "old"]
        reviews.append(_edit(dialogue))
        for rows, shown in ((votes, order), (again, order[::-1])):
            rows.append(_vote(dialogue, "first", shown, 0))
            rows.append(_vote(dialogue, "reader", shown, shown.index("new" if number % 3 else "old")))
            rows.append(_vote(dialogue, "silent", shown, None))
    frames = _frame("votes", votes), _frame("vote_repeats", again), _frame("reviews", reviews)
    found = {
        (one.raters[0], one.agreed.statistic): one.agreed
        for one in measure_position(*frames, BOOTSTRAP)
        if one.category == "all"
    }
    assert (found["first", "flips"].value, found["first", "flips"].n) == (1.0, 10)
    assert found["reader", "flips"].value == 0.0
    assert found["reader", "cohen_kappa"].value == 1.0
    assert found["first", "cohen_kappa"].value == pytest.approx(-1.0)
    assert not [rater for rater, _ in found if rater == "silent"]


def test_a_judge_is_held_against_its_second_draw_where_both_have_a_score() -> None:
    rows = [
        {"thing": f"final/c{n}", "judge": "j", "dimension": "satisfaction", "first": 3.0, "again": 3.0 + n % 2}
        for n in range(8)
    ]
    rows.append({"thing": "final/c9", "judge": "j", "dimension": "satisfaction", "first": None, "again": 2.0})
    rows.append({"thing": "final/c1", "judge": "j", "dimension": "completed", "first": 1.0, "again": 1.0})
    found = {
        (one.category, one.agreed.statistic): one.agreed
        for one in measure_retest(_frame("judgement_repeats", rows), BOOTSTRAP)
    }
    assert (found["satisfaction", "raw"].value, found["satisfaction", "raw"].n) == (0.5, 8)
    assert found["satisfaction", "again_minus_first"].value == 0.5
    assert found["completed", "raw"].value == 1.0
    assert ("completed", "cohen_kappa") in found and ("satisfaction", "cohen_kappa_quadratic") in found


def _simulate(item: float, simulation: float, judge: float, rest: float, judges: int = 4) -> tuple[np.ndarray, ...]:
    """Scores of 400 items with 3 simulations each, by random effects of these variances."""
    draw = np.random.default_rng(3).normal
    items, each = 400, 3
    scores = (
        np.sqrt(item) * draw(size=(items, 1, 1))
        + np.sqrt(simulation) * draw(size=(items, each, 1))
        + np.sqrt(rest) * draw(size=(items, each, judges))
    )
    # with so few judges their own draw would be all noise: effects of exactly this variance
    effects = np.linspace(-1, 1, judges)
    scores += np.sqrt(judge) * effects / (effects.std(ddof=1) or 1.0) if judges > 1 else 0.0
    places = np.repeat(np.arange(items), each)
    return scores.reshape(items * each, judges), places, places


@pytest.mark.parametrize(
    "parts", [(4.0, 2.0, 1.0, 1.0), (0.0, 3.0, 0.0, 1.0), (1.0, 0.0, 2.0, 1.0), (5.0, 0.0, 0.0, 0.5)]
)
def test_shares_of_a_known_variance_are_found(parts: tuple[float, float, float, float]) -> None:
    found = list(split_variance(*_simulate(*parts), BOOTSTRAP))
    assert [one.statistic for one in found] == list(SHARES)
    assert sum(one.value for one in found if one.value is not None) == pytest.approx(1.0)
    for one, part in zip(found, parts, strict=True):
        assert one.value == pytest.approx(part / sum(parts), abs=0.05)
        assert one.n == 400
    item = found[0]
    assert item.ci_low is not None and item.ci_high is not None
    assert item.ci_low - 0.02 <= parts[0] / sum(parts) <= item.ci_high + 0.02


def test_with_one_judge_simulations_hold_the_rest_and_gaps_leave_their_item_out() -> None:
    scores, items, clusters = _simulate(3.0, 0.5, 0.0, 0.5, judges=1)
    scores[0] = np.nan
    found = list(split_variance(scores, items, clusters, BOOTSTRAP))
    assert [one.statistic for one in found] == list(SHARES[:2])
    assert found[0].value == pytest.approx(0.75, abs=0.05)
    assert {one.n for one in found} == {399}


def test_without_a_second_simulation_nothing_is_said() -> None:
    scores = np.arange(10.0).reshape(5, 2)
    assert list(split_variance(scores, np.arange(5), np.arange(5), BOOTSTRAP)) == []
    assert list(split_variance(np.zeros((0, 2)), np.arange(0), np.arange(0), BOOTSTRAP)) == []


def test_a_better_target_is_no_item() -> None:
    rng = np.random.default_rng(1)
    target = np.array(["a", "b"] * 60, dtype=object)
    tasks = np.array([f"seed {n // 4}|{n // 2 % 2}" for n in range(120)], dtype=object)
    units = Units({"target": target}, np.array([task.partition("|")[0] for task in tasks], dtype=object), tasks)
    scores = rng.normal(size=(120, 2)) + np.where(target == "a", 50.0, 0.0)[:, None]
    found = {one.agreed.statistic: one.agreed for one in measure_variance(
        "satisfaction", scores, ("j", "k"), units, slice(None), BOOTSTRAP
    )}  # fmt: skip
    assert found["item_share"].n == 60
    assert found["item_share"].value is not None and found["item_share"].value < 0.3
