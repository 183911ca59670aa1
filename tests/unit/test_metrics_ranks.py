"""Who may be the best: equal targets are told apart no oftener than promised, and unequal ones are."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from tasks.foundation.stats.bootstrap import Bootstrap, Cut, wilson_interval
from tasks.foundation.stats.multiplicity import find_apart
from tasks.foundation.tables.evaluation import Rank
from tasks.metrics import comparison_rows
from tasks.metrics.cells import CellMeasurer, Units
from tasks.metrics.comparison_rows import Comparer
from tasks.metrics.observed import Observed, mean_over_units, measure

TARGETS = 17
BOARDS = 120


def board(scores: np.ndarray, metric: str = "satisfaction", void: np.ndarray | None = None) -> list[Rank]:
    """The ranks of targets with `scores` [seeds, targets]; NaN: not scored."""
    seeds, targets = scores.shape
    names = np.repeat(np.array([f"t{n:02d}" for n in range(targets)], dtype=object), seeds)
    tasks = np.tile(np.array([f"s{n}" for n in range(seeds)], dtype=object), targets)
    values = scores.T.ravel()
    units = Units({"target": names}, tasks, tasks)
    lost = np.zeros(len(values), bool) if void is None else void.T.ravel()
    observed = [mean_over_units(metric, values, void=lost)]
    comparer = Comparer("eyt", CellMeasurer(units, Bootstrap(500, 7)), [metric])
    return list(comparer.rank_targets(observed, ((),)))


def equal_targets(rng: np.random.Generator, seeds: int) -> np.ndarray:
    """Targets of equal quality on seeds that are as hard for all."""
    return 50 + 10 * rng.normal(size=(seeds, 1)) + 10 * rng.normal(size=(seeds, TARGETS))


def test_equal_targets_stay_in_the_set_of_the_best() -> None:
    """At n = 100, in at most 5 % of boards is one of seventeen equal targets left out, plus Monte Carlo error."""
    rng = np.random.default_rng(2026)
    wrong = sum(not all(row.may_be_best for row in board(equal_targets(rng, 100))) for _ in range(BOARDS))
    assert wrong / BOARDS <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / BOARDS)


def test_marks_against_the_empirically_best_would_leave_one_out_nearly_always() -> None:
    """What the confidence set is for: without it this test's promise breaks in most boards."""
    rng = np.random.default_rng(2026)
    wrong = 0
    for _ in range(40):
        scores = equal_targets(rng, 100)
        best = scores.mean(axis=0).argmax()
        apart = scores[:, [best]] - scores
        wrong += bool((apart.mean(axis=0) > 1.96 * apart.std(axis=0, ddof=1) / 10).any())
    assert wrong / 40 > 0.5


def test_a_target_that_is_much_worse_is_told_apart_and_the_others_are_not() -> None:
    scores = equal_targets(np.random.default_rng(3), 100)
    scores[:, 4] -= 30
    rows = {row.target: row for row in board(scores)}
    worst = rows.pop("t04")
    assert (worst.rank, worst.rank_low, worst.rank_high, worst.may_be_best) == (TARGETS, TARGETS, TARGETS, False)
    assert all(row.may_be_best and row.rank_high == TARGETS - 1 for row in rows.values())
    assert sorted(row.rank for row in rows.values()) == list(range(1, TARGETS))


def test_of_a_metric_where_low_is_good_the_lowest_is_the_best() -> None:
    scores = np.stack([np.linspace(0, 1, 40), np.linspace(5, 6, 40)], axis=1)
    low, high = board(scores, "drift_latent")
    assert (low.rank, low.rank_high, high.rank, high.rank_low) == (1, 1, 2, 2)


def test_equal_values_share_a_rank_and_one_target_has_one() -> None:
    same = np.repeat(np.arange(30.0)[:, None], 3, axis=1)
    assert {(row.rank, row.rank_low, row.rank_high) for row in board(same)} == {(1, 1, 3)}
    assert [(row.rank, row.n_targets, row.may_be_best) for row in board(same[:, :1])] == [(1, 1, True)]


def test_targets_are_compared_on_what_both_have_done() -> None:
    """One that has done the hard seeds only is not behind for that."""
    hard = np.where(np.arange(60) < 30, 0.0, 60.0)
    noise = np.random.default_rng(5).normal(size=(60, 2))
    scores = hard[:, None] + noise
    scores[30:, 1] = np.nan
    rows = board(scores)
    assert all(row.may_be_best for row in rows)
    assert [row.rank for row in rows] == [1, 2]


