"""Budgets: what is sent, what is not, and that neither calls, tokens nor dollars pass their limit."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.errors import ModelError
from tasks.foundation.llm.budget import Allowed, Budget, Spent
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.engine import Engine
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.request import Message, ProviderCall, RawReply, Request, Usage
from tasks.foundation.llm.sending import Patience
from tests.fakes.scripted import ScriptedProvider
from tests.virtual_time import run

JUDGE = ModelSpec("judge", "scripted", "x:y", "a", prices={"input_per_million": 1000, "output_per_million": 2000})


def request(number: int, max_tokens: int = 100) -> Request:
    return Request(
        "voting", f"row-{number}", "judge", "judge", (Message("user", f"rate {number}"),), max_tokens=max_tokens
    )


async def slow(call: ProviderCall) -> RawReply:
    await asyncio.sleep(0.001)
    return RawReply("fine", Usage(10, 0, 20, None), "stop", "m")


async def ask_all(tmp_path: Path, limit: Allowed, requests: int = 40) -> tuple[Engine, list[str]]:
    """What became of each request: "answered" or the kind of its failure."""
    cache = ReplyCache(tmp_path / "replies.sqlite")
    engine = Engine(
        {"judge": JUDGE}, cache, run_id="r", budget=Budget([limit]), providers={"scripted": ScriptedProvider(slow)}
    )
    outcomes = await asyncio.gather(*(engine.ask(request(n)) for n in range(requests)))
    await engine.settled()
    cache.close()
    return engine, [outcome.error.kind if outcome.error else "answered" for outcome in outcomes]


async def test_no_more_calls_are_made_than_the_budget_allows(tmp_path: Path) -> None:
    engine, ends = await ask_all(tmp_path, Allowed("voting.budget", Spent(calls=3), max_calls=10))
    assert ends.count("answered") == engine.counters.calls_made == 7
    assert ends.count("budget") == 33
    assert (
        engine.budget.reached is not None
        and "voting.budget.max_calls = 10 is used up: 10 calls" in engine.budget.reached
    )


async def test_tokens_stay_within_the_budget_and_fill_it(tmp_path: Path) -> None:
    engine, ends = await ask_all(tmp_path, Allowed("run.budget", Spent(), max_tokens=500))
    assert engine.budget.spent.tokens == 30 * ends.count("answered") <= 500
    assert engine.budget.spent.tokens > 500 - 120, "the next call could not have fitted"


async def test_dollars_stay_within_the_budget_and_fill_it(tmp_path: Path) -> None:
    engine, ends = await ask_all(tmp_path, Allowed("run.budget", Spent(cost_usd=1.0), max_cost_usd=2.0))
    assert engine.budget.spent.cost_usd == pytest.approx(0.05 * ends.count("answered"))
    assert 0.7 < engine.budget.spent.cost_usd <= 1.0


async def test_a_cached_reply_costs_no_budget(tmp_path: Path) -> None:
    await ask_all(tmp_path, Allowed("run.budget", Spent()), requests=5)
    engine, ends = await ask_all(tmp_path, Allowed("run.budget", Spent(calls=1), max_calls=1), requests=6)
    assert ends == ["answered"] * 5 + ["budget"]
    assert engine.counters.calls_made == 0


async def test_a_failed_call_counts_as_a_call(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies.sqlite")
    provider = ScriptedProvider([ModelError("refused", "no"), "fine"])
    budget = Budget([Allowed("run.budget", Spent(), max_calls=1)])
    engine = Engine(
        {"judge": JUDGE}, cache, run_id="r", budget=budget, patience=Patience(1), providers={"scripted": provider}
    )
    first, second = await engine.ask(request(1)), await engine.ask(request(2))
    assert first.error is not None and first.error.kind == "refused"
    assert second.error is not None and second.error.kind == "budget" and second.record.attempts == 0
    cache.close()


async def test_tokens_that_a_provider_does_not_report_are_not_free(tmp_path: Path) -> None:
    silent = ScriptedProvider(lambda call: RawReply("fine", Usage(), "stop", "m"))
    budget = Budget([Allowed("run.budget", Spent(), max_tokens=300)])
    with ReplyCache(tmp_path / "replies.sqlite") as cache:
        engine = Engine({"judge": JUDGE}, cache, run_id="r", budget=budget, providers={"scripted": silent})
        outcomes = [await engine.ask(request(n)) for n in range(5)]
    # 100 completion tokens and 10 or so of the prompt are booked for each: two fit, the third would be 330
    assert [outcome.error is None for outcome in outcomes] == [True, True, False, False, False]


async def test_a_call_larger_than_the_whole_budget_is_refused_at_once(tmp_path: Path) -> None:
    engine, ends = await ask_all(tmp_path, Allowed("run.budget", Spent(), max_tokens=50))
    assert set(ends) == {"budget"} and engine.counters.calls_made == 0


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1)), max_size=60), st.integers(0, 500), st.integers(1, 20))
def test_whatever_calls_take_their_sum_stays_within_the_limit(
    calls: list[tuple[int, float]], limit: int, at_once: int
) -> None:
    async def main() -> Budget:
        budget = Budget([Allowed("run.budget", Spent(), max_tokens=limit)])
        places = asyncio.Semaphore(at_once)

        async def one(worst: int, share: float) -> None:
            async with places:
                try:
                    reserved = await budget.reserve(Spent(1, worst))
                except ModelError:
                    return
                await asyncio.sleep(share)
                budget.book(reserved, Spent(1, int(worst * share)))

        await asyncio.gather(*(one(*call) for call in calls))
        return budget

    budget = run(main())
    assert budget.spent.tokens <= limit
    assert (budget.reached is None) == (budget.spent.calls == len(calls))
