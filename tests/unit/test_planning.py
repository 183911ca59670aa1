"""From what a stage asks to calls, tokens and dollars: numbers worked out by hand, and what is measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as some
from pydantic import BaseModel, Field

from flows import chain
from flows.chain.plan import _run_plan, without_reasks
from tasks.foundation.llm.budget import Allowed, Spent
from tasks.foundation.llm.models import ModelSpec, load_models
from tasks.foundation.llm.request import Message
from tasks.foundation.planning.calls import PlannedCalls, by_alias, planned_calls
from tasks.foundation.planning.estimate import Ask, Kind, Portion, View, estimator_of
from tasks.foundation.planning.extremes import compact, largest, smallest
from tasks.foundation.planning.known import MEASURES, committed, known_of
from tasks.foundation.planning.meter import Meter, PromptSize, Reply
from tasks.foundation.planning.span import Span
from tasks.foundation.planning.stage_plan import StagePlan
from tasks.foundation.planning.totals import minutes_at_least, passed, total_of
from tasks.foundation.settings import load_settings
from tasks.foundation.settings.sections import LlmSection
from tasks.foundation.store.commits import Commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import Part
from tasks.foundation.tables import TABLES

PRICES = {"input_per_million": 10.0, "cached_input_per_million": 1.0, "output_per_million": 100.0}
SPEC = ModelSpec("m", "openai", "some-model", "f", base_url="http://localhost/v1", prices=PRICES)
ASK = Ask("m", "ask", Span(2, 2), PromptSize(Span(100, 200), 90), Reply(Span(0, 10), 5), max_tokens=50)


def asking(**changes: Any) -> LlmSection:
    given = {"max_reasks": 2, "retry_attempts": 3, "salvage_rounds": 1, **changes}
    return load_settings("test").llm.model_copy(update=given)


def planned(ask: Ask = ASK, spec: ModelSpec = SPEC, *, batched: bool = False, **changes: Any) -> PlannedCalls:
    (found,) = planned_calls([ask], asking(**changes), {"m": spec}, batched=batched)
    return found


def test_high_is_every_reask_with_twice_the_tokens() -> None:
    calls = planned()
    # 3 tries: at most 2 failures, 11 refusals (4 x 3 are too many) and the reply; 3 replies, one more in the salvage
    assert calls.calls == Span(2, 2 * 3)
    # prompts of 210, 210 + (100 + 400) and 210 + 2 x (100 + 400) tokens; replies of 50, 100 and 100
    assert calls.prompt_tokens == Span(2 * 100, 2 * (210 + 710 + 1210))
    assert calls.completion_tokens == Span(2 * 5, 2 * 250)
    # low 100 x 10 + 5 x 100, high 2,130 x 10 + 250 x 100 dollars per million requests
    assert calls.dollars == Span(pytest.approx(2 * 1500e-6), pytest.approx(2 * 46_300e-6))


def test_without_reasks_and_retries_a_request_is_one_call() -> None:
    calls = planned(max_reasks=0, retry_attempts=1, salvage_rounds=0)
    assert (calls.calls, calls.completion_tokens) == (Span(2, 2), Span(10, 100))
    assert without_reasks(load_settings("test")).llm.max_reasks == 0


def test_a_prompt_is_never_longer_than_the_context() -> None:
    assert planned(spec=replace(SPEC, context_tokens=500)).prompt_tokens.high == 2 * (210 + 500 + 500)


def test_only_a_long_common_beginning_is_priced_as_cached() -> None:
    def low(repeated: float) -> float:
        calls = planned(replace(ASK, prompt=PromptSize(Span(2000, 2000), repeated)))
        assert calls.dollars is not None
        return calls.dollars.low

    assert low(1000) == pytest.approx(2 * (2000 * 10 + 5 * 100) / 1e6)
    assert low(1024) == pytest.approx(2 * (2000 * 1 + 5 * 100) / 1e6)


def test_a_batched_stage_is_planned_at_the_batch_price() -> None:
    spec = replace(SPEC, batch_share=0.5)
    live, batched = planned(spec=spec).dollars, planned(spec=spec, batched=True).dollars
    assert live is not None and batched == live * 0.5
    assert planned(batched=True).dollars is None


def test_a_model_without_a_price_is_named_and_its_dollars_are_not_added() -> None:
    unknown = planned(spec=replace(SPEC, prices=None))
    assert unknown.dollars is None
    total = total_of([planned(), replace(unknown, alias="other")])
    assert (total.dollars, total.unpriced) == (planned().dollars, ("other",))
    assert total.calls == Span(4, 12)
    assert by_alias([planned(), unknown])[0].dollars is None


def test_a_plan_survives_the_commit_record() -> None:
    plan = StagePlan([planned(), planned(spec=replace(SPEC, prices=None))], {}, ["a sentence"])
    assert StagePlan.calls_of({"plan": plan.to_json()}) == plan.calls
    assert StagePlan.calls_of({}) is None


def test_limits_a_minute_say_how_long_it_takes_at_least() -> None:
    calls = planned()
    assert minutes_at_least(calls, SPEC) is None
    # 6 calls at 8 a minute; 4,260 + 500 tokens at 100 a minute
    assert minutes_at_least(calls, replace(SPEC, requests_per_minute=8)) == Span(2 / 8, 6 / 8)
    both = replace(SPEC, requests_per_minute=8, tokens_per_minute=100)
    assert minutes_at_least(calls, both) == Span(2.1, 47.6)


@pytest.mark.parametrize(
    ("budget", "by"),
    [
        ({"max_calls": 1}, ["low"]),
        ({"max_calls": 5}, ["high"]),
        ({"max_calls": 6}, []),
        ({"max_tokens": 4759}, ["high"]),
        ({"max_cost_usd": 0.001}, ["low"]),
        ({}, []),
    ],
)
def test_a_budget_is_held_against_both_ends_of_the_plan(budget: dict[str, Any], by: list[str]) -> None:
    assert [one.by for one in passed(Allowed("run.budget", Spent(), **budget), total_of([planned()]))] == by


def test_what_a_build_has_spent_counts_and_dollars_need_a_price() -> None:
    total = total_of([planned()])
    (calls,) = passed(Allowed("run.budget", Spent(calls=5), max_calls=10), total)
    assert (calls.planned, calls.limit) == (Span(7, 11), "run.budget.max_calls")
    unpriced = total_of([planned(spec=replace(SPEC, prices=None))])
    assert [one.by for one in passed(Allowed("x", Spent(), max_cost_usd=99), unpriced)] == ["unpriced"]


def test_chinese_takes_more_tokens_a_character_and_scripted_models_count_four_to_one() -> None:
    meter = Meter(SPEC)
    assert meter.text("abcde") == Span(1, 2)
    assert meter.text("你好ab") == Span(pytest.approx(2 * 0.5 + 2 * 0.2), pytest.approx(2 * 2 + 2 * 0.4))
    assert Meter(replace(SPEC, provider="scripted", base_url=None)).text("你好ab") == Span(1, 1)


def test_what_stands_before_the_last_message_is_what_a_prompt_repeats() -> None:
    size = Meter(SPEC).messages([Message("system", "a" * 100), Message("user", "b" * 10)])
    assert (size.tokens, size.repeated) == (Span(22, 40 + 8 + 4 + 8), 48)
    grown = size.grown(Meter(SPEC).messages([Message("system", "a" * 100), Message("user", "b" * 20)]), 3)
    assert (grown.tokens, grown.repeated) == (Span(28, 72), 72)


def test_a_schema_is_part_of_the_prompt_unless_the_endpoint_takes_it_apart() -> None:
    class Answer(BaseModel):
        good: bool

    apart, within = (Meter(replace(SPEC, structured=how)).reply(Answer, "en") for how in ("json_schema", "prompt"))
    assert (apart.schema.low, apart.schema.high) == (0, within.schema.high)
    assert within.schema.low > 10


class Sketch(BaseModel):
    name: str = Field(min_length=2, max_length=12)
    tags: list[Literal["a", "long"]] = Field(min_length=1, max_length=3)
    score: int = Field(ge=0, le=10)
    note: str | None = None


def test_the_smallest_and_largest_replies_are_valid_and_as_short_and_long_as_they_may_be() -> None:
    assert smallest(Sketch, "en") == Sketch(name="aaa", tags=["a"], score=0, note=None)
    assert largest(Sketch, "zh") == Sketch(name="字" * 12, tags=["long"] * 3, score=10, note="字" * 400)


@given(some.integers(2, 12), some.lists(some.sampled_from(["a", "long"]), min_size=1, max_size=3), some.integers(0, 10))
def test_no_valid_reply_is_longer_than_the_largest(length: int, tags: list[Any], score: int) -> None:
    reply = Sketch(name="x" * length, tags=tags, score=score)
    assert len(compact(reply)) <= len(compact(largest(Sketch, "en")))


def test_every_stage_that_asks_a_model_says_what_it_asks() -> None:
    for stage in chain.chain():
        assert (estimator_of(stage) is not None) or stage.work is None, stage.name


def test_rows_of_an_unknown_language_may_all_be_of_one() -> None:
    def kind(language: str, text: str) -> Kind:
        return Kind(language, text, text * 2)

    known = {"t": [Portion(Span(2, 2), (kind("en", "a"),)), Portion(Span(1, 4), (kind("en", "bb"), kind("zh", "c")))]}
    view = View(load_settings("test"), load_models(), known)
    assert (view.rows("t"), view.rows("t", "en"), view.rows("t", "zh")) == (Span(3, 6), Span(2, 6), Span(0, 4))
    assert view.kind("t", "en") == Kind("en", "a", "bbbb")
    assert (view.kind("t", "fr"), view.rows("nothing")) == (None, Span(0, 0))


def frames(**tables: list[dict[str, Any]]) -> Any:
    """Reads rows from memory."""

    def read(table: str, columns: Any) -> pl.LazyFrame | None:
        return pl.DataFrame(tables[table]).lazy().select(columns) if table in tables else None

    return read


def test_rows_that_no_later_stage_uses_are_not_counted() -> None:
    seeds = [
        dict.fromkeys(TABLES["chat_seeds"].columns, "x")
        | {"chat_seed_id": seed, "rank": 0, "language": "en", "error": error, "first_query": query}
        for seed, error, query in (("s1", None, "Hi"), ("s2", None, "Hello there"), ("s3", "refused", "x" * 999))
    ]
    (portion,) = known_of(frames(chat_seeds=seeds), ["chat_seeds"])["chat_seeds"]
    assert portion.rows == Span(2, 2)
    assert [row.first_query for row in portion.kinds[0].both] == ["Hi", "Hello there"]


def test_pool_sizes_are_counted_and_only_pooled_personas_measured() -> None:
    read = frames(
        persona_pool=[{"pool": pool, "persona_id": one} for pool, one in (("p", "1"), ("p", "2"), ("q", "3"))],
        persona_candidates=[
            {"persona_id": one, "language": "en", "description": "d" * size}
            for one, size in (("1", 5), ("2", 9), ("3", 7), ("4", 10**6))
        ],
    )
    known = known_of(read, ["persona_pool", "persona_candidates", "no_table"])
    assert [portion.rows.high for portion in known["persona_pool"]] == [2, 1]
    assert [len(row.description) for row in known["persona_candidates"][0].kinds[0].both] == [5, 9]


def test_a_table_that_nobody_has_committed_is_not_known() -> None:
    assert known_of(frames(), list(MEASURES)) == {}


def plain_commit(**changes: Any) -> dict[str, Any]:
    return {
        **dict.fromkeys(("build", "stage", "fingerprint", "started_at", "ended_at"), "x"),
        **{name: {} for name in ("tables", "drafts", "components", "parents", "usage", "record")},
        "member": None,
        "revision": 0,
        "partial": False,
        "ends_chain": False,
        "accounting": {"n_in": 1, "n_produced": 1, "filtered": {}, "failed": {}},
        **changes,
    }


def test_a_commit_from_before_a_column_was_added_can_be_measured(tmp_path: Path) -> None:
    layout, columns = Layout(tmp_path), [name for name in TABLES["scenes"].columns if name != "domain"]
    rows = pa.table({name: ["en"] if name == "language" else ["some words"] for name in columns})
    pq.write_table(rows, tmp_path / "part.parquet")
    commit = Commit.from_json(plain_commit(tables={"scenes": [Part("part.parquet", 1, "hash", "00000").to_json()]}))
    read = committed(layout, [commit])("scenes", ["topic", "domain"])
    assert read is not None and read.collect().rows() == [("some words", None)]


def test_of_a_partial_stage_only_the_failed_share_is_planned() -> None:
    partial = Commit.from_json(
        plain_commit(accounting={"n_in": 8, "n_produced": 6, "filtered": {}, "failed": {"server": 2}})
    )
    plan = _run_plan("voting", "voting", "failed rows", StagePlan([planned()]), partial)
    assert plan.calls[0].requests == Span(0, 0.5)
    assert plan.note.startswith("2 failed rows of 8")
    assert _run_plan("voting", "voting", "if rows change", StagePlan([planned()]), None).calls[0].requests == Span(0, 2)
    assert not _run_plan("voting", "voting", "up to date", StagePlan([planned()]), None).calls
