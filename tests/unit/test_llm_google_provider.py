"""The Gemini provider against a local server that speaks its protocol; failures are in test_llm_provider_servers.py."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tasks.foundation.errors import ModelError, ModelUnavailable
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.providers.google_genai import GoogleProvider
from tasks.foundation.llm.request import Message, ProviderCall, RawReply, Usage
from tests.fakes.http import HttpFake

KEY = "AIzaSySECRETSECRETSECRET"


@pytest.fixture
async def stub() -> AsyncIterator[HttpFake]:
    async with HttpFake().running() as stub:
        yield stub


@pytest.fixture
def spec(stub: HttpFake, monkeypatch: pytest.MonkeyPatch) -> ModelSpec:
    monkeypatch.setenv("STUB_KEY", KEY)
    return ModelSpec(
        "stub",
        "google",
        "gemini-x",
        "gemini",
        base_url=stub.url,
        api_key_env="STUB_KEY",
        timeout_seconds=5,
        extra_body={"generationConfig": {"thinkingConfig": {"thinkingLevel": "high"}}},
    )


def call_of(spec: ModelSpec, **changes: Any) -> ProviderCall:
    messages = (
        Message("system", "be careful"),
        Message("user", "hello"),
        Message("assistant", "hi"),
        Message("user", "again"),
    )
    return replace(ProviderCall(spec, messages, None, "", 0.0, 50, 11, 0), **changes)


def generated(text: str = "hi", finish: str | None = "STOP") -> dict[str, Any]:
    return {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": text}]},
                "finishReason": finish,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 20,
            "cachedContentTokenCount": 5,
            "candidatesTokenCount": 8,
            "thoughtsTokenCount": 30,
        },
        "modelVersion": "gemini-x-001",
    }


async def answer(spec: ModelSpec, **changes: Any) -> RawReply:
    provider = GoogleProvider(spec)
    try:
        return await provider.call(call_of(spec, **changes))
    finally:
        await provider.close()


async def failure(spec: ModelSpec) -> ModelError | ModelUnavailable:
    with pytest.raises((ModelError, ModelUnavailable)) as caught:
        await answer(spec)
    assert KEY not in str(caught.value)
    return caught.value


async def test_a_reply_leaves_out_thoughts_and_counts_them(stub: HttpFake, spec: ModelSpec) -> None:
    stub.says(200, generated())
    reply = await answer(spec)
    assert (reply.text, reply.finish_reason, reply.seed_sent) == ("hi", "stop", 11)
    assert reply.model_reported == "gemini-x-001"
    assert reply.usage == Usage(20, 5, 38, 30)
    assert stub.paths == ["/v1beta/models/gemini-x:generateContent"]
    assert stub.headers[0]["x-goog-api-key"] == KEY


async def test_the_request_has_roles_schema_sampling_and_thinking(stub: HttpFake, spec: ModelSpec) -> None:
    stub.says(200, generated("{}"))
    await answer(spec, schema={"type": "object"}, schema_name="X")
    sent = stub.bodies[0]
    assert [turn["role"] for turn in sent["contents"]] == ["user", "model", "user"]
    assert sent["systemInstruction"]["parts"][0]["text"] == "be careful"
    assert sent["generationConfig"] == {
        "temperature": 0.0,
        "maxOutputTokens": 50,
        "seed": 11,
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object"},
        "thinkingConfig": {"thinkingLevel": "high"},
    }


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("OTHER", "length"),
        ("A_WORD_OF_NEXT_YEAR", "stop"),
        (None, "stop"),
    ],
)
async def test_every_finish_reason_is_one_of_ours(
    stub: HttpFake, spec: ModelSpec, finish: str | None, expected: str
) -> None:
    stub.says(200, generated("x", finish))
    assert (await answer(spec)).finish_reason == expected


async def test_a_blocked_prompt_is_a_content_filter_with_its_usage(stub: HttpFake, spec: ModelSpec) -> None:
    stub.says(200, {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 20}})
    reply = await answer(spec)
    assert (reply.text, reply.finish_reason, reply.usage.prompt_tokens) == ("", "content_filter", 20)


async def test_a_dead_server_is_a_connection_failure_and_is_not_tried_twice(
    spec: ModelSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_sleep(seconds: float) -> None:
        raise AssertionError("the SDK waits to retry by itself")

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with monkeypatch.context() as patched:
        patched.setattr("google.genai._api_client.asyncio.sleep", no_sleep)
        caught = await failure(replace(spec, base_url=f"http://127.0.0.1:{port}"))
    assert isinstance(caught, ModelError) and caught.kind == "connection"


async def test_a_missing_key_is_named_by_its_variable(spec: ModelSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STUB_KEY")
    monkeypatch.setenv("GOOGLE_API_KEY", "another")
    with pytest.raises(ModelUnavailable, match="STUB_KEY"):
        GoogleProvider(spec)
