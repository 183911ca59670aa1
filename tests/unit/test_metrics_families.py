"""Metric families one by one, on arrays small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.metrics.accuracy import Turns, accuracy, label_f1, unreadable_share
from tasks.metrics.alpha_sweep import compare_ranks
from tasks.metrics.cells import Units
from tasks.metrics.compare import ComparisonSide, find_best, paired_differences
from tasks.metrics.completion import compute_completion_metrics, satisfaction
from tasks.metrics.demo_scores import collect_scores, compute_demo_metrics
from tasks.metrics.drift import alignments, compute_turn_drifts, encode_texts, intent_texts, pair_texts
from tasks.metrics.observed import Measure, Observed, mean_over_units, measure
from tasks.metrics.panel import combine_scores, combine_verdicts
from tasks.metrics.score_agreement import thirds
from tasks.metrics.simulator_health import Heard, find_polite, measure_conversations
from tasks.metrics.subjective import compute_subjective_metrics, weighted_by_alpha
from tasks.metrics.words import Said, split_words

NAN = np.nan
NONE = Bootstrap(0, 0)


def value(observed: Observed) -> float | None:
    return found(observed).value


def found(observed: Observed) -> Measure:
    return measure([observed], np.arange(len(observed.n)), NONE)[0]


# -- panels


@pytest.mark.parametrize(
    ("given", "majority", "mean"),
    [
        ([0.5], 0.5, 0.5),
        ([1.0, 1.0, 0.0], 1.0, 2 / 3),
        ([1.0, 0.5, 0.0], 0.5, 0.5),  # no majority: the median
        ([1.0, 0.0], 0.5, 0.5),  # a tie of two: their median
        ([1.0, NAN], NAN, NAN),  # one of two is no strict majority of the panel
        ([1.0, 1.0, NAN], 1.0, 1.0),
        ([1.0, 0.0, NAN], 0.5, 0.5),
        ([1.0, NAN, NAN], NAN, NAN),
        ([1.0, 1.0, 0.0, 0.0], 0.5, 0.5),  # two of four is no strict majority
        ([NAN, NAN], NAN, NAN),
    ],
)
def test_panel_rules(given: list[float], majority: float, mean: float) -> None:
    assert combine_scores(np.array(given), "majority") == pytest.approx(majority, nan_ok=True)
    assert combine_scores(np.array(given), "mean") == pytest.approx(mean, nan_ok=True)


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        ([1.0], 1.0),
        ([1.0, 0.0], NAN),
        ([1.0, NAN], NAN),
        ([1.0, 1.0, NAN], 1.0),
        ([0.0, 0.0, 1.0], 0.0),
        ([1.0, 1.0, 0.0, 0.0], NAN),
        ([NAN], NAN),
    ],
)
def test_a_verdict_needs_a_strict_majority_of_the_configured_panel(votes: list[float], verdict: float) -> None:
    assert combine_verdicts(np.array(votes)) == pytest.approx(verdict, nan_ok=True)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, NAN]), min_size=1, max_size=6), st.randoms())
def test_the_order_of_judges_never_matters(scores: list[float], random: object) -> None:
    shuffled = list(scores)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for rule in ("majority", "mean"):
        one, other = (combine_scores(np.array(each), rule) for each in (scores, shuffled))  # type: ignore[arg-type]
        assert one == pytest.approx(other, nan_ok=True)


# -- completion


def test_ficr_counts_undecided_dialogues_as_not_completed() -> None:
    completed = np.array([[1, 1], [1, 0], [1, NAN], [0, 0], [1, 1], [NAN, NAN]], dtype=float)
    judged = np.array([True, True, True, True, True, False])
    void = np.array([False, False, False, False, True, False])
    ficr, undecided = (found(each) for each in compute_completion_metrics(completed, judged, void))
    assert (ficr.value, ficr.n, ficr.n_unscored, ficr.n_fault) == (0.25, 4, 1, 1)
    assert (undecided.value, undecided.n) == (0.5, 4)


def test_satisfaction_is_rescaled_and_leaves_unscored_dialogues_out() -> None:
    scores = np.array([[5, 4], [1, NAN], [NAN, NAN]], dtype=float)
    got = found(satisfaction(scores, np.zeros(3, dtype=bool)))
    # means 4.5 and 1 → 87.5 and 0
    assert (got.value, got.n, got.n_unscored) == (43.75, 2, 1)


# -- accuracy


def turns_of(
    conversation: list[int], counted: list[bool], void: list[bool] | None = None, gone: list[bool] | None = None
) -> Turns:
    places = np.array(conversation, dtype=int)
    none = np.zeros(len(places), dtype=bool)
    gone = np.zeros(2, dtype=bool) if gone is None else np.array(gone)
    voided = none if void is None else np.array(void)
    return Turns(places, np.ones(len(places), dtype=int), np.array(counted, dtype=bool), voided, gone)


def test_accuracy_is_pooled_over_turns_not_over_dialogues() -> None:
    turns = turns_of([0, 0, 0, 1], [True, True, True, True])
    assert value(accuracy("latent_accuracy", np.array([True, False, False, True]), turns)) == 0.5


def test_lost_turns_are_no_part_of_n_and_are_counted() -> None:
    turns = turns_of([0, 0, 1], [True, False, True], [False, True, False])
    got = found(accuracy("latent_accuracy", np.array([True, False, False]), turns))
    assert (got.value, got.n, got.n_fault) == (0.5, 2, 1)


def test_a_conversation_of_which_nothing_is_left_is_counted_beside_the_turns_of_others() -> None:
    turns = turns_of([0, 0], [True, True], gone=[False, True])
    right = np.array([True, False])
    found_all, found_one = (found(accuracy("latent_accuracy", right, turns, where)) for where in (None, right))
    assert (found_all.n, found_all.n_fault) == (2, 1)
    assert (found_one.n, found_one.n_fault) == (1, 0), "of a lost turn nobody knows the label"


def test_unreadable_predictions_are_wrong_for_f1_and_counted_apart() -> None:
    gold = np.array(["a", "a", "b"], dtype=object)
    predicted = np.array(["a", None, "b"], dtype=object)
    turns = turns_of([0, 0, 1], [True] * 3)
    # a: 2·1/(2 + 1); b: 1
    assert value(label_f1("latent_macro_f1", gold, predicted, turns)) == pytest.approx((2 / 3 + 1) / 2)
    missing = np.array([[False, True, False], [False, False, False], [False, False, False]])
    assert value(unreadable_share(missing, turns)) == pytest.approx(1 / 9)


def test_no_turn_at_all_is_none() -> None:
    turns = turns_of([], [])
    empty = np.zeros(0, dtype=object)
    assert value(accuracy("latent_accuracy", empty.astype(bool), turns)) is None
    assert value(label_f1("latent_macro_f1", empty, empty, turns)) is None
    assert value(unreadable_share(np.zeros((0, 3), dtype=bool), turns)) is None


# -- drift and alignment


def unit(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle)])


def test_drift_is_exactly_zero_for_equal_labels_and_one_for_an_unreadable_prediction() -> None:
    vectors = {"a": unit(0.3) * (1 + 1e-7), "b": unit(0.3 + np.pi / 3)}
    found = compute_turn_drifts(pl.Series(["a", "a", "a"]), pl.Series(["a", "b", None]), vectors)
    assert found[0] == 0.0
    assert found[1:] == pytest.approx([0.5, 1.0], abs=1e-6)


def test_intent_texts_carry_their_definitions() -> None:
    definitions = {"Hope": "expecting good"}
    labels = pl.Series(["Hope", "Other", None])
    assert intent_texts(labels, definitions).to_list() == ["Hope: expecting good", "Other", None]
    assert pair_texts(labels, pl.Series(["a", None, "b"])).to_list() == ["Hope\na", None, None]


def test_each_text_is_encoded_once_in_an_order_of_its_own() -> None:
    asked: list[list[str]] = []

    def encode(texts: object) -> np.ndarray:
        asked.append(list(texts))  # type: ignore[call-overload]
        return np.eye(2, dtype=np.float32)

    assert set(encode_texts([pl.Series(["b", None]), pl.Series(["a", "b"])], encode)) == {"a", "b"}
    assert asked == [["a", "b"]]
    assert encode_texts([pl.Series([None], dtype=pl.String)], encode) == {}


@pytest.mark.parametrize(
    ("cosines", "rho"),
    [
        ([0.1, 0.2, 0.3], 1.0),
        ([0.3, 0.2, 0.1], -1.0),
        ([0.1, 0.9], NAN),  # fewer than three turns
        ([0.5, 0.5, 0.5], NAN),  # constant
        ([0.1, NAN, 0.3], NAN),  # two turns with a prediction
        ([0.1, NAN, 0.3, 0.2], 0.5),
        ([], NAN),
    ],
)
def test_alignment(cosines: list[float], rho: float) -> None:
    position = np.arange(1, len(cosines) + 1)
    found = alignments(position, np.array(cosines), np.zeros(len(cosines), dtype=int), 1)
    assert found[0] == pytest.approx(rho, nan_ok=True)


def test_alignments_of_many_conversations_are_those_of_scipy_one_by_one() -> None:
    draw = np.random.default_rng(3)
    conversation = draw.integers(0, 60, 400)
    position = draw.integers(1, 6, 400)
    cosine = np.where(draw.random(400) < 0.1, NAN, draw.integers(0, 4, 400) / 3)
    found = alignments(position, cosine, conversation, 61)
    for one in range(61):
        turns = (conversation == one) & np.isfinite(cosine)
        x, y = position[turns], cosine[turns]
        told = len(x) >= 3 and np.ptp(x) > 0 and np.ptp(y) > 0
        expected = spearmanr(x, y).statistic if told else NAN
        assert found[one] == pytest.approx(expected, abs=1e-12, nan_ok=True)


# -- subjective


def dimension(scores: list[list[float]], alpha: float = 0.10) -> dict[str, Observed]:
    """Metrics of conversations whose fifteen sub-scores at a turn are all the given one."""
    conversation = np.repeat(np.arange(len(scores)), [len(each) for each in scores])
    position = np.concatenate([np.arange(1, len(each) + 1) for each in scores]) if scores else np.zeros(0, dtype=int)
    sub = np.repeat(np.concatenate([np.array(each, dtype=float) for each in scores])[:, None], 15, axis=1)
    void = np.zeros(len(scores), dtype=bool)
    return {each.metric: each for each in compute_subjective_metrics(sub, conversation, position, void, alpha)}


def test_a_dimension_weighted_unweighted_and_its_parts() -> None:
    metrics = dimension([[0.0, 0.5, 1.0, 1.0]])
    # turn scores 0, 2.5, 5, 5; α = .10: .1·0 + .1·2.5 + .4·5 + .4·5 = 4.25
    assert value(metrics["empathy_unweighted"]) == pytest.approx(62.5)
    assert value(metrics["empathy_weighted"]) == pytest.approx(85.0)
    assert value(metrics["empathy_early_minus_late"]) == pytest.approx((1.25 - 5) * 20)
    parts = [
        value(metrics[f"empathy_{part}"]) for part in ("recognition", "attribution", "resonance", "response", "support")
    ]
    assert sum(part for part in parts if part is not None) == pytest.approx(62.5)


def test_unscored_turns_drop_out_and_the_weights_of_the_others_are_rescaled() -> None:
    got = value(dimension([[1.0, 0.0, NAN, 0.5]])["empathy_weighted"])
    # (.1·5 + .1·0 + .4·2.5) / .6 = 2.5
    assert got == pytest.approx(50.0)


def test_a_dialogue_with_more_than_half_its_turns_unscored_leaves_the_cell() -> None:
    metrics = dimension([[1.0, 1.0, NAN, NAN], [0.5, NAN, NAN, NAN]])
    got = found(metrics["empathy_unweighted"])
    assert (got.value, got.n, got.n_unscored) == (100.0, 1, 1)
    pooled = found(metrics["empathy_early_minus_late_pooled"])
    assert (pooled.value, pooled.n, pooled.n_unscored) == (None, 2, 6)


def test_early_minus_late_needs_both_and_pooling_weighs_turns() -> None:
    metrics = dimension([[1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0]])
    got = found(metrics["empathy_early_minus_late"])
    # the first has no late turn: mean of 5 − 0 and 0 − 5
    assert (got.value, got.n, got.n_unscored) == (0.0, 2, 0)
    # early turns 5, 0, 5, 5, 0, 0 → 2.5; late turns 0, 5, 5, 5 → 3.75
    assert value(metrics["empathy_early_minus_late_pooled"]) == pytest.approx((2.5 - 3.75) * 20)


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=3, max_size=12), min_size=1, max_size=6))
def test_the_sweeps_slope_is_a_fifth_of_early_minus_late(scores: list[list[float]]) -> None:
    """With every turn scored and T ≥ 3, weighted(.15) − weighted(.05) = 0.2 · (early − late), per dialogue."""
    conversation = np.repeat(np.arange(len(scores)), [len(each) for each in scores])
    position = np.concatenate([np.arange(1, len(each) + 1) for each in scores])
    sub = np.repeat(np.concatenate(scores)[:, None], 15, axis=1)
    void = np.zeros(len(scores), dtype=bool)
    low, high = (
        weighted_by_alpha(sub, conversation, position, void, [alpha])[0].columns[:, 0] for alpha in (0.05, 0.15)
    )
    apart = dimension(scores)["empathy_early_minus_late"].columns[:, 0]
    assert high - low == pytest.approx(0.2 * apart, abs=1e-9)


def test_a_rank_flip_in_a_sweep_of_ours() -> None:
    # a: good early; b: good late. α = .05 → b ahead, α = .45 → a ahead
    conversation, position = np.repeat([0, 1], 4), np.tile([1, 2, 3, 4], 2)
    sub = np.repeat(np.array([1, 1, 0, 0, 0, 0, 1, 1.0])[:, None], 15, axis=1)
    swept = weighted_by_alpha(sub, conversation, position, np.zeros(2, dtype=bool), [0.05, 0.45])
    scores = {
        float(each.slice["alpha"]): dict(zip("ab", each.columns[:, 0], strict=True))  # type: ignore[arg-type]
        for each in swept
        if each.metric == "empathy_weighted"
    }
    (change,) = compare_ranks(scores)
    assert (change.alphas, change.tau, change.flips) == ((0.05, 0.45), -1.0, (("b", "a"),))


# -- DEMO


def test_demo_scores_pool_every_scored_number() -> None:
    # two predictions (goal, scene) by two judges; one number is unscored, one unit void
    awareness = collect_scores(
        np.array([[[8, 6], [7, NAN]], [[1, 3], [2, 2]], [[9, 9], [9, 9]]], dtype=float),
        np.array([[0, 0], [2, 2], [0, 0]]),
        4,
        np.array([False, False, True]),
    )
    interaction = collect_scores(np.full((3, 2, 4), NAN), np.tile(np.arange(4), (3, 1)), 4, np.zeros(3, dtype=bool))
    metrics = {each.metric: found(each) for each in compute_demo_metrics(awareness, interaction)}
    assert (metrics["goal"].value, metrics["goal"].n, metrics["goal"].n_unscored, metrics["goal"].n_fault) == (
        7.0,
        3,
        1,
        4,
    )
    assert metrics["scene"].value == 2.0
    assert metrics["awareness"].value == pytest.approx((8 + 6 + 7 + 1 + 3 + 2 + 2) / 7)
    assert metrics["persona"].value is None
    assert metrics["interaction"].value is None
    assert metrics["overall_pooled"].value is None, "half a benchmark has no overall"
    assert metrics["overall_mean"].value is None


# -- cells and comparisons


def test_cells_are_the_combinations_that_occur() -> None:
    keys = {
        "target": np.array(["a", "a", "b"], dtype=object),
        "pool": np.array(["p", "q", "p"], dtype=object),
        "partner": np.array([None, "a", None], dtype=object),
    }
    units = Units(keys, np.array(["s1", "s2", "s1"], dtype=object), np.array(["s1", "s2", "s1"], dtype=object))
    cells = [(key, mask.tolist()) for key, mask in units.cells([(), ("target", "pool"), ("partner",)])]
    assert cells == [
        ({}, [True, True, True]),
        ({"target": "a", "pool": "p"}, [True, False, False]),
        ({"target": "a", "pool": "q"}, [False, True, False]),
        ({"target": "b", "pool": "p"}, [False, False, True]),
        ({"partner": "a"}, [False, True, False]),
    ]


def test_the_best_is_the_highest_or_where_low_is_better_the_lowest() -> None:
    values = {"a": 0.5, "b": 0.7, "c": None, "d": 0.7}
    assert find_best("latent_accuracy", values) == "b"
    assert find_best("drift_latent", values) == "a"
    assert find_best("t_actual", values) is None
    assert find_best("latent_accuracy", {"a": None}) is None


def sides(a: list[float], b: list[float]) -> tuple[ComparisonSide, ComparisonSide]:
    void = np.zeros(len(a), dtype=bool)
    clusters = np.arange(len(a))
    one, other = (mean_over_units("latent_accuracy", np.array(each), void=void) for each in (a, b))
    every = np.arange(len(clusters))
    return ComparisonSide.of(one, every, clusters, len(a)), ComparisonSide.of(other, every, clusters, len(a))


def test_a_difference_is_over_shared_dialogues_and_their_same_resamples() -> None:
    bootstrap = Bootstrap(2000, 4)
    a, b = [1.0, 0.5, 0.25, NAN], [0.5, 0.25, NAN, 1.0]
    (found,) = paired_differences([sides(a, b)], bootstrap)
    assert (found.difference, found.n) == (pytest.approx(0.375), 2)
    loop = []
    for drawn in bootstrap.counts(4):
        if drawn[0] + drawn[1]:
            loop.append((drawn[0] * 0.5 + drawn[1] * 0.25) / (drawn[0] + drawn[1]))
    assert (found.ci_low, found.ci_high) == pytest.approx(tuple(np.percentile(loop, [2.5, 97.5])))
    assert found.p == pytest.approx(2 / (len(loop) + 1))


def test_a_difference_that_is_the_same_everywhere_has_no_interval() -> None:
    (found,) = paired_differences([sides([1.0, 0.5, 0.75], [0.5, 0.0, 0.25])], Bootstrap(500, 4))
    assert (found.difference, found.ci_low, found.p, found.n) == (0.5, None, pytest.approx(2 / 501), 3)
    (found,) = paired_differences([sides([1.0, 0.5, 0.75], [1.0, 0.5, 0.75])], Bootstrap(500, 4))
    assert (found.difference, found.ci_low, found.p, found.n) == (0.0, None, 1.0, 3)


def test_what_only_rounding_sets_apart_is_a_tie() -> None:
    # eight dialogues of ten: the same ten scores in another order; two differ by 0.5 either way
    scores = np.array([0.1, 0.2, 0.3, 0.7, 1.1, 1.3])
    one, other = scores @ np.full(6, 1 / 6), scores[::-1] @ np.full(6, 1 / 6) + 5e-16
    assert one != other
    a, b = [one] * 8 + [1.0, 1.5], [other] * 8 + [0.5, 1.0]
    exact = [0.0] * 8 + [1.0, 1.5], [0.0] * 8 + [0.5, 1.0]
    rounded, plain = paired_differences([sides(a, b), sides(*exact)], Bootstrap(500, 4))
    assert (rounded.ci_low, rounded.p) == (0.0, plain.p)
    assert (plain.ci_low, rounded.ci_high) == (0.0, pytest.approx(plain.ci_high))


def test_targets_without_a_shared_dialogue_cannot_be_compared() -> None:
    (found,) = paired_differences([sides([1.0, NAN], [NAN, 1.0])], Bootstrap(500, 4))
    assert (found.difference, found.p, found.n) == (None, None, 0)


def test_void_dialogues_are_resampled_but_one_that_counts_is_no_interval() -> None:
    observed = mean_over_units("alignment", np.array([0.5, NAN, NAN]), void=np.array([False, True, True]))
    got = measure([observed], np.arange(3), Bootstrap(200, 1))[0]
    assert (got.value, got.n, got.n_fault, got.ci_low, got.ci_high) == (0.5, 1, 2, None, None)


# -- simulator health


def measured(metric: str, *turns: str, final_intent: str = "", seeded: str | None = "Hello") -> float:
    said = Said.of([turns if seeded is None else (seeded, *turns)])
    nothing, finals = np.zeros(1), pl.Series([final_intent])
    heard = Heard(said, (said.position == 0) & (seeded is not None), finals, nothing, nothing, nothing)
    return float(measure_conversations(heard, 50)[f"simulator_{metric}"][0])


def test_words_are_matched_whole() -> None:
    texts = pl.Series(["Could you, PLEASE?", "麻烦您看一下", "I was pleased; what a sorrypants idea"])
    (words,) = split_words(texts)
    assert find_polite(texts, words).tolist() == [True, True, False]
    (words,) = split_words(pl.Series(["it's 5 o’clock，谢谢"]))
    assert words.spelt.to_list() == ["it's 5 o’clock 谢 谢"]


def test_a_repeated_turn_is_one_that_was_said_before() -> None:
    assert measured("repeated_share", "hello!", "Fine.", "fine", "") == 2


def test_front_loading_is_the_share_of_the_said_that_is_said_at_once() -> None:
    intent = "change career without telling boss"
    assert measured("front_loading", "my boss", final_intent=intent, seeded="a career question") == 0.5
    assert measured("front_loading", "again", final_intent=intent, seeded="a career change") == 1.0
    assert np.isnan(measured("front_loading", final_intent=intent, seeded="a career question"))
    assert np.isnan(measured("front_loading", "again", final_intent=intent))


def test_verbosity_variation_of_even_and_uneven_turns() -> None:
    assert measured("verbosity_variation", "one two", "three four") == 0.0
    assert measured("verbosity_variation", "one", "two three four") == pytest.approx(0.5)
    assert np.isnan(measured("verbosity_variation", "one"))
    assert np.isnan(measured("verbosity_variation", "", "…"))


def test_thirds_of_the_scale() -> None:
    assert thirds(np.array([0, 1.5, 5 / 3, 3, 10 / 3, 5])).tolist() == [0, 0, 1, 1, 2, 2]
