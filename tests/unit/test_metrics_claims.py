"""What a board may claim, on a scripted study of seven targets, two pools of 10 and 40 seeds, and two judges.

Every conversation has two turns, and satisfaction 5 in pool small; in pool large 3 on even seeds and 4 on odd ones.
Judge b gives one point less than judge a.

    aaa      fails at its first turn in every conversation, by its own fault
    ann      as said
    ben      exactly as ann
    cid      1 everywhere, but 2 on four seeds
    dot      as ann, but judge b has judged none of it
    eve      infrastructure took all of its conversations: not one row
    fay      as ann, but 16 conversations on even seeds of pool large are lost, and on one of those left it is worse
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.foundation.stage import Prepared
from tasks.foundation.stats.bootstrap import Bootstrap, Design, Part, intervals_of, spread, widening
from tasks.foundation.stats.sums import ratio
from tasks.foundation.tables import TABLES
from tasks.metrics.cells import CellMeasurer, Units
from tasks.metrics.comparison_rows import Comparer
from tasks.metrics.observed import Sample, mean_over_units, measure
from tasks.metrics.panel import find_common_judges
from tasks.metrics.task import READS, prepare
from tests.unit.metrics_study import (
    Context,
    Rows,
    awareness_score,
    chat_seed,
    conversation,
    final_judgement,
    item,
    prediction,
    turn,
    turn_judgement,
)

A, B = "scripted-a", "scripted-b"
SEEDS = {**{f"s{n:02d}": "small" for n in range(10)}, **{f"s{n:02d}": "large" for n in range(10, 50)}}
EVEN = [seed for seed, pool in SEEDS.items() if pool == "large" and int(seed[1:]) % 2 == 0]
LOST = EVEN[:16]
TARGETS = ("aaa", "ann", "ben", "cid", "dot", "fay")


def satisfaction_of(target: str, seed: str) -> int:
    """By judge a."""
    if target == "cid":
        return 2 if seed in ("s00", "s01", "s10", "s11") else 1
    usual = 5 if SEEDS[seed] == "small" else 3 + int(seed[1:]) % 2
    return usual - (target == "fay" and seed == "s48")


def plant(rows: Rows, target: str, seed: str) -> None:
    name, failed = f"{target}-{seed}", target == "aaa"
    ending = {"stop_reason": "fault", "fault": "target", "t_actual": 0} if failed else {"t_actual": 2}
    rows["conversations"].append(conversation(name, seed, target, pool=SEEDS[seed], **ending))
    for turn_index in (1,) if failed else (1, 2):
        predicted = {"predicted_latent": "Finding Meaning"} if target == "cid" else {}
        answer = {"assistant_text": None} if failed else {}
        rows["conversation_turns"].append(turn(name, turn_index, **predicted, **answer))
    for judge in (A,) if target == "dot" else (A, B):
        given = 1 if failed else max(1, satisfaction_of(target, seed) - (judge == B))
        rows["final_intent_judgements"].append(final_judgement(name, judge, False, given))
        for turn_index in (1,) if failed else (1, 2):
            rows["turn_judgements"].append(turn_judgement(name, turn_index, judge, 0.0 if failed else 0.5))


def planted() -> Rows:
    rows: Rows = {name: [] for name in READS}
    rows["chat_seeds"] = [chat_seed(seed, pool) for seed, pool in SEEDS.items()]
    for target in TARGETS:
        for seed in SEEDS:
            if target != "fay" or seed not in LOST:
                plant(rows, target, seed)
    return rows


@cache
def prepared() -> Prepared:
    context = Context(planted(), f"judging.judges=[{A},{B}]", "metrics.resamples=999")
    context.tried["conversations"] = ("eve",)
    return prepare(context)


def row(table: str, **wanted: Any) -> Any:
    """The one row with these values, and null in every other key column."""
    key = TABLES[table].key
    wanted = {**dict.fromkeys(name for name in key if name not in ("kind", "benchmark", "metric")), **wanted}
    found = [each for each in prepared().rows[table] if all(getattr(each, name) == wanted[name] for name in wanted)]
    assert len(found) == 1, (wanted, len(found))
    return found[0]


def rows_of(table: str, **wanted: Any) -> list[Any]:
    return [each for each in prepared().rows[table] if all(getattr(each, name) == wanted[name] for name in wanted)]


def test_pools_weigh_alike_however_large_they_are() -> None:
    # the panel's means are 4.5 in the small pool and 3 in the large one: 87.5 and 50
    pools = [row("metrics", metric="satisfaction", target="ann", pool=pool).value for pool in ("small", "large")]
    assert pools == pytest.approx([87.5, 50.0])
    whole = row("metrics", metric="satisfaction", target="ann")
    assert (whole.value, whole.n) == (pytest.approx(68.75), 50)
    # 1 less on all pairs of resamples: the interval is that of half the large pool's
    large = row("metrics", metric="satisfaction", target="ann", pool="large")
    assert whole.ci_high - whole.ci_low == pytest.approx((large.ci_high - large.ci_low) / 2, rel=0.15)


def test_a_target_of_which_nothing_is_left_is_on_the_board() -> None:
    for metric in ("satisfaction", "ficr", "latent_accuracy", "drift_latent"):
        found = row("metrics", metric=metric, target="eve")
        assert (found.value, found.n, found.units, found.units_void) == (None, 0, 50, 50)
    assert row("metrics", metric="void_share", target="eve").value == 1.0
    assert row("metrics", metric="satisfaction", target="eve", pool="small").units_void == 10
    assert not rows_of("ranks", target="eve")
    assert not [each for each in rows_of("comparisons", kind="best") if "eve" in (each.target_a, each.target_b)]


def test_lost_conversations_stand_as_conversations_beside_a_turn_metric() -> None:
    found = row("metrics", metric="latent_accuracy", target="fay")
    assert (found.units, found.units_void) == (50, 16)
    assert (found.n, found.n_fault) == (68, 16)


def test_a_score_with_many_void_has_the_bounds_of_the_worst_cases() -> None:
    # of the large pool 16 of 40 are void; the other 24 have, by the panel, 2.5 three times, 1.5 once, 3.5 twenty times
    found = row("metrics", metric="satisfaction", target="fay")
    large = 25 * ((3 * 2.5 + 1.5 + 20 * 3.5) / 24 - 1)
    assert found.value == pytest.approx((87.5 + large) / 2)
    ends = (found.worst_low, found.worst_high)
    assert ends == pytest.approx(((87.5 + 0.6 * large) / 2, (87.5 + 0.6 * large + 40) / 2))
    truth = row("metrics", metric="satisfaction", target="ann").value
    assert found.worst_low < truth < found.worst_high
    assert row("metrics", metric="satisfaction", target="ann").worst_low is None
    assert row("metrics", metric="latent_macro_f1", target="fay").worst_low is None, "it is no mean"


def test_a_judge_that_is_absent_is_named_and_targets_are_compared_by_the_others() -> None:
    assert row("metrics", metric="satisfaction", target="dot").absent_judges == [B]
    assert row("metrics", metric="satisfaction", target="ann").absent_judges == []
    assert row("metrics", metric="latent_accuracy", target="dot").absent_judges == []
    assert row("metrics", metric="satisfaction", target="dot", judge=B).absent_judges == [B]
    # without judge b, who gives less, it looks better than ann; by judge a they are the same
    assert row("metrics", metric="satisfaction", target="dot").value == pytest.approx(81.25)
    ranks = {each.target: each for each in rows_of("ranks", metric="satisfaction", pool=None, language=None)}
    assert ranks["ann"].rank == ranks["ben"].rank == ranks["dot"].rank == 2
    assert all(each.judges == [A] for each in ranks.values())
    assert all(each.judges == [] for each in rows_of("ranks", metric="latent_accuracy"))


def test_a_tied_pair_may_both_be_the_best_and_one_far_behind_may_not() -> None:
    ranks = {each.target: each for each in rows_of("ranks", metric="satisfaction", pool=None, language=None)}
    assert [ranks[target].may_be_best for target in ("ann", "ben", "dot", "fay", "cid")] == [True] * 4 + [False]
    assert (ranks["cid"].rank_low, ranks["cid"].rank_high, ranks["cid"].n_targets) == (5, 6, 6)
    assert {each.metric for each in rows_of("ranks", is_primary=True)} == {"satisfaction", "ficr"}


def test_a_best_value_that_is_behind_on_what_both_have_done_says_so() -> None:
    best = rows_of("comparisons", kind="best", metric="satisfaction", pool=None, language=None)
    assert {each.target_a for each in best} == {"fay"}
    reversed_to = {each.target_b for each in best if each.is_reversed}
    assert reversed_to == {"ann", "ben", "dot"}
    assert row("comparisons", kind="best", metric="satisfaction", target_a="fay", target_b="ann").n == 34


def test_a_target_that_failed_everything_is_never_the_best() -> None:
    """It would be the first by name of those that reach no final intent, and of those whose labels are all readable."""
    assert row("metrics", metric="ficr", target="aaa").value == row("metrics", metric="ficr", target="ann").value == 0.0
    assert row("metrics", metric="unreadable_share", target="aaa").value == 1.0
    assert row("metrics", metric="unreadable_share", target="ann").value == 0.0
    assert "aaa" not in {each.target_a for each in rows_of("comparisons", kind="best")}
    assert not any(each.may_be_best for each in rows_of("ranks", target="aaa"))
    assert rows_of("ranks", target="aaa", metric="ficr", pool=None)[0].rank == 1


def test_every_row_fits_its_table_and_no_key_comes_twice() -> None:
    for name in ("metrics", "comparisons", "ranks"):
        rows, table = prepared().rows[name], TABLES[name]
        assert table.arrow(rows).num_rows == len(rows)
        keys = [tuple(getattr(each, column) for column in table.key) for each in rows]
        assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("judged_by", "judges", "targets"),
    [
        ({"x": "abc", "y": "abc"}, "abc", "xy"),
        ({"x": "abc", "y": "ab", "z": "ac"}, "a", "xyz"),
        ({"x": "ab", "y": "ab", "z": "c"}, "ab", "xy"),
        ({"x": "a", "y": "b"}, "a", "x"),
        ({"x": "ad"}, "a", "x"),
        ({}, "abc", ""),
    ],
)
def test_the_judges_that_all_have_in_common(judged_by: dict[str, str], judges: str, targets: str) -> None:
    assert find_common_judges("abc", judged_by) == (tuple(judges), frozenset(targets))


# -- levels


@given(
    st.lists(st.lists(st.floats(0, 100), min_size=1, max_size=8), min_size=1, max_size=4),
    st.data(),
)
@settings(deadline=None, max_examples=60)
def test_a_value_of_all_pools_is_the_mean_of_theirs_and_lies_between_its_worst_cases(
    pools: list[list[float]], data: st.DataObject
) -> None:
    """Whatever the void ones would have had."""
    truth = np.array([value for pool in pools for value in pool])
    codes = np.repeat(np.arange(len(pools)), [len(pool) for pool in pools])
    void = np.array(data.draw(st.lists(st.booleans(), min_size=len(truth), max_size=len(truth))))
    observed = mean_over_units("satisfaction", truth, void=void)
    clusters = np.arange(len(truth))
    [found] = measure([observed], clusters, Bootstrap(20, 1), Sample(clusters, codes))
    whole = np.mean([np.mean(pool) for pool in pools])
    here = [codes == pool for pool in range(len(pools))]
    of_pools = [measure([observed.only(pool)], clusters[pool], Bootstrap(20, 1))[0] for pool in here]
    values = [each.value for each in of_pools]
    assert found.value == (None if None in values else pytest.approx(np.mean(values)))  # type: ignore[arg-type]
    shares = [void[pool].mean() for pool in here]
    if found.worst_low is None:
        assert np.mean(shares) <= 0.05 or void.all()
    else:
        assert found.worst_low - 1e-6 <= whole <= found.worst_high + 1e-6


def equal_targets(rng: np.random.Generator, seeds: int, targets: int) -> np.ndarray:
    return 50 + 10 * rng.normal(size=(seeds, 1)) + 10 * rng.normal(size=(seeds, targets))


def test_equal_targets_on_unequal_pools_stay_in_the_set_of_the_best() -> None:
    """By two primary metrics together, on pools of 20 and 80 seeds, a pool harder than the other: at most 5 % of boards
    leave one out, plus Monte Carlo error."""
    rng, boards, wrong = np.random.default_rng(11), 80, 0
    pools = np.array(["a"] * 20 + ["b"] * 80, dtype=object)
    for _ in range(boards):
        seeds, targets = len(pools), 7
        names = np.repeat(np.array([f"t{n}" for n in range(targets)], dtype=object), seeds)
        tasks = np.tile(np.array([f"s{n:03d}" for n in range(seeds)], dtype=object), targets)
        units = Units({"target": names, "pool": np.tile(pools, targets)}, tasks, tasks)
        void = np.zeros(len(names), bool)
        observed = []
        for metric in ("satisfaction", "empathy_weighted"):
            scores = equal_targets(rng, seeds, targets) - 30 * (pools == "a")[:, None]
            observed.append(mean_over_units(metric, scores.T.ravel(), void=void))
        comparer = Comparer("eyt", CellMeasurer(units, Bootstrap(400, 7)), [each.metric for each in observed])
        wrong += not all(rank.may_be_best for rank in comparer.rank_targets(observed, ((),)))
    assert wrong / boards <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / boards)


def test_an_interval_covers_the_truth_where_few_characters_share_many_dialogues() -> None:
    """Twelve characters in a hundred dialogues, of which each has a tendency: resamples of dialogues cover the truth in
    half of the cases."""
    rng, characters, dialogues, times = np.random.default_rng(3), 12, 100, 150
    pairs = np.array([(a, b) for a in range(characters) for b in range(a + 1, characters)])
    hits = {"dialogues": 0, "characters": 0}
    for _ in range(times):
        talk = pairs[rng.integers(0, len(pairs), dialogues)]
        scores = (0.5 * rng.normal(size=characters))[talk].sum(axis=1) + rng.normal(size=dialogues)
        design = Design(np.zeros(dialogues, int), talk)
        part = Part(np.stack([scores, np.ones(dialogues)], axis=1), ratio())
        [resampled] = Bootstrap(400, 1).distributions([part], design)
        value = part.value(design)
        by = widening(part.effects(design)[:, None], design)[0]
        for name, drawn in (("dialogues", resampled), ("characters", spread(resampled, value, by))):
            [interval] = intervals_of([drawn])
            assert interval is not None
            hits[name] += interval.low <= 0 <= interval.high
    assert hits["dialogues"] / times < 0.75
    assert hits["characters"] / times > 0.95 - 3 * np.sqrt(0.05 * 0.95 / times)


def test_nothing_is_widened_where_nobody_talks_twice() -> None:
    talk = np.array([[0, 1], [2, 3], [4, -1], [-1, -1]])
    effects = np.array([[1.0], [-2.0], [3.0], [0.5]])
    assert widening(effects, Design(np.zeros(4, int), talk)).tolist() == [1.0]
    shared = np.array([[0, 1], [0, 3], [4, -1], [-1, -1]])
    assert widening(effects, Design(np.zeros(4, int), shared))[0] > 1.0


@pytest.mark.parametrize("characters", [4, 40])
def test_dialogues_of_demo_that_share_characters_have_wider_intervals(characters: int) -> None:
    rows: Rows = {name: [] for name in READS}
    for number in range(20):
        dialogue, pairing = f"d{number:02d}", f"p{number:02d}"
        one, other = (f"c{(2 * number + side) % characters}" for side in range(2))
        rows["dialogues"].append(some("dialogues", dialogue_id=dialogue, pairing_id=pairing))
        rows["pairings"].append(some("pairings", pairing_id=pairing, character1_id=one, character2_id=other))
        rows["awareness_items"].append(item(f"goal-{number}", "goal", dialogue))
        rows["awareness_predictions"].append(prediction(f"goal-{number}", "ann"))
        rows["awareness_scores"].append(awareness_score(f"goal-{number}", "ann", A, number % 10, 5))
    found = prepare(Context(rows, f"judging.judges=[{A}]")).rows["metrics"]
    [cell] = [each for each in found if (each.metric, each.judge, each.language) == ("goal", None, None)]  # type: ignore[attr-defined]
    if characters == 4:
        assert cell.widened > 1  # type: ignore[attr-defined]
    else:
        assert cell.widened is None  # type: ignore[attr-defined]


def some(table: str, **values: Any) -> dict[str, Any]:
    """A row of a table of the first benchmark, with something in every column that is not named."""
    plain: dict[str, Any] = {
        "string": "x",
        "int32": 1,
        "bool": False,
        "double": 0.5,
        "list<element: string>": [],
        "list<item: string>": [],
    }
    filled = {name: plain.get(kind) for name, kind in TABLES[table].shape.items()}
    fixed = {"language": "en", "stop_reason": "ended"}
    return {**filled, **{name: value for name, value in fixed.items() if name in filled}, **values}
