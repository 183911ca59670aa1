"""The OpenAI-compatible provider against a real local server; its failures are in test_llm_provider_servers.py."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tasks.foundation.errors import ModelError, ModelUnavailable
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.engine import Engine
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.providers.bodies import read_text, request_body
from tasks.foundation.llm.providers.openai_compatible import OpenAIProvider
from tasks.foundation.llm.request import Message, ProviderCall, Request, Usage
from tasks.foundation.llm.sending import Patience
from tests.fakes import http
from tests.fakes.http import HttpFake, hanging, trickle

KEY = "sk-test-SECRETSECRETSECRET"


class Score(BaseModel):
    score: int


@pytest.fixture
async def stub() -> AsyncIterator[HttpFake]:
    async with HttpFake().running() as stub:
        yield stub


@pytest.fixture
def spec(stub: HttpFake, monkeypatch: pytest.MonkeyPatch) -> ModelSpec:
    monkeypatch.setenv("STUB_KEY", KEY)
    return ModelSpec(
        "stub", "openai", "gpt-x", "gpt", base_url=f"{stub.url}/v1", api_key_env="STUB_KEY", timeout_seconds=5
    )


def call_of(spec: ModelSpec, **changes: Any) -> ProviderCall:
    base = ProviderCall(spec, (Message("user", "hello"),), None, "", 0.3, 50, 11, 0)
    return replace(base, **changes)


def completion(content: Any = "hi", finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    usage = {
        "prompt_tokens": 20,
        "completion_tokens": 8,
        "total_tokens": 28,
        "prompt_tokens_details": {"cached_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    body = http.completion(content, finish, **usage)
    body["choices"][0]["message"] |= message
    return body


async def failure(spec: ModelSpec) -> ModelError | ModelUnavailable:
    provider = OpenAIProvider(spec)
    try:
        with pytest.raises((ModelError, ModelUnavailable)) as caught:
            await provider.call(call_of(spec))
    finally:
        await provider.close()
    assert KEY not in str(caught.value)
    return caught.value


async def answer(spec: ModelSpec, **changes: Any) -> Any:
    provider = OpenAIProvider(spec)
    try:
        return await provider.call(call_of(spec, **changes))
    finally:
        await provider.close()


async def test_a_reply_carries_text_usage_model_and_seed(stub: HttpFake, spec: ModelSpec) -> None:
    stub.says(200, completion())
    reply = await answer(spec)
    assert (reply.text, reply.finish_reason, reply.model_reported, reply.seed_sent) == ("hi", "stop", "m", 11)
    assert reply.usage == Usage(20, 5, 8, 3)
    assert stub.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert stub.paths == ["/v1/chat/completions"]
    sent = stub.bodies[0]
    assert (sent["model"], sent["temperature"], sent["max_tokens"], sent["seed"]) == ("gpt-x", 0.3, 50, 11)
    assert "response_format" not in sent


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"type": "json_schema", "json_schema": {"name": "My_Reply", "schema": {"type": "object"}}}),
        (
            {"strict_schema": True},
            {"type": "json_schema", "json_schema": {"name": "My_Reply", "schema": {"type": "object"}, "strict": True}},
        ),
        ({"structured": "json_object"}, {"type": "json_object"}),
        ({"structured": "prompt"}, None),
    ],
)
def test_each_way_of_asking_for_json(changes: dict[str, Any], expected: Any) -> None:
    spec = replace(ModelSpec("x", "openai", "m", "f"), **changes)
    sent = request_body(call_of(spec, schema={"type": "object"}, schema_name="My.Reply"))
    assert sent.get("response_format") == expected


def test_a_strict_schema_has_no_bounds_on_texts_and_all_the_rest() -> None:
    note = {"type": "string", "minLength": 1, "maxLength": 9, "description": "d"}
    schema = {
        "type": "object",
        "properties": {"type": note, "minLength": {"type": "array", "items": note, "maxItems": 3}},
    }
    sent = request_body(call_of(replace(ModelSpec("x", "openai", "m", "f"), strict_schema=True), schema=schema))
    bare = {"type": "string", "description": "d"}
    assert sent["response_format"]["json_schema"]["schema"] == {
        "type": "object",
        "properties": {"type": bare, "minLength": {"type": "array", "items": bare, "maxItems": 3}},
    }
    assert schema["properties"]["type"] == note, "the shared schema stays as it is"


def test_only_what_the_model_takes_is_sent() -> None:
    spec = ModelSpec(
        "x",
        "openai",
        "o9",
        "f",
        sends_temperature=False,
        max_tokens_field="max_completion_tokens",
        extra_body={"reasoning_effort": "high"},
    )
    sent = request_body(call_of(spec, seed=None))
    assert set(sent) == {"model", "messages", "max_completion_tokens", "reasoning_effort"}


@pytest.mark.parametrize(
    ("body", "text", "finish"),
    [
        (completion("half", "length"), "half", "length"),
        (completion("", "content_filter"), "", "content_filter"),
        (completion(None, "stop", refusal="I cannot"), "I cannot", "refusal"),
        (completion(None, "stop"), "", "stop"),
        (completion([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], None), "ab", "stop"),
        (completion("x", "end_turn"), "x", "stop"),
    ],
)
async def test_every_ending_is_one_of_ours(
    stub: HttpFake, spec: ModelSpec, body: dict[str, Any], text: str, finish: str
) -> None:
    stub.says(200, body)
    reply = await answer(spec)
    assert (reply.text, reply.finish_reason) == (text, finish)


async def test_a_server_that_trickles_is_a_timeout(stub: HttpFake, spec: ModelSpec) -> None:
    stub.does(trickle)
    caught = await failure(replace(spec, timeout_seconds=0.3))
    assert isinstance(caught, ModelError) and caught.kind == "timeout"


async def test_cancelling_a_call_is_not_swallowed(stub: HttpFake, spec: ModelSpec) -> None:
    stub.does(hanging(asyncio.Event()))
    provider = OpenAIProvider(spec)
    task = asyncio.create_task(provider.call(call_of(spec)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await provider.close()


async def test_a_missing_key_is_named_by_its_variable(spec: ModelSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STUB_KEY")
    with pytest.raises(ModelUnavailable, match="STUB_KEY"):
        OpenAIProvider(spec)


async def test_the_sdks_own_environment_does_not_redirect_calls(
    stub: HttpFake, spec: ModelSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    stub.says(200, completion())
    assert (await answer(spec)).text == "hi"
    assert stub.headers[0]["Authorization"] == f"Bearer {KEY}"


async def test_the_sdk_logs_no_key_at_any_level(
    stub: HttpFake, spec: ModelSpec, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    stub.says(401, {"error": {"message": "unauthorized"}})
    await failure(spec)
    assert caplog.records and "SECRET" not in caplog.text


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": [{"type": "reasoning", "text": "tired"}, {"type": "text", "text": "Rest."}]}, "Rest."),
        (
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "tired"}]}, {"text": "Rest."}]},
            "Rest.",
        ),
        ({"content": [{"type": "output_text", "text": "Re"}, {"type": "text", "text": "st."}]}, "Rest."),
        ({"content": "Rest.", "reasoning_content": "tired"}, "Rest."),
        ({"content": None, "reasoning_content": "tired"}, "<think>tired</think>"),
        ({"content": "\n", "reasoning": "tired"}, "<think>tired</think>"),
        ({"content": [{"type": "thinking", "thinking": "tired"}]}, "<think>tired</think>"),
        ({"content": None, "reasoning_content": {"odd": 1}}, ""),
        ({"content": "lone \ud800"}, "lone \ufffd"),
    ],
)
def test_thoughts_are_no_text_and_a_reply_of_thoughts_alone_is_marked_so(message: Any, text: str) -> None:
    assert read_text(message) == text


async def test_the_engine_rides_out_a_bad_minute_and_replays_it_for_nothing(
    stub: HttpFake, spec: ModelSpec, tmp_path: Path
) -> None:
    stub.says(429, {"error": {"message": "slow"}}, {"Retry-After": "0"})
    stub.says(500, {"error": {"message": "oops"}})
    stub.says(200, '{"choices": [')
    stub.says(200, completion("not json"))
    stub.says(200, completion('{"score": 4}'))
    cache = ReplyCache(tmp_path / "c.sqlite")
    request = Request("voting", "row", "judge", "stub", (Message("user", "rate"),), Score)
    for run_id, calls in (("run-1", 5), ("run-2", 0)):
        engine = Engine({"stub": spec}, cache, run_id=run_id, patience=Patience(base_seconds=0.0))
        outcome = await engine.ask(request)
        assert outcome.error is None and outcome.value == Score(score=4)
        assert engine.counters.calls_made == calls
        await engine.close()
    cache.close()
