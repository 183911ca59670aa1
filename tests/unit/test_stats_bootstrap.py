"""Resampling: seeded, clustered, the same for all; and what follows from it."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.ids import seed_of
from tasks.foundation.stats import bootstrap
from tasks.foundation.stats.bootstrap import (
    Bootstrap,
    Cut,
    Design,
    Part,
    effects_of,
    intervals_of,
    share_equal,
    two_sided_p,
    two_sided_ps,
    values_of,
)
from tasks.foundation.stats.multiplicity import holm
from tasks.foundation.stats.ranks import kendall_tau, levels, rank_flips, spearman_by_group
from tasks.foundation.stats.sums import by_cluster, difference, macro_f1, mean_of_means, ratio
from tasks.foundation.stats.turn_weights import turn_weights

BOOTSTRAP = Bootstrap(2000, 7)
LABELS = ["joy", "hope", "guilt", None]


def test_every_resample_draws_as_many_clusters_as_there_are() -> None:
    counts = BOOTSTRAP.counts(37)
    assert counts.shape == (2000, 37)
    assert (counts.sum(axis=1) == 37).all()


def test_resamples_depend_on_seed_and_size_only() -> None:
    assert (Bootstrap(50, 1).counts(9) == Bootstrap(50, 1).counts(9)).all()
    assert (Bootstrap(50, 1).counts(9) != Bootstrap(50, 2).counts(9)).any()


def test_the_interval_is_that_of_a_plain_loop_over_resamples() -> None:
    sums = np.array([[3.0, 4.0], [1.0, 4.0], [2.0, 2.0], [0.0, 5.0]])
    loop = []
    for drawn in BOOTSTRAP.counts(4):
        rows = np.repeat(sums, drawn.astype(int), axis=0)
        loop.append(rows[:, 0].sum() / rows[:, 1].sum())
    found = BOOTSTRAP.interval(sums, ratio())
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(loop, [2.5, 97.5])), abs=1e-12)


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(3)
    hits = 0
    for _ in range(300):
        values = generator.normal(0.0, 1.0, 60)
        found = Bootstrap(400, 5).interval(np.stack([values, np.ones(60)], axis=1), ratio())
        assert found is not None
        hits += found.low <= 0.0 <= found.high
    assert 0.90 <= hits / 300 <= 0.98


@pytest.mark.parametrize("sums", [np.zeros((0, 2)), np.array([[1.0, 2.0]]), np.array([[1.0, 3.0]] * 5)])
def test_no_cluster_one_cluster_and_all_equal_clusters_have_no_interval(sums: np.ndarray) -> None:
    assert BOOTSTRAP.interval(sums, ratio()) is None
    assert len(sums) > 1 or two_sided_p(BOOTSTRAP.distributions([Part(sums, ratio())])[0]) is None


def test_resamples_without_a_value_are_left_out_of_the_interval() -> None:
    distribution = np.array([np.nan] * 500 + list(np.linspace(0, 1, 501)))
    found = intervals_of([distribution])[0]
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.025, 0.975))


def test_p_is_never_zero_and_never_above_one() -> None:
    # 3 of 9 resamples are at or below 0: 2 · (3 + 1) / (9 + 1)
    assert two_sided_p(np.array([-1, -0.5, 0, 1, 2, 3, 4, 5, 6.0])) == pytest.approx(0.8)
    assert two_sided_p(np.linspace(1, 2, 999)) == pytest.approx(2 / 1000)
    assert two_sided_p(np.array([-1.0, 1.0])) == 1.0


def test_parts_resampled_together_equal_parts_resampled_alone() -> None:
    generator = np.random.default_rng(0)
    parts = [Part(generator.random((6, 2)), ratio()), Part(generator.random((6, 4)), difference())]
    together = BOOTSTRAP.distributions(parts)
    for part, values in zip(parts, together, strict=True):
        assert BOOTSTRAP.distributions([part])[0] == pytest.approx(values)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12))
def test_holm_is_that_of_statsmodels(p_values: list[float | None]) -> None:
    from statsmodels.stats.multitest import multipletests

    known = [p for p in p_values if p is not None]
    with patch("gc.collect"):  # the library collects garbage at every call
        expected = iter(multipletests(known, method="holm")[1] if known else [])
    assert holm(p_values) == pytest.approx([None if p is None else float(next(expected)) for p in p_values])


def test_holm_worked_by_hand() -> None:
    # sorted .01, .02, .04 → .01·3, max(.03, .02·2), max(.04, .04·1)
    assert holm([0.04, 0.01, None, 0.02]) == pytest.approx([0.04, 0.03, None, 0.04])


@pytest.mark.parametrize(
    ("turns", "alpha", "weights"),
    [
        (0, 0.10, []),
        (1, 0.10, [1.0]),
        (2, 0.10, [0.5, 0.5]),
        (3, 0.10, [0.1, 0.1, 0.8]),
        (4, 0.10, [0.1, 0.1, 0.4, 0.4]),
        (10, 0.10, [0.1] * 10),
        (10, 0.05, [0.05, 0.05] + [0.9 / 8] * 8),
    ],
)
def test_turn_weights(turns: int, alpha: float, weights: list[float]) -> None:
    assert turn_weights(turns, alpha) == pytest.approx(weights)


@given(st.integers(1, 60), st.floats(0.01, 0.49))
def test_turn_weights_sum_to_one_and_are_positive(turns: int, alpha: float) -> None:
    weights = turn_weights(turns, alpha)
    assert weights.sum() == pytest.approx(1)
    assert (weights > 0).all()


@pytest.mark.parametrize("alpha", [0.0, 0.5, -1.0])
def test_a_weight_outside_its_range_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match=r"between 0 and 0\.5"):
        turn_weights(4, alpha)


@given(st.lists(st.tuples(st.sampled_from(LABELS[:3]), st.sampled_from(LABELS)), min_size=1, max_size=30))
def test_macro_f1_is_that_of_scikit_learn(pairs: list[tuple[str, str | None]]) -> None:
    from sklearn.metrics import f1_score

    gold, predicted = [list(side) for side in zip(*pairs, strict=True)]
    labels = sorted({label for pair in pairs for label in pair if label is not None})
    columns = (
        [sum(g == label and p == label for g, p in pairs) for label in labels]
        + [gold.count(label) for label in labels]
        + [predicted.count(label) for label in labels]
    )
    expected = f1_score(
        gold, [label or "unreadable" for label in predicted], labels=labels, average="macro", zero_division=0
    )
    assert float(macro_f1(len(labels))(np.array(columns, dtype=float))) == pytest.approx(expected)


def test_formulas_of_nothing_are_nan() -> None:
    assert np.isnan(ratio()(np.zeros(2)))
    assert np.isnan(difference()(np.array([1.0, 1.0, 0.0, 0.0])))
    assert np.isnan(mean_of_means(2)(np.array([1.0, 1.0, 0.0, 0.0])))
    assert np.isnan(macro_f1(2)(np.zeros(6)))


def test_columns_are_summed_within_clusters_in_code_order() -> None:
    columns = np.array([[1.0], [2.0], [4.0]])
    assert by_cluster(columns, np.array([5, 2, 5])).tolist() == [[2.0], [5.0]]
    assert by_cluster(np.zeros((0, 3)), np.zeros(0, dtype=int)).shape == (0, 3)


def test_flips_are_strict_and_name_who_was_ahead() -> None:
    before = {"a": 3.0, "b": 2.0, "c": 1.0, "d": 1.0}
    after = {"a": 1.0, "b": 2.0, "c": 1.0, "d": 0.0}
    assert rank_flips(before, after) == [("a", "b")]
    assert rank_flips({"a": 0.1 + 0.2, "b": 0.3}, {"a": 0.3, "b": 0.4}) == []


def test_tau_of_too_few_or_tied_rankings_is_none() -> None:
    assert kendall_tau({"a": 1.0}, {"a": 2.0}) is None
    assert kendall_tau({"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 2.0}) is None
    assert kendall_tau({"a": 1.0, "b": 2.0, "x": 9.0}, {"a": 5.0, "b": 4.0}) == -1.0


def test_values_that_only_rounding_sets_apart_are_tied_in_a_ranking() -> None:
    three, other = {"a": 0.1 + 0.2, "b": 0.3, "c": 0.9}, {"a": 0.3, "b": 0.1 + 0.2, "c": 0.9}
    assert kendall_tau(three, other) == pytest.approx(1.0)
    assert kendall_tau({"a": 0.1 + 0.2, "b": 0.3}, {"a": 1.0, "b": 2.0}) is None
    assert levels([0.5, 0.3, 0.5 + 1e-15, 0.3]) == [1, 0, 1, 0] and levels([]) == []


def test_spearman_of_short_or_constant_series_is_nan() -> None:
    x = np.array([1.0, 1.0, 2.0, 1.0, 2.0, 3.0])
    y = np.array([2.0, 1.0, 3.0, 1.0, 5.0, 3.0])
    found = spearman_by_group(x, y, np.array([0, 1, 1, 2, 2, 2]), 4)
    assert found == pytest.approx([np.nan, 1.0, 0.5, np.nan], nan_ok=True)
    constant = spearman_by_group(x[:2], y[:2], np.zeros(2, dtype=int), 1)
    assert np.isnan(constant).all()


def test_what_parts_have_in_common_is_resampled_once_and_changes_no_value() -> None:
    draw = np.random.default_rng(7)
    columns = draw.integers(0, 5, (40, 4)).astype(float)
    design, bootstrap = Design(np.arange(40) // 20), Bootstrap(50, 3)
    picks = [[0, 1], [2, 1], [0, 1], [2, 3], [3, 3]]
    strata = [None, None, None, [0], [0, 1]]
    parts = [Part(columns[:, pick], ratio(2.0), only) for pick, only in zip(picks, strata, strict=True)]
    parts[2] = Part(columns[:, [0, 1]], parts[0].formula, None)
    shared = share_equal(parts)
    assert shared[2] is shared[0] and shared[1] is parts[1] and len({id(part) for part in shared}) == 4
    found = bootstrap.distributions(shared, design)
    for part, values in zip(parts, found, strict=True):
        by_stratum = [bootstrap.counts(20, place) @ part.sums[rows] for place, rows in enumerate(design.rows)]
        assert values == pytest.approx(part.average(by_stratum), abs=1e-12)


def test_an_empty_choice_of_strata_is_not_all_of_them() -> None:
    sums, formula = np.ones((4, 2)), ratio()
    whole, none = share_equal([Part(sums, formula, None), Part(sums, formula, [])])
    assert whole is not none


def test_sums_told_by_what_they_hardly_differ_from_have_the_same_resamples() -> None:
    generator = np.random.default_rng(11)
    design = Design(np.repeat([0, 1], [50, 70]))
    rows, others = np.array([2, 49, 50, 119]), np.array([7])
    plain, cut = [], []
    for where, strata in ((rows, None), (rows[:2], (0,)), (others, (1, 0)), (rows[:0], None)):
        whole = np.stack([generator.normal(size=120), generator.integers(1, 5, 120)], axis=1)
        sums = whole.copy()
        sums[where] *= [[0.5, 0.0]]
        plain.append(Part(sums, ratio(2.0), strata))
        cut.append(Part(sums, plain[-1].formula, strata, Cut(whole, others if where is others else rows)))
    assert np.allclose(BOOTSTRAP.distributions(cut, design), BOOTSTRAP.distributions(plain, design), atol=1e-12)


def test_parts_are_worked_out_together_as_they_are_one_by_one() -> None:
    generator = np.random.default_rng(12)
    design = Design(np.array([0, 1] * 6))
    formulas = [(ratio(), 2), (ratio(3.0), 2), (macro_f1(3), 9), (difference(), 4)]
    parts = [
        Part(generator.integers(0, 4, (12, k)).astype(float), formula, strata)
        for formula, k in formulas * 40
        for strata in (None, (1,), ())
    ]
    parts.append(Part(np.zeros((12, 2)), formulas[0][0]))
    alone = [part.value(design) for part in parts], np.stack([part.effects(design) for part in parts], axis=1)
    assert np.array_equal(values_of(parts, design), alone[0], equal_nan=True)
    assert np.array_equal(effects_of(parts, design), alone[1])
    drawn = Bootstrap(30, 2).distributions(parts, design)
    assert np.allclose(drawn, [Bootstrap(30, 2).distributions([part], design)[0] for part in parts], equal_nan=True)


def test_every_row_has_its_own_p() -> None:
    # four below 0 of ten: 2 * (4 + 1) / 11; of the two that are defined, none is: 2 * (0 + 1) / 3
    rows = np.array([[-1.0] * 4 + [1.0] * 6, [1.0, 2.0] + [np.nan] * 8, [np.nan] * 10])
    assert two_sided_ps(rows) == [pytest.approx(10 / 11), pytest.approx(2 / 3), None]


def test_resamples_are_the_same_however_many_are_drawn_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(13)
    parts = [Part(np.stack([generator.normal(size=41), np.ones(41)], axis=1), ratio())]
    design = Design(np.repeat([0, 1], [20, 21]))
    whole = Bootstrap(500, 17).distributions(parts, design)[0]
    monkeypatch.setattr(bootstrap, "_MOST_DRAWN", 150)
    monkeypatch.setattr(bootstrap, "_MOST_KEPT", 0)
    assert np.allclose(Bootstrap(500, 17).distributions(parts, design)[0], whole, rtol=1e-12)
    drawn = np.random.default_rng(seed_of(17, "bootstrap", 20)).integers(0, 20, size=(500, 20))
    counted = np.stack([np.bincount(one, minlength=20) for one in drawn])
    assert np.array_equal(np.concatenate(list(bootstrap._draw(20, 500, 17, 0))), counted)
