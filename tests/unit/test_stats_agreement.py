"""Agreement: values from the libraries, resampled by formulas that must say the same."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tasks.foundation.stats.agreement import (
    NO_INTERVAL,
    ac1_formula,
    alpha_formula,
    cohen_kappa,
    fleiss_formula,
    fleiss_kappa,
    gwet_ac1,
    kappa_formula,
    krippendorff_alpha,
    mean_of,
    mean_pair_kappa,
    pearson,
    pearson_formula,
    rater_pairs,
    raw_agreement,
    spearman_formula,
    spearman_rho,
)
from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.stats.ratings import Ratings

BOOTSTRAP = Bootstrap(200, 1)
WORDS = ("edit 1", "keep", "reject")

rated = st.lists(
    st.lists(st.one_of(st.none(), st.sampled_from(WORDS)), min_size=3, max_size=3), min_size=2, max_size=25
)
scored = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=25)


def ratings_of(rows: list[list[str | None]]) -> Ratings:
    names = ("a", "b", "c")
    given_by = [{name: one for name, one in zip(names, row, strict=True) if one is not None} for row in rows]
    return Ratings.of(given_by, names, list(range(len(rows))), scale=WORDS)


def pairs_of(rows: list[tuple[int, int]]) -> Ratings:
    scale = tuple(float(score) for score in range(11))
    return Ratings.of_scores(np.array(rows, dtype=float), ("a", "b"), np.arange(len(rows)), scale)


@given(rated)
def test_cohens_formula_is_scikit_learns(rows: list[list[str | None]]) -> None:
    pair = ratings_of(rows).pick(0, 1)
    found = cohen_kappa(pair, NO_INTERVAL)
    assert found.n == sum(row[0] is not None and row[1] is not None for row in rows)
    assume(found.value is not None)
    assert float(kappa_formula(3, None)(pair.joint.sum(axis=0))) == pytest.approx(found.value)


@given(scored)
def test_weighted_kappas_formula_is_scikit_learns(rows: list[tuple[int, int]]) -> None:
    pair = pairs_of(rows)
    found = cohen_kappa(pair, NO_INTERVAL, "quadratic")
    assume(found.value is not None)
    assert float(kappa_formula(11, "quadratic")(pair.joint.sum(axis=0))) == pytest.approx(found.value)


@given(rated)
def test_fleiss_formula_is_statsmodels(rows: list[list[str | None]]) -> None:
    complete = ratings_of(rows).complete
    found = fleiss_kappa(ratings_of(rows), NO_INTERVAL)
    assert found.n == len(complete.codes)
    assume(found.value is not None)
    counts = complete.counts
    share = (counts * (counts - 1)).sum(axis=1) / 6
    columns = np.column_stack([share, np.ones(len(share)), counts]).sum(axis=0)
    assert float(fleiss_formula(columns)) == pytest.approx(found.value)


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
@given(rows=rated)
def test_krippendorffs_formula_is_the_librarys(
    rows: list[list[str | None]], level: Literal["nominal", "ordinal"]
) -> None:
    ratings = ratings_of(rows).rated_by(2)
    found = krippendorff_alpha(ratings_of(rows), NO_INTERVAL, level)
    assert found.n == len(ratings.codes)
    assume(found.value is not None)
    counts = ratings.counts
    tables = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(3)
    coincidences = (tables / (counts.sum(axis=1) - 1)[:, None, None]).sum(axis=0).ravel()
    assert float(alpha_formula(3, level)(coincidences)) == pytest.approx(found.value)


@given(scored)
def test_correlation_formulas_are_scipys(rows: list[tuple[int, int]]) -> None:
    x, y = np.array(rows, dtype=float).T
    clusters = np.arange(len(x))
    r, rho = pearson(x, y, clusters, NO_INTERVAL), spearman_rho(x, y, clusters, NO_INTERVAL)
    assert (r.value is None) == (np.ptp(x) == 0 or np.ptp(y) == 0) == (rho.value is None)
    assume(r.value is not None)
    columns = np.column_stack([x, y, x * x, y * y, x * y, np.ones(len(x))]).sum(axis=0)
    assert float(pearson_formula(columns)) == pytest.approx(r.value)
    table = np.zeros((11, 11))
    np.add.at(table, (x.astype(int), y.astype(int)), 1)
    assert float(spearman_formula(11, 11)(table.ravel())) == pytest.approx(rho.value)


def test_ac1_stays_high_where_prevalence_breaks_kappa() -> None:
    # Gwet 2008: 118 yes-yes, 5 yes-no, 2 no-yes, 0 no-no of 125.
    # observed 118/125 = .944; yes in (123 + 120)/250 = .972 of ratings; chance 2 · .972 · .028 = .054432
    # AC1 = (.944 − .054432) / (1 − .054432) = .94078
    rows = [{"a": "yes", "b": "yes"}] * 118 + [{"a": "yes", "b": "no"}] * 5 + [{"a": "no", "b": "yes"}] * 2
    pair = Ratings.of(rows, ("a", "b"), range(125), scale=("no", "yes"))
    assert gwet_ac1(pair, BOOTSTRAP).value == pytest.approx(0.94078, abs=1e-5)
    assert cohen_kappa(pair, BOOTSTRAP).value == pytest.approx(-0.0234, abs=1e-4)
    assert raw_agreement(pair, BOOTSTRAP).value == pytest.approx(0.944)


def test_all_equal_ratings_have_raw_agreement_and_ac1_but_no_kappa() -> None:
    same = Ratings.of([{"a": "yes", "b": "yes", "c": "yes"}] * 4, ("a", "b", "c"), range(4), scale=("no", "yes"))
    pair = same.pick(0, 1)
    assert raw_agreement(same, BOOTSTRAP).value == 1.0
    assert gwet_ac1(same, BOOTSTRAP).value == 1.0
    for found in (cohen_kappa(pair, BOOTSTRAP), fleiss_kappa(same, BOOTSTRAP), krippendorff_alpha(same, BOOTSTRAP)):
        assert (found.value, found.ci_low, found.ci_high, found.n) == (None, None, None, 4)


@pytest.mark.parametrize("items", [0, 1])
def test_none_and_one_item_have_no_kappa(items: int) -> None:
    rows = [{"a": "yes", "b": "no", "c": "no"}] * items
    few = Ratings.of(rows, ("a", "b", "c"), range(items), scale=("no", "yes"))
    for found in (
        cohen_kappa(few.pick(0, 1), BOOTSTRAP),
        fleiss_kappa(few, BOOTSTRAP),
        krippendorff_alpha(few, BOOTSTRAP),
        gwet_ac1(few, BOOTSTRAP),
    ):
        assert (found.value, found.n) == (None, items)
    assert raw_agreement(few, BOOTSTRAP).value == (None if items == 0 else pytest.approx(1 / 3))


def test_unrated_items_are_no_part_of_the_effective_n() -> None:
    rows: list[list[str | None]] = [["keep", "keep", None], ["keep", None, None], ["edit 1", "keep", "keep"]]
    ratings = ratings_of(rows)
    assert cohen_kappa(ratings.pick(0, 1), BOOTSTRAP).n == 2
    assert cohen_kappa(ratings.pick(1, 2), BOOTSTRAP).n == 1
    assert fleiss_kappa(ratings, BOOTSTRAP).n == 1
    assert krippendorff_alpha(ratings, BOOTSTRAP).n == 2


def test_mean_of_pair_kappas() -> None:
    scores = np.array([[0, 0, 1], [1, 1, 1], [2, 2, 2], [5, 4, np.nan]])
    ratings = Ratings.of_scores(scores, ("a", "b", "c"), np.arange(4), tuple(np.arange(0, 5.5, 0.5)))
    each = [cohen_kappa(pair, BOOTSTRAP, "quadratic").value for pair in rater_pairs(ratings)]
    found = mean_pair_kappa("mean", rater_pairs(ratings), BOOTSTRAP)
    assert found.n == 4
    assert found.value == pytest.approx(np.mean([value for value in each if value is not None]))
    assert mean_pair_kappa("mean", [], BOOTSTRAP).value is None


def test_a_mean_of_nothing_is_none_and_of_one_is_itself() -> None:
    assert mean_of("bias", np.zeros(0), np.zeros(0, dtype=int), BOOTSTRAP).value is None
    one = mean_of("bias", np.array([3.0]), np.array([0]), BOOTSTRAP)
    assert (one.value, one.ci_low, one.n) == (3.0, None, 1)


def test_intervals_hold_the_value_of_a_clear_agreement() -> None:
    generator = np.random.default_rng(2)
    truth = generator.integers(0, 6, 80).astype(float)
    other = np.clip(truth + generator.integers(-1, 2, 80), 0, 5)
    pair = Ratings.of_scores(np.stack([truth, other], axis=1), ("a", "b"), np.repeat(np.arange(20), 4), range(6))
    for found in (
        cohen_kappa(pair, BOOTSTRAP, "quadratic"),
        krippendorff_alpha(pair, BOOTSTRAP, "ordinal"),
        spearman_rho(truth, other, pair.clusters, BOOTSTRAP),
    ):
        assert found.value is not None and found.ci_low is not None and found.ci_high is not None
        assert found.ci_low < found.value < found.ci_high
        assert found.ci_high - found.ci_low < 0.3


def test_ac1_of_a_scale_with_one_level_is_nothing() -> None:
    assert np.isnan(ac1_formula(np.array([4.0, 4.0, 4.0])))


@pytest.mark.parametrize(("name", "value", "low"), [("raw", 1.0, 0.7225), ("flips", 0.0, 0.0), ("bias", 1.0, None)])
def test_a_share_of_none_or_all_has_wilsons_interval_and_another_mean_has_none(
    name: str, value: float, low: float | None
) -> None:
    found = mean_of(name, np.full(20, value), np.repeat(np.arange(10), 2), BOOTSTRAP)
    assert found.ci_low == (None if low is None else pytest.approx(low, abs=1e-4))
    assert mean_of(name, np.full(4, value), np.zeros(4, dtype=int), BOOTSTRAP).ci_low is None, "one dialogue"
