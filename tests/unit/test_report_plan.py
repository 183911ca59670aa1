"""The report's plan and actual: who was planned, what was taken, and that what is not known is not drawn as 0."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tasks.foundation.run.cost_plan import Expected, PlannedCalls
from tasks.report import charts
from tasks.report.blocks import Figure, Table
from tasks.report.build import _tiles
from tasks.report.cost_section import compare_with_plan, cost
from tasks.report.questions import QueryResult
from tests.contract.sql_rows import tables_of
from tests.unit.test_report_page import commit

COSTS = ("stage", "alias", "calls", "from_cache", "prompt_tokens", "completion_tokens", "cost_usd")


def costs(*rows: tuple[Any, ...]) -> QueryResult:
    return QueryResult("costs", "select 1", COSTS, rows)


def planned(alias: str, low: float, high: float, dollars: Expected | None = None, purpose: str = "ask") -> PlannedCalls:
    calls = Expected((low + high) / 2, low, high)
    return PlannedCalls(alias, purpose, calls, calls, calls * 10, calls * 5, dollars, 0, None, None)


def with_plan(stage: str, *calls: PlannedCalls, member: str | None = None) -> Any:
    return commit(stage, member, plan=[each.to_json() for each in calls])


def page(answer: QueryResult, commits: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The blocks of the section by heading."""
    others = {
        "costs": answer,
        "funnel": QueryResult("funnel", "", ("stage",), (("voting",), ("judging",))),
        "models_in_use": QueryResult("models_in_use", "", ("alias",), ()),
        "cost_by_target": QueryResult("cost_by_target", "", ("target",), ()),
    }
    return {group.heading: group.blocks for group in cost(others.__getitem__, commits, "b1").groups}


def test_a_model_of_several_members_and_purposes_is_one_line_of_its_stage() -> None:
    commits = {
        "conversation@x": with_plan("conversation", planned("x", 1, 4), planned("sim", 2, 8), member="x"),
        "conversation@y": with_plan(
            "conversation", planned("y", 1, 4), planned("sim", 2, 8, purpose="more"), member="y"
        ),
    }
    records = compare_with_plan(commits, costs(("conversation", "sim", 5, 1, 100, 20, 0.5)))
    assert [record["model"] for record in records] == ["x", "sim", "y"]
    sim = records[1]
    assert (sim["calls_low"], sim["calls_high"], sim["calls"]) == (4, 16, 5)
    assert (sim["tokens_low"], sim["tokens_high"], sim["tokens"]) == (60, 240, 120)
    assert (records[0]["calls"], records[0]["tokens"]) == (0, 0), "planned and never asked"


def test_unknown_tokens_and_prices_stay_unknown() -> None:
    (record,) = compare_with_plan(
        {"v": with_plan("voting", planned("m", 1, 2))}, costs(("voting", "m", 1, 0, None, 3, None))
    )
    assert (record["tokens"], record["dollars"], record["dollars_high"]) == (None, None, None)


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        ((10, 0, 100, 50, 0.2), "yes"),
        ((21, 0, 100, 50, 0.2), "more calls"),
        ((0, 10, 0, 0, 0.0), "fewer calls, tokens, dollars (some came from the cache)"),
        ((10, 0, None, 50, None), "yes"),
    ],
)
def test_the_table_says_where_the_plan_was_wrong(row: tuple[Any, ...], verdict: str) -> None:
    commits = {"voting": with_plan("voting", planned("m", 10, 20, Expected(0.2, 0.1, 0.4)))}
    blocks = page(costs(("voting", "m", *row)), commits)["Plan and actual"]
    (table,) = (block for block in blocks if isinstance(block, Table))
    assert table.rows[0][-1].text == verdict
    assert table.rows[0][2].text == "15 (10 to 20)"
    assert isinstance(blocks[0], Figure)


def test_tokens_that_were_not_reported_are_left_out_of_the_chart_and_named() -> None:
    asked = [("voting", "a", 1, 0, 7, 3, 0.0), ("voting", "b", 1, 0, None, 4, 0.0), ("judging", "a", 1, 0, 9, 5, 0.0)]
    blocks = page(costs(*asked), {})[""]
    chart = blocks[0]
    assert isinstance(chart, Figure)
    assert "not drawn: voting (prompt)" in chart.caption
    assert chart.description == "voting: prompt not known, completion 7; judging: prompt 9, completion 5"


def test_an_unknown_value_has_no_bar_and_no_mark() -> None:
    def drawn(value: int | None) -> str:
        figure = charts.bars(
            "c", [{"x": "a", "n": value, "m": 5}, {"x": "b", "n": None, "m": 4}], "x", {"n": "n", "m": "m"}, "unit"
        )
        assert figure is not None
        return figure.svg

    assert drawn(None).count("<path") < drawn(3).count("<path")

    def ranged(value: float | None) -> str:
        records = [{"x": "a", "p": value, "p_low": 1, "p_high": 100}]
        figure = charts.ranges("c", records, "x", {"p": "P"})
        assert figure is not None
        return figure.svg

    assert ranged(None).count(charts.SERIES[0]) == 0
    assert ranged(10).count(charts.SERIES[0]) == 1
    assert ranged(1000).count(charts.BAD) == 1, "outside the plan"


def test_stages_that_ask_nothing_have_no_plan() -> None:
    asked = page(costs(("voting", "m", 1, 0, 1, 1, 0.0)), {"curation": with_plan("curation")})
    assert "Plan and actual" not in asked


def test_the_sum_at_the_top_says_which_prices_it_lacks() -> None:
    def tile(*rows: tuple[Any, ...]) -> tuple[str, str]:
        with tables_of({}) as connection:
            found = [one for one in _tiles(connection, costs(*rows)) if one.label.startswith("US dollars")]
        return found[0].value, found[0].label

    priced, unpriced = ("voting", "a", 1, 0, 1, 1, 2.5), ("judging", "b", 1, 0, 1, 1, None)
    assert tile(priced) == ("2.50", "US dollars")
    assert tile(priced, unpriced) == ("≥ 2.50", "US dollars; 1 model unpriced")


def test_a_plan_in_a_commit_is_plain_json() -> None:
    record = with_plan("voting", planned("m", 1, 2, Expected(0.5, 0, 1))).record
    assert json.loads(json.dumps(record)) == record
