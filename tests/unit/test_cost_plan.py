"""Expected amounts, their ranges, what they mean for time and budgets."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tasks.foundation.llm.budget import Allowed, Spent
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.run.cost_plan import (
    Expected,
    PlannedCalls,
    by_alias,
    find_passed_budgets,
    hours_of,
    planned_in,
    total_of,
    unpriced_in,
)

SPEC = ModelSpec("m", "openai", "some-model", "f", base_url="http://localhost/v1", max_in_flight=4)


def planned(calls: float = 100, dollars: float | None = 2.0, alias: str = "m", **changes: Any) -> PlannedCalls:
    amount = Expected.exactly(calls).spread(1.25)
    return replace(
        PlannedCalls(
            *(alias, "ask", amount, amount, amount * 10, amount * 5),
            dollars=None if dollars is None else Expected.exactly(dollars).spread(2),
            most_tokens=calls * 99,
            most_dollars=None if dollars is None else 10 * dollars,
            call_seconds=36.0,
        ),
        **changes,
    )


def test_factors_that_err_apart_widen_less_than_their_product() -> None:
    both = Expected.exactly(100).spread(1.25, 1.25)
    assert 125 < both.high < 100 * 1.25**2
    assert both.low * both.high == pytest.approx(100**2)
    assert Expected.exactly(7).spread(1.0) == Expected.exactly(7)


def test_sums_keep_what_has_no_price_apart() -> None:
    priced, unpriced = planned(), planned(dollars=None, alias="other")
    total = total_of([priced, unpriced])
    assert total.calls.value == 200 and total.dollars == priced.dollars
    assert unpriced_in([priced, unpriced]) == ["other"]
    assert total_of([]).dollars == Expected.exactly(0)
    assert by_alias([priced, planned(dollars=None)])[0].dollars is None, "half a price is none"
    assert [each.alias for each in by_alias([priced, unpriced, priced])] == ["m", "other"]


def test_a_plan_survives_the_commit_record() -> None:
    calls = [planned(), planned(dollars=None)]
    record = json.loads(json.dumps({"plan": [each.to_json() for each in calls]}))
    assert [each.to_json() for each in planned_in(record)] == record["plan"]


def test_a_share_of_a_plan_and_one_that_may_not_be_needed() -> None:
    quarter = planned().scaled(0.25)
    assert (quarter.calls.value, quarter.most_tokens, quarter.dollars and quarter.dollars.value) == (25, 2475, 0.5)
    perhaps = planned().possibly().calls
    assert (perhaps.low, perhaps.value) == (0, 100)


def test_hours_follow_from_limits_or_from_what_calls_take() -> None:
    # 100 calls of 36 s, four at once
    assert hours_of([planned()], {"m": SPEC}) == Expected.exactly(100).spread(1.25) * (36 / 4 / 3600)
    limited = hours_of([planned()], {"m": replace(SPEC, requests_per_minute=1)})
    assert limited is not None and limited.value == pytest.approx(100 / 60)
    tokens = hours_of([planned()], {"m": replace(SPEC, tokens_per_minute=10)})
    assert tokens is not None and tokens.value == pytest.approx(1500 / 10 / 60)
    assert hours_of([planned(call_seconds=None)], {"m": SPEC}) is None
    assert hours_of([], {}) == Expected.exactly(0)


def test_a_speed_that_is_given_goes_before_what_was_measured_and_only_for_models_without_a_price() -> None:
    free = hours_of([planned(dollars=None)], {"m": SPEC}, tokens_per_second=1.0)
    assert free is not None and free.value == pytest.approx(500 / 3600)
    assert hours_of([planned()], {"m": SPEC}, tokens_per_second=1.0) == hours_of([planned()], {"m": SPEC})


def test_models_work_side_by_side() -> None:
    slow = hours_of([planned(), planned(alias="n", call_seconds=1.0)], {"m": SPEC, "n": SPEC})
    assert slow == hours_of([planned()], {"m": SPEC})


def test_rows_ask_one_thing_after_another() -> None:
    # 200 calls of 36 s, whichever model they are to, in two rows at a time
    both = hours_of([planned(), planned(alias="n")], {"m": SPEC, "n": SPEC}, rows_at_once=2)
    assert both is not None and both.value == pytest.approx(200 * 36 / 2 / 3600)
    assert hours_of([planned()], {"m": SPEC}, rows_at_once=4) == hours_of([planned()], {"m": SPEC})
    free = [planned(dollars=None)]
    given = hours_of(free, {"m": SPEC}, tokens_per_second=1.0, rows_at_once=1)
    assert given == hours_of(free, {"m": SPEC}, tokens_per_second=1.0)


@pytest.mark.parametrize(
    ("budget", "by"),
    [
        ({"max_calls": 99}, ["expected"]),
        ({"max_calls": 110}, ["perhaps"]),
        ({"max_calls": 125}, []),
        ({"max_tokens": 1499}, ["expected"]),
        ({"max_cost_usd": 3.0}, ["perhaps"]),
        ({}, []),
    ],
)
def test_a_budget_is_held_against_what_is_expected_and_against_the_upper_end(
    budget: dict[str, Any], by: list[str]
) -> None:
    assert [one.by for one in find_passed_budgets(Allowed("run.budget", Spent(), **budget), [planned()])] == by


def test_what_a_build_has_spent_counts_and_dollars_need_a_price() -> None:
    (passed,) = find_passed_budgets(Allowed("run.budget", Spent(calls=50), max_calls=140), [planned()])
    assert (passed.planned.value, passed.limit) == (150, "run.budget.max_calls")
    unpriced = find_passed_budgets(Allowed("x", Spent(), max_cost_usd=99), [planned(dollars=None)])
    assert [one.by for one in unpriced] == ["unpriced"]