def test_a_target_whose_conversations_are_all_void_has_no_rank() -> None:
    scores, void = np.random.default_rng(5).normal(size=(30, 3)), np.zeros((30, 3), bool)
    void[:, 2] = True
    rows = board(scores, void=void)
    assert [row.target for row in rows] == ["t00", "t01"] and {row.n_targets for row in rows} == {2}


def test_what_cannot_be_computed_is_not_apart() -> None:
    rng = np.random.default_rng(1)
    resampled = np.stack([5 + rng.normal(size=300), np.full(300, np.nan), np.full(300, 2.0), np.zeros(300)], axis=1)
    errors = np.array([1.0, 1.0, 0.0, 0.0])
    found = find_apart(np.array([5.0, np.nan, 2.0, 0.0]), errors, resampled, np.tile(errors, (300, 1)))
    assert found.tolist() == [True, False, True, False]


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_of_none_or_all_has_an_interval(share: float) -> None:
    units = 20
    observed = mean_over_units("ficr", np.full(units, share), void=np.zeros(units, bool))
    [found] = measure([observed], np.arange(units), Bootstrap(100, 1))
    assert (found.ci_low, found.ci_high) == (
        pytest.approx(0.8389 * share, abs=1e-3),
        pytest.approx(0.1611 * (1 - share) + share, abs=1e-3),
    )
    assert found.value == share


def test_a_mean_that_is_the_same_everywhere_has_none() -> None:
    observed: Observed = mean_over_units("satisfaction", np.full(20, 1.0), void=np.zeros(20, bool))
    [found] = measure([observed], np.arange(20), Bootstrap(100, 1))
    assert found.ci_low is None
    assert wilson_interval(0.5, 10).low < 0.5


def comparer_of(scores: np.ndarray, keys: dict[str, list[str]]) -> tuple[Comparer, list[Observed]]:
    """Of targets with `scores` [seeds, targets], NaN: void; `keys`: further key columns, a value for each seed."""
    seeds, targets = scores.shape
    names = np.repeat(np.array([f"t{n:02d}" for n in range(targets)], dtype=object), seeds)
    tasks = np.tile(np.array([f"s{n}" for n in range(seeds)], dtype=object), targets)
    more = {name: np.tile(np.array(values, dtype=object), targets) for name, values in keys.items()}
    values = scores.T.ravel()
    metrics = [mean_over_units(metric, values, void=np.isnan(values)) for metric in ("satisfaction", "ficr")]
    return Comparer(
        "eyt", CellMeasurer(Units({"target": names, **more}, tasks, tasks), Bootstrap(300, 3)), ["satisfaction"]
    ), metrics


def test_few_dialogues_that_a_target_lacks_change_no_number_by_how_they_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(8)
    scores = rng.normal(50, 10, (120, 5)) + np.arange(5)
    scores[rng.random(scores.shape) < 0.04] = np.nan
    scores[:60, 4] = np.nan
    pools = {"pool": ["a"] * 55 + ["b"] * 65}

    def rows() -> list[dict[str, object]]:
        comparer, observed = comparer_of(scores, pools)
        ranks, pairs = comparer.rank_and_compare(observed, ((), ("pool",)))
        best = comparer.compare_targets(observed, ((), ("pool",)))
        return [row.model_dump(exclude={"judges"}) for row in (*ranks, *pairs, *best)]

    with patch.object(comparison_rows, "Cut", wraps=Cut) as cut:
        quick = rows()
    assert cut.called
    monkeypatch.setattr(comparison_rows, "MANY", 10**9)
    plain = rows()
    assert len(quick) == len(plain) > 50
    for one, other in zip(quick, plain, strict=True):
        assert one == pytest.approx(other, abs=1e-12)


def test_a_cell_of_the_same_units_has_the_same_rows_under_each_key() -> None:
    scores = equal_targets(np.random.default_rng(9), 20)[:, :4]
    comparer, observed = comparer_of(scores, {"language": ["en"] * 20})
    ranks, pairs = comparer.rank_and_compare(observed, ((), ("language",)))
    for rows in (ranks, pairs, list(comparer.compare_targets(observed, ((), ("language",))))):
        of_all = [row for row in rows if row.language is None]
        assert [row.model_copy(update={"language": None}) for row in rows if row.language == "en"] == of_all
        assert of_all
