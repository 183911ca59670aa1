"""Batch mode against local servers of both protocols, through the real SDKs and the real engine."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.foundation.errors import ConfigError, ModelUnavailable, StoreError
from tasks.foundation.llm.batch.job_store import JobStore
from tasks.foundation.llm.batch.transport import check_batch
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.providers.openai_compatible import OpenAIBatches
from tasks.foundation.llm.request import Message
from tests.fakes.batch_servers import KEY, BatchServer
from tests.unit.batch_runs import (
    Score,
    ask_all,
    engine_in,
    only_openai,
    request,
    run,
    server,
    spec,
    stopped_run,
    values,
)

__all__ = ["server", "spec"]  # fixtures


async def test_the_same_rows_give_equal_values_live_and_in_batches(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    rows = range(200)
    live = await run(tmp_path / "live", spec, rows, live=True)
    batched = await run(tmp_path / "batch", spec, rows, requests_per_job=64)
    assert values(batched) == values(live) and all(isinstance(value, Score) for value in values(live))
    tokens = [(one.record.prompt_tokens, one.record.cached_tokens, one.record.completion_tokens) for one in batched]
    assert tokens == [(20, None, 8)] * len(rows)
    assert all(one.record.prompt_tokens == 20 and one.record.completion_tokens == 8 for one in live)
    assert [one.record.seed_sent for one in batched] == list(rows)
    assert {one.record.latency_seconds for one in batched} == {60.0}
    assert server.sizes == [64, 64, 64, 8]
    assert len(server.charged) == 200 and not server.paid_twice
    assert len(server.live_bodies) == 200


async def test_a_line_of_a_job_asks_exactly_what_a_live_call_asks(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    extra = {"generationConfig": {"thinkingConfig": {"thinkingLevel": "high"}}, "labels": {"a": "b"}}
    spec = replace(spec, extra_body=extra)
    messages = (
        Message("system", "be fair"),
        Message("user", "早上好"),
        Message("assistant", "hello"),
        Message("user", "rate"),
    )
    asked = request(1, messages=messages, temperature=0.7)
    for folder, live in (("live", True), ("batch", False)):
        async with engine_in(tmp_path / folder, spec, live=live) as engine:
            await engine.ask(asked)
    line = next(iter(server.jobs.values()))["requests"][0]
    assert line.get("body", line.get("request")) == server.live_bodies[0]


async def test_benchmark_of_the_items_failing_costs_one_more_job_with_that_half(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    odd_fail_once = lambda message, asked: "failed 500" if int(message[-1]) % 2 and not asked else "answered"  # noqa: E731
    server.ending = odd_fail_once
    outcomes = await run(tmp_path, spec, range(10))
    assert all(isinstance(value, Score) for value in values(outcomes))
    assert server.sizes == [10, 5] and not server.paid_twice
    assert [one.record.attempts for one in outcomes] == [1, 2] * 5


async def test_an_item_refused_for_good_is_that_rows_failure_only(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    server.ending = lambda message, asked: "failed 400" if message.endswith("2") else "answered"
    outcomes = await run(tmp_path, spec)
    assert [one.error.kind if one.error else None for one in outcomes] == [None, None, "refused", None]
    assert server.sizes == [4]


async def test_an_expired_job_gives_what_it_has_and_the_rest_goes_into_a_new_one(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    def ending(message: str, asked: int) -> str:
        server.ends = "completed" if asked else "expired"
        return "expired" if int(message[-1]) > 5 and not asked else "answered"

    server.ends, server.ending = "expired", ending
    outcomes = await run(tmp_path, spec, range(10))
    assert all(isinstance(value, Score) for value in values(outcomes))
    assert server.sizes == [10, 4] and not server.paid_twice
    assert {one.record.attempts for one in outcomes} == {1}


@only_openai
async def test_a_request_that_no_job_ever_answers_fails_in_the_end(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    server.ending = lambda message, asked: "missing" if message.endswith("1") else "answered"
    outcomes = await run(tmp_path, spec, range(3), attempts=1)
    assert [one.error.kind if one.error else None for one in outcomes] == [None, "timeout", None]
    assert server.sizes == [3, 1, 1]


async def test_odd_lines_of_an_output_are_counted_and_not_used(
    server: BatchServer, spec: ModelSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.ending = lambda message, asked: (
        ("twice", "missing", "answered")[int(message[-1])] if not asked else "answered"
    )
    server.unknown_lines = [{"key": "of-another-job", "custom_id": "of-another-job", "response": {}, "error": {}}]
    server.raw_lines = ['{"key": "cut', "", "[1]"]
    outcomes = await run(tmp_path, spec, range(3))
    assert all(isinstance(value, Score) for value in values(outcomes))
    assert server.sizes == [3, 1] and not server.paid_twice
    first = next(line for line in caplog.messages if "job-0 completed" in line)
    assert first.endswith(
        "2 answered, 0 failed, 1 without a reply; not used: 1 duplicate line, 1 unknown line, 2 unreadable lines."
    )


async def test_trouble_while_polling_is_no_failure_of_the_job(
    server: BatchServer, spec: ModelSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.polling = [500, 503, 429, 502]
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    outcomes = await run(tmp_path, spec, sleep=sleep, poll_seconds=60.0)
    assert all(isinstance(value, Score) for value in values(outcomes))
    assert server.sizes == [4]
    assert pauses == [60, 60, 120, 240, 480, 60]
    assert "Asking again in 480 s; nothing is lost." in caplog.text


async def test_a_creation_that_is_put_off_is_tried_again_when_the_provider_says(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    server.creation = [(429, {"Retry-After": "7"}), (503, {})]
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    outcomes = await run(tmp_path, spec, sleep=sleep, poll_seconds=1.0)
    assert all(isinstance(value, Score) for value in values(outcomes))
    assert server.sizes == [4] and pauses[0] == 7


async def test_a_job_created_by_a_call_that_failed_is_found_and_not_created_again(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    await run(tmp_path, spec, range(100, 101))
    await run(tmp_path, spec, range(101, 102))
    await run(tmp_path, spec, range(102, 103))
    server.creates_then_fails = 1
    outcomes = await run(tmp_path, spec)
    assert all(isinstance(value, Score) for value in values(outcomes))
    assert server.sizes == [1, 1, 1, 4] and not server.paid_twice


@only_openai
async def test_calls_are_taken_back_when_the_provider_takes_no_job(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    server.creation = [(503, {})] * 1000
    outcomes = await run(tmp_path, spec, range(2), poll_seconds=0.0001)
    assert {one.error.kind for one in outcomes if one.error} == {"server"}
    server.creation = []
    assert all(isinstance(value, Score) for value in values(await run(tmp_path, spec, range(2))))
    assert server.sizes == [2]


async def test_a_full_queue_makes_smaller_jobs_instead_of_failures(
    server: BatchServer, spec: ModelSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    full = {"code": "token_limit_exceeded" if spec.provider == "openai" else 8, "message": "Enqueued token limit"}
    server.refuses = [full, full]
    outcomes = await run(tmp_path, spec, range(8))
    assert all(isinstance(value, Score) for value in values(outcomes))
    assert server.sizes[:2] == [8, 4] and sum(server.sizes[2:]) == 8 and max(server.sizes[2:]) <= 4
    assert not server.paid_twice
    assert "llm.batch.requests_per_job" in caplog.text


async def test_a_job_that_is_refused_as_a_whole_stops_the_run(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    server.refuses = [{"code": "invalid_x" if spec.provider == "openai" else 3, "message": "bad file"}]
    with pytest.raises(ModelUnavailable, match=r"refuses batch job .*job-0 as a whole.*bad file"):
        await run(tmp_path, spec)
    assert all(isinstance(value, Score) for value in values(await run(tmp_path, spec)))


async def test_a_wrong_key_stops_the_run_and_is_shown_nowhere(
    server: BatchServer, spec: ModelSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG, "tasks")
    monkeypatch.setenv("STUB_KEY", "wrong-WRONGWRONG")
    with pytest.raises(ModelUnavailable, match="rejects the key") as caught:
        await run(tmp_path, spec)
    monkeypatch.setenv("STUB_KEY", KEY)
    await run(tmp_path, spec)
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("batches.sqlite*"))
    for key in ("wrong-WRONGWRONG", KEY):
        assert key not in str(caught.value) and key not in caplog.text and key.encode() not in stored


@only_openai
async def test_a_reask_after_an_invalid_reply_goes_into_a_second_job(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    good = server.reply
    server.reply = lambda message: '{"score": 70}' if message == "rate row 1" else good(message)
    outcomes = await run(tmp_path, spec)
    assert all(isinstance(value, Score) for value in values(outcomes))
    assert server.sizes == [4, 1] and not server.paid_twice


@only_openai
async def test_a_job_holds_no_more_bytes_than_the_provider_takes(
    server: BatchServer, spec: ModelSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenAIBatches, "max_bytes", 1500)
    outcomes = await run(tmp_path, spec)
    assert all(isinstance(value, Score) for value in values(outcomes))
    assert len(server.sizes) > 1 and sum(server.sizes) == 4
    assert all(len(content) <= 1500 for content in server.uploads)


async def test_a_stopped_run_says_that_its_job_goes_on_and_the_next_one_takes_its_replies(
    server: BatchServer, spec: ModelSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await stopped_run(tmp_path, server, spec)
    assert "1 batch job at the provider with 4 requests of this run: there the work goes on." in caplog.text
    outcomes = await run(tmp_path, spec, range(6))
    assert all(isinstance(value, Score) for value in values(outcomes))
    assert sorted(server.sizes) == [2, 4] and not server.paid_twice


@only_openai
async def test_calls_that_are_cancelled_while_they_gather_are_never_sent(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    async with engine_in(tmp_path, spec) as engine:
        task = asyncio.create_task(ask_all(engine, range(3)))
        await asyncio.sleep(0.001)
        task.cancel()
        outcomes = await ask_all(engine, range(3, 5))
    assert all(isinstance(value, Score) for value in values(outcomes))
    assert server.sizes == [2]


async def test_a_job_cancelled_at_the_provider_stops_the_run_and_the_next_one_sends_the_rest(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    server.ends = "cancelled"
    server.ending = lambda message, asked: "missing" if message.endswith("3") and not asked else "answered"
    with pytest.raises(ModelUnavailable, match="was cancelled at the provider"):
        await run(tmp_path, spec)
    server.ends = "completed"
    outcomes = await run(tmp_path, spec)
    assert all(isinstance(value, Score) for value in values(outcomes))
    assert server.sizes == [4, 1] and not server.paid_twice


@only_openai
async def test_a_job_that_the_provider_has_forgotten_is_sent_again(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    await stopped_run(tmp_path, server, spec)
    server.jobs.clear()
    outcomes = await run(tmp_path, spec)
    assert all(isinstance(value, Score) for value in values(outcomes))
    assert server.sizes == [4]


@only_openai
@pytest.mark.parametrize("step", ["claim", "mark_submitted", "keep", "end"])
async def test_a_list_of_jobs_that_cannot_be_written_stops_the_run(
    server: BatchServer, spec: ModelSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*arguments: Any) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as during, pytest.raises(StoreError, match="the disk is full"):
        during.setattr(JobStore, step, full)
        await run(tmp_path, spec)
    assert all(isinstance(value, Score) for value in values(await run(tmp_path, spec)))
    assert server.sizes == [4] and not server.paid_twice


def test_a_stage_in_batch_mode_refuses_models_without_a_batch_api() -> None:
    models = {
        "a": ModelSpec("a", "openai", "m", "f", batch=True),
        "b": ModelSpec("b", "embedded", "m", "f"),
    }
    check_batch("judging", ["a"], models)
    with pytest.raises(ConfigError, match=r"mode: batch of stage judging: .* found 'b' without one"):
        check_batch("judging", ["a", "b", "b"], models)
