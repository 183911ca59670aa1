"""The engine on scripted replies: one request, one outcome, nothing paid for twice."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from tasks.foundation.errors import ConfigError, FailureKind, ModelUnavailable, StoreError
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.engine import Engine
from tasks.foundation.llm.failures import ProviderFailure
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.reply import SILENT_REPLIES_AT_ONCE
from tasks.foundation.llm.request import Message, Outcome, Provider, ProviderCall, RawReply, Request, Usage
from tasks.foundation.llm.sending import Patience
from tasks.foundation.settings import load_settings
from tasks.foundation.tables.operations import LlmCall
from tasks.foundation.texts.replies import Goal, Manner, PartsReply, ReplyModel, asked, bind
from tests.fakes.scripted import ScriptedProvider

JUDGE = ModelSpec("judge", "scripted", "tests.none:here", "a", prices={"input_per_million": 1, "output_per_million": 2})
MODELS = {
    "judge": JUDGE,
    "wordy": replace(JUDGE, alias="wordy", structured="prompt"),
    "narrow": replace(JUDGE, alias="narrow", max_in_flight=1),
    "seedless": replace(JUDGE, alias="seedless", supports_seed=False),
    "priceless": replace(JUDGE, alias="priceless", name="tests.none:there", prices=None),
}
GOOD = '{"score": 7}'
IMPATIENT = Patience(base_seconds=0.0)


class Score(BaseModel):
    score: int = Field(ge=1, le=10)


def request(**changes: Any) -> Request:
    base = Request("voting", "row-1", "judge", "judge", (Message("system", "s"), Message("user", "rate")), Score)
    return replace(base, **changes)


def reply(text: str, finish: str = "stop", prompt: int = 100, completion: int = 10) -> RawReply:
    return RawReply(text, Usage(prompt, 0, completion, None), finish, "model-x", None, 0.5)


def failure(kind: FailureKind, wait: float | None = None) -> ProviderFailure:
    return ProviderFailure(kind, "no luck", retry_after_seconds=wait)


Ask = Callable[..., AsyncIterator[Outcome]]


@pytest.fixture
async def cache(tmp_path: Path) -> AsyncIterator[ReplyCache]:
    cache = ReplyCache(tmp_path / "replies.sqlite")
    yield cache
    cache.close()


def engine(cache: ReplyCache, replies: Any, **changes: Any) -> Engine:
    provider: Provider = replies if hasattr(replies, "call") else ScriptedProvider(replies)
    settings: dict[str, Any] = {"run_id": "run-1", "patience": IMPATIENT, "providers": {"scripted": provider}}
    return Engine(MODELS, cache, **(settings | changes))


async def test_a_good_reply_is_an_answer_with_its_ledger_row(cache: ReplyCache) -> None:
    booked: list[LlmCall] = []
    outcome = await engine(cache, [reply(GOOD)], on_call=booked.append).ask(request(seed=5))
    assert outcome.error is None and outcome.error is None
    assert outcome.value == Score(score=7)
    record = outcome.record
    assert (record.attempts, record.from_cache, record.finish_reason, record.error_kind) == (1, False, "stop", None)
    assert record.cost_usd == pytest.approx(100 * 1e-6 + 10 * 2e-6)
    assert record.model_reported == "model-x"
    assert booked == [record]
    assert json.loads(outcome.trace.prompt)[-1] == {"role": "user", "content": "rate"}
    assert outcome.trace.reply == GOOD


async def test_a_second_engine_replays_without_a_call(cache: ReplyCache) -> None:
    first = await engine(cache, [reply(GOOD)]).ask(request())
    second_engine = engine(cache, [], run_id="run-2")
    second = await second_engine.ask(request())
    assert (second_engine.counters.calls_made, second_engine.counters.cached_replies) == (0, 1)
    assert second.record.from_cache
    assert second.record == first.record.model_copy(update={"from_cache": True})
    assert second.trace == first.trace


async def test_a_killed_run_books_what_it_had_paid_when_it_goes_on(cache: ReplyCache) -> None:
    await engine(cache, [reply(GOOD)]).ask(request())
    again = await engine(cache, []).ask(request())
    assert not again.record.from_cache
    assert again.record.completion_tokens == 10 and again.record.cost_usd is not None


async def test_the_same_question_of_another_row_is_not_paid_for_twice(cache: ReplyCache) -> None:
    one = engine(cache, [reply(GOOD)])
    first, second = await one.ask(request()), await one.ask(request(row_key="row-2"))
    assert one.counters.calls_made == 1
    assert [first.record.from_cache, second.record.from_cache] == [False, True]
    assert first.record.request_id != second.record.request_id


async def test_another_sample_schema_or_alias_of_the_same_kind_is_another_call(cache: ReplyCache) -> None:
    one = engine(cache, [reply(GOOD), reply(GOOD), reply("hello")])
    await one.ask(request())
    await one.ask(request(sample=1))
    await one.ask(request(reply=None))
    assert one.counters.calls_made == 3


async def test_identical_requests_in_flight_are_sent_once(cache: ReplyCache) -> None:
    gate = asyncio.Event()

    async def answer(call: ProviderCall) -> str:
        await gate.wait()
        return GOOD

    one = engine(cache, answer)
    asking = [asyncio.create_task(one.ask(request(row_key=f"row-{n}"))) for n in range(5)]
    await asyncio.sleep(0.01)
    gate.set()
    outcomes = await asyncio.gather(*asking)
    assert one.counters.calls_made == 1
    assert sorted(outcome.record.from_cache for outcome in outcomes) == [False, True, True, True, True]
    assert {outcome.value.score for outcome in outcomes if outcome.error is None} == {7}


async def test_a_cancelled_leader_does_not_take_the_others_with_it(cache: ReplyCache) -> None:
    gate = asyncio.Event()

    async def answer(call: ProviderCall) -> str:
        await gate.wait()
        return GOOD

    one = engine(cache, answer)
    leader = asyncio.create_task(one.ask(request()))
    await asyncio.sleep(0)
    follower = asyncio.create_task(one.ask(request(row_key="row-2")))
    await asyncio.sleep(0.01)
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader
    gate.set()
    assert (await follower).error is None
    assert one.counters.calls_made == 1


async def test_a_call_that_a_provider_has_got_is_kept_though_nobody_waits_any_more(cache: ReplyCache) -> None:
    gate = asyncio.Event()

    async def answer(call: ProviderCall) -> str:
        await gate.wait()
        return GOOD

    one = engine(cache, answer)
    task = asyncio.create_task(one.ask(request()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()
    await one.close()
    again = engine(cache, answer)
    outcome = await again.ask(request())
    assert outcome.error is None and (again.counters.calls_made, again.counters.cached_replies) == (0, 1)


async def test_a_call_that_nobody_waits_for_is_not_tried_again(cache: ReplyCache) -> None:
    gate = asyncio.Event()

    async def answer(call: ProviderCall) -> str:
        await gate.wait()
        raise failure("server")

    one = engine(cache, answer)
    task = asyncio.create_task(one.ask(request()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()
    await one.close()
    assert one.counters.calls_made == 1


async def test_a_call_that_waits_for_leave_is_cancelled_with_its_last_waiter_and_may_be_asked_anew(
    cache: ReplyCache,
) -> None:
    gate = asyncio.Event()

    async def answer(call: ProviderCall) -> str:
        await gate.wait()
        return GOOD

    one = engine(cache, answer)
    first = asyncio.create_task(one.ask(request(alias="narrow")))
    await asyncio.sleep(0.01)
    waiting = asyncio.create_task(one.ask(request(row_key="row-2", alias="narrow", sample=1)))
    await asyncio.sleep(0.01)
    waiting.cancel()
    anew = asyncio.create_task(one.ask(request(row_key="row-3", alias="narrow", sample=1)))
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.set()
    assert (await first).error is None and (await anew).error is None
    assert one.counters.calls_made == 2


async def test_an_invalid_reply_is_asked_again_with_what_was_wrong(cache: ReplyCache) -> None:
    provider = ScriptedProvider([reply('{"score": 11}'), reply(GOOD)])
    outcome = await engine(cache, provider).ask(request())
    assert outcome.error is None and outcome.value.score == 7
    shown, complaint = provider.calls[1].messages[-2:]
    assert shown == Message("assistant", '{"score": 11}')
    assert complaint.role == "user" and "score" in complaint.content and "11" in complaint.content
    assert outcome.record.attempts == 2
    assert outcome.record.completion_tokens == 20


async def test_a_chain_of_bad_replies_ends_typed_and_replays_without_a_call(cache: ReplyCache) -> None:
    bad = [reply('{"score": 11}'), reply("what?"), reply('{"score": 7.5}')]
    outcome = await engine(cache, bad).ask(request())
    assert outcome.value is None and outcome.error is not None
    assert (outcome.error.kind, outcome.error.attempts) == ("invalid", 3)
    assert outcome.record.error_kind == "invalid"
    assert outcome.record.prompt_tokens == 300
    assert outcome.trace.reply == '{"score": 7.5}'
    replayed = engine(cache, [], run_id="run-2")
    again = await replayed.ask(request())
    assert again.error is not None and again.error.kind == "invalid"
    assert again.record.from_cache and replayed.counters.calls_made == 0


async def test_a_chain_half_paid_before_books_only_the_new_half(cache: ReplyCache) -> None:
    await engine(cache, [reply('{"score": 11}')], max_reasks=0).ask(request())
    outcome = await engine(cache, [reply(GOOD, prompt=300, completion=1)], run_id="run-2").ask(request())
    assert not outcome.record.from_cache
    assert (outcome.record.prompt_tokens, outcome.record.cached_tokens, outcome.record.completion_tokens) == (300, 0, 1)


async def test_an_empty_reply_is_complained_of_without_an_empty_turn(cache: ReplyCache) -> None:
    provider = ScriptedProvider([reply(""), reply(GOOD)])
    outcome = await engine(cache, provider).ask(request())
    assert outcome.error is None
    assert [message.role for message in provider.calls[1].messages] == ["system", "user"]
    assert "empty" in provider.calls[1].messages[-1].content


async def test_a_cut_off_reply_is_asked_again_once_with_twice_the_tokens(cache: ReplyCache) -> None:
    provider = ScriptedProvider([reply('{"sco', "length"), reply('{"sco', "length")])
    outcome = await engine(cache, provider).ask(request(max_tokens=50))
    assert [call.max_tokens for call in provider.calls] == [50, 100]
    assert provider.calls[0].messages == provider.calls[1].messages
    assert outcome.error is not None and outcome.error.kind == "truncated"


async def test_a_long_reply_shown_again_is_bounded(cache: ReplyCache) -> None:
    provider = ScriptedProvider([reply("x" * 100_000), reply(GOOD)])
    await engine(cache, provider).ask(request())
    assert sum(len(message.content) for message in provider.calls[1].messages) < 12_000


@pytest.mark.parametrize(("finish", "kind"), [("content_filter", "content_filter"), ("refusal", "refused")])
async def test_a_withheld_reply_fails_at_once_and_its_tokens_are_booked(
    cache: ReplyCache, finish: str, kind: str
) -> None:
    one = engine(cache, [reply("I cannot", finish)])
    outcome = await one.ask(request())
    assert outcome.error is not None and outcome.error.kind == kind
    assert outcome.record.prompt_tokens == 100 and one.counters.calls_made == 1


@pytest.mark.parametrize("kind", ["rate_limited", "timeout", "connection", "server"])
async def test_a_passing_failure_is_retried_and_never_cached(cache: ReplyCache, kind: FailureKind) -> None:
    one = engine(cache, [failure(kind), failure(kind), reply(GOOD)])
    outcome = await one.ask(request())
    assert outcome.error is None and outcome.record.attempts == 3 and one.counters.calls_made == 3
    assert sum(line.replies for line in cache.stats()) == 1


async def test_a_failure_that_stays_ends_with_its_kind_and_the_next_run_tries_again(cache: ReplyCache) -> None:
    outcome = await engine(cache, [failure("server")] * 3, patience=Patience(3, 0.0)).ask(request())
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.attempts, outcome.error.may_pass_later) == ("server", 3, True)
    record = outcome.record
    assert (record.attempts, record.error_kind, record.from_cache, record.cost_usd) == (3, "server", False, None)
    assert (await engine(cache, [reply(GOOD)], run_id="run-2").ask(request())).error is None


@pytest.mark.parametrize("kind", ["refused", "content_filter", "context_overflow"])
async def test_a_failure_of_the_request_itself_is_not_retried(cache: ReplyCache, kind: FailureKind) -> None:
    one = engine(cache, [failure(kind)])
    outcome = await one.ask(request())
    assert outcome.error is not None and outcome.error.kind == kind and one.counters.calls_made == 1


async def test_retry_after_is_obeyed_by_every_request_to_the_model(cache: ReplyCache) -> None:
    starts: list[float] = []
    loop = asyncio.get_running_loop()

    def answer(call: ProviderCall) -> str | Exception:
        starts.append(loop.time())
        return failure("rate_limited", 0.2) if len(starts) == 1 else GOOD

    one = engine(cache, answer)
    first = asyncio.create_task(one.ask(request()))
    await asyncio.sleep(0.05)
    outcomes = await asyncio.gather(first, one.ask(request(sample=1)))
    assert all(outcome.error is None for outcome in outcomes)
    assert min(starts[1:]) - starts[0] >= 0.2


async def test_a_pause_of_hours_fails_the_row_for_a_later_run(cache: ReplyCache) -> None:
    one = engine(cache, [failure("rate_limited", 7200.0)])
    outcome = await one.ask(request())
    assert outcome.error is not None and outcome.error.may_pass_later and one.counters.calls_made == 1


async def test_a_replay_without_a_provider_answers_from_the_cache_and_never_calls(cache: ReplyCache) -> None:
    await engine(cache, [reply(GOOD)]).ask(request())
    replay = engine(cache, [], replay_only=True)
    outcome = await replay.ask(request())
    assert outcome.error is None and replay.counters.calls_made == 0
    with pytest.raises(ModelUnavailable, match=r"llm\.replay_only is true and the reply to 'judge' of row 'row-2'"):
        await replay.ask(request(row_key="row-2", sample=1))


async def test_a_quota_refusal_does_not_use_up_the_attempts_of_a_call(cache: ReplyCache) -> None:
    refusals = [failure("rate_limited")] * 7
    outcome = await engine(cache, [*refusals, reply(GOOD)], patience=Patience(3, 0.0)).ask(request())
    assert outcome.error is None and outcome.record.attempts == 8


async def test_a_call_that_is_always_refused_fails_in_the_end(cache: ReplyCache) -> None:
    outcome = await engine(cache, [failure("rate_limited")] * 12, patience=Patience(3, 0.0)).ask(request())
    assert outcome.error is not None and outcome.error.kind == "rate_limited"
    assert outcome.record.attempts == 12


async def test_a_model_that_stays_away_stops_the_run_instead_of_failing_every_row(cache: ReplyCache) -> None:
    one = engine(cache, ScriptedProvider(lambda call: failure("connection")), patience=Patience(50, 0.001, 0.01))
    with pytest.raises(ModelUnavailable, match="answered nothing"):
        await asyncio.gather(*(one.ask(request(sample=n)) for n in range(8)))


async def test_an_unavailable_model_stops_the_run(cache: ReplyCache) -> None:
    with pytest.raises(ModelUnavailable):
        await engine(cache, [ModelUnavailable("no such model")]).ask(request())


@pytest.mark.parametrize("silence", ["", "<think>It is late.</think>", "<|channel>thought\nIt is late."])
async def test_a_model_that_never_says_a_word_stops_the_run_with_what_to_set(cache: ReplyCache, silence: str) -> None:
    one = engine(cache, ScriptedProvider(lambda call: reply(silence)), max_reasks=0)
    for number in range(SILENT_REPLIES_AT_ONCE - 1):
        assert (await one.ask(request(sample=number))).error is not None
    with pytest.raises(ModelUnavailable, match=r"enable_thinking|max_tokens"):
        await one.ask(request(sample=SILENT_REPLIES_AT_ONCE))


async def test_a_model_that_once_said_a_word_may_be_silent_after_it(cache: ReplyCache) -> None:
    script = [reply(GOOD), *[reply("")] * (SILENT_REPLIES_AT_ONCE + 5)]
    one = engine(cache, script, max_reasks=0)
    outcomes = [await one.ask(request(sample=number)) for number in range(SILENT_REPLIES_AT_ONCE + 6)]
    assert sum(outcome.error is not None for outcome in outcomes) == SILENT_REPLIES_AT_ONCE + 5


async def test_what_a_filter_withheld_is_no_silence(cache: ReplyCache) -> None:
    one = engine(cache, ScriptedProvider(lambda call: reply("", "content_filter")), max_reasks=0)
    for number in range(SILENT_REPLIES_AT_ONCE + 1):
        assert (await one.ask(request(sample=number))).error is not None


async def test_a_re_ask_shows_a_model_its_words_and_not_its_thoughts(cache: ReplyCache) -> None:
    scripted = ScriptedProvider([reply("<think>seven?</think>I would say seven.<|im_end|>"), reply(GOOD)])
    await engine(cache, scripted).ask(request())
    assert [part.content for part in scripted.calls[1].messages if part.role == "assistant"] == ["I would say seven."]


async def test_a_cache_that_cannot_be_written_stops_the_run(cache: ReplyCache, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(reply: Any) -> None:
        raise StoreError("disk full")

    monkeypatch.setattr(cache, "put", full)
    with pytest.raises(StoreError):
        await engine(cache, [reply(GOOD)]).ask(request())


async def test_an_unknown_alias_names_the_nearest(cache: ReplyCache) -> None:
    with pytest.raises(ConfigError, match="'judge'"):
        await engine(cache, []).ask(request(alias="jugde"))


async def test_no_more_calls_are_in_flight_than_the_model_allows(cache: ReplyCache) -> None:
    now = most = 0

    async def answer(call: ProviderCall) -> str:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.005)
        now -= 1
        return GOOD

    limited = {"judge": replace(JUDGE, max_in_flight=3)}
    one = Engine(limited, cache, run_id="r", providers={"scripted": ScriptedProvider(answer)})
    await asyncio.gather(*(one.ask(request(sample=n)) for n in range(20)))
    assert most == 3


async def test_the_schema_is_sent_natively_or_in_words_never_both(cache: ReplyCache) -> None:
    provider = ScriptedProvider([reply(GOOD), reply(GOOD)])
    one = engine(cache, provider)
    await one.ask(request())
    await one.ask(request(alias="wordy"))
    native, wordy = provider.calls
    assert native.schema is not None and native.messages[-1].content == "rate"
    assert '"maximum":10' in wordy.messages[-1].content


async def test_fresh_runs_draw_anew_and_each_salt_replays_its_own(cache: ReplyCache) -> None:
    provider = ScriptedProvider([reply(GOOD), reply('{"score": 8}')])
    await engine(cache, provider).ask(request(seed=1))
    fresh = await engine(cache, provider, fresh_salt=1).ask(request(seed=1))
    again = await engine(cache, [], fresh_salt=1, run_id="run-2").ask(request(seed=1))
    assert fresh.error is None and fresh.value.score == 8
    assert again.error is None and again.value.score == 8
    assert provider.calls[0].seed != provider.calls[1].seed


async def test_a_seed_is_sent_only_where_it_is_supported(cache: ReplyCache) -> None:
    provider = ScriptedProvider([GOOD, GOOD])
    one = engine(cache, provider)
    supported = await one.ask(request(seed=2**62 + 5))
    unsupported = await one.ask(request(alias="seedless", seed=5))
    assert supported.record.seed_sent == provider.calls[0].seed == 5
    assert unsupported.record.seed_sent is None


async def test_an_unknown_price_is_none_and_never_zero(cache: ReplyCache) -> None:
    outcome = await engine(cache, [reply(GOOD)]).ask(request(alias="priceless"))
    assert outcome.record.cost_usd is None


async def test_lone_surrogates_in_prompt_and_reply_do_no_harm(cache: ReplyCache) -> None:
    one = engine(cache, [reply("\ud800 hello")])
    outcome = await one.ask(request(reply=None, messages=(Message("user", "\udfff hi"),)))
    assert outcome.error is None and outcome.value == "� hello"
    outcome.trace.prompt.encode()


async def test_no_key_reaches_an_error_a_log_or_a_record(
    cache: ReplyCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key = "sk-proj-SECRETSECRETSECRET"
    bad = ProviderFailure("refused", f"Incorrect API key provided: {key}; Authorization: Bearer {key}")
    outcome = await engine(cache, [bad]).ask(request())
    assert outcome.error is not None
    assert "SECRET" not in str(outcome.error) + repr(outcome.record) + repr(outcome.trace) + caplog.text
    assert outcome.error.__cause__ is None


async def test_a_text_far_over_its_limit_is_cut_and_the_ledger_says_so_also_when_replayed(cache: ReplyCache) -> None:
    class Notes(ReplyModel):
        one: Goal = asked("one", "一")
        two: Goal = asked("two", "二")

    limits = load_settings("test").text_limits
    asking = request(reply=bind(Notes, Manner(limits, "en")))
    text = json.dumps({"one": "word " * 300, "two": "x" * 300})
    for answers in ([reply(text)], []):
        outcome = await engine(cache, answers).ask(asking)
        assert (outcome.record.cut_texts, outcome.record.attempts) == (1, 1)
        assert len(outcome.value.one) <= 1.5 * limits.goal and outcome.value.one.endswith("word")
        assert outcome.value.two == "x" * 300
        assert outcome.trace.reply == text, "what came is kept as it came"


async def test_a_reply_that_was_cut_off_gives_its_whole_parts_and_is_not_asked_for_again(cache: ReplyCache) -> None:
    class Marks(PartsReply):
        one: Score = asked("one", "一")
        two: Score = asked("two", "二")

    cut_off = reply('{"one": {"score": 7}, "two": {"sco', "length")
    outcome = await engine(cache, [cut_off]).ask(request(reply=Marks))
    assert outcome.error is None and outcome.value.parts == {"one": Score(score=7)}
    assert (outcome.record.attempts, outcome.record.finish_reason) == (1, "length")
