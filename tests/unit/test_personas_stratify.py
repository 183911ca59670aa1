"""Quotas by largest remainder, and the draw."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.personas.pool import draw, quotas
from tasks.personas.readers.personamem import tercile_names

SIZES = st.dictionaries(st.text("abcdefgh", min_size=1, max_size=3), st.integers(1, 60), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("sizes", "total", "expected"),
    [
        ({"a": 50, "b": 30, "c": 20}, 10, {"a": 5, "b": 3, "c": 2}),
        # 7 of 60: 3.5, 2.33, 1.17 → 3 + 2 + 1 = 6, the seventh goes to the largest remainder (a).
        ({"a": 30, "b": 20, "c": 10}, 7, {"a": 4, "b": 2, "c": 1}),
        # 1 of 3 equal strata: equal remainders, the first name wins.
        ({"b": 5, "a": 5, "c": 5}, 1, {"b": 0, "a": 1, "c": 0}),
        ({"a": 2, "b": 3}, 100, {"a": 2, "b": 3}),
        ({"a": 2, "b": 3}, 0, {"a": 0, "b": 0}),
        ({}, 5, {}),
    ],
)
def test_quotas_worked_by_hand(sizes: dict[str, int], total: int, expected: dict[str, int]) -> None:
    assert quotas(sizes, total) == expected


@given(SIZES, st.integers(0, 800))
def test_quotas_add_up_exactly_and_never_exceed_a_stratum(sizes: dict[str, int], total: int) -> None:
    given_out = quotas(sizes, total)
    assert sum(given_out.values()) == min(total, sum(sizes.values()))
    assert all(0 <= given_out[name] <= size for name, size in sizes.items())


@given(SIZES, st.integers(0, 800))
def test_each_quota_is_within_one_of_its_proportional_share(sizes: dict[str, int], total: int) -> None:
    whole = sum(sizes.values())
    total = min(total, whole)
    assert all(abs(quotas(sizes, total)[name] - total * size / whole) < 1 for name, size in sizes.items())


@given(SIZES, st.integers(0, 800))
def test_a_larger_stratum_never_gets_fewer_and_of_equal_ones_the_first_by_name_gets_more(
    sizes: dict[str, int], total: int
) -> None:
    ordered = sorted(sizes, key=lambda name: (-sizes[name], name))
    given_out = quotas(sizes, total)
    assert all(given_out[more] >= given_out[less] for more, less in pairwise(ordered))


@given(SIZES, st.integers(0, 800), st.randoms())
def test_quotas_do_not_depend_on_the_order_of_the_strata(sizes: dict[str, int], total: int, random: Random) -> None:
    shuffled = sorted(sizes, key=lambda name: random.random())
    assert quotas({name: sizes[name] for name in shuffled}, total) == quotas(sizes, total)


def test_a_stratum_too_small_for_its_share_of_a_whole_place_may_get_none() -> None:
    # 10 of 1,002: 9.98, 0.01, 0.01 → 9 + 0 + 0, and the tenth place goes to the largest remainder.
    assert quotas({"many": 1000, "few": 1, "one": 1}, 10) == {"many": 10, "few": 0, "one": 0}


@given(st.lists(st.sampled_from("abcde"), max_size=60), st.integers(0, 80), st.integers(0, 5))
def test_a_draw_has_the_exact_total_and_of_each_stratum_its_quota(strata: list[str], total: int, seed: int) -> None:
    drawn, quota = draw([f"persona_{i}" for i in range(len(strata))], strata, total, seed)
    assert len(drawn) == len(set(drawn)) == min(total, len(strata)) == sum(quota.values())
    assert set(quota) == set(strata)
    assert Counter(strata[i] for i in drawn) == Counter({name: count for name, count in quota.items() if count})


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=40))
def test_a_pool_smaller_than_wanted_is_drawn_whole(strata: list[str]) -> None:
    ids = [f"persona_{i}" for i in range(len(strata))]
    drawn, quota = draw(ids, strata, len(strata) + 7, seed=1)
    assert sorted(drawn) == list(range(len(ids))) and quota == Counter(strata)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=50), st.integers(1, 60), st.randoms())
def test_the_draw_depends_on_ids_and_not_on_row_order(strata, total, random) -> None:
    ids = [f"persona_{i}" for i in range(len(strata))]
    order = list(range(len(ids)))
    random.shuffle(order)
    drawn, quota = draw(ids, strata, total, seed=3)
    again, quota_again = draw([ids[i] for i in order], [strata[i] for i in order], total, seed=3)
    assert [ids[i] for i in drawn] == [ids[order[i]] for i in again]
    assert quota == quota_again


def test_a_draw_holds_each_persona_once_and_every_quota() -> None:
    strata = ["x"] * 30 + ["y"] * 10
    drawn, quota = draw([f"p{i}" for i in range(40)], strata, 8, seed=1)
    assert len(set(drawn)) == 8 and quota == {"x": 6, "y": 2}
    assert [sum(strata[i] == name for i in drawn) for name in "xy"] == [6, 2]


def test_another_seed_draws_others() -> None:
    ids = [f"p{i}" for i in range(40)]
    assert draw(ids, ["x"] * 40, 8, seed=1) != draw(ids, ["x"] * 40, 8, seed=2)


def test_the_ranks_are_a_shuffle_of_the_whole_pool_and_not_stratum_by_stratum() -> None:
    strata = ["x", "y"] * 50
    drawn, _ = draw([f"p{i}" for i in range(100)], strata, 100, seed=1)
    first = [strata[i] for i in drawn[:50]]
    assert 15 <= first.count("x") <= 35


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3, 4, 5, 6], ["short", "short", "medium", "medium", "long", "long"]),
        ([5, 5, 5], ["short", "short", "short"]),
        ([None, 9], [None, "short"]),
        ([], []),
        ([None], [None]),
    ],
)
def test_terciles_keep_equal_values_together(values: list[int | None], expected: list[str | None]) -> None:
    assert tercile_names(values) == expected
