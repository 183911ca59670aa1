"""The OpenAI-compatible provider against llama.cpp's own HTTP server: a real model behind the real SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from tasks.foundation import weights
from tasks.foundation.errors import ModelError, ModelUnavailable
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.engine import Engine
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.providers.embedded import load_server
from tasks.foundation.llm.providers.openai_compatible import OpenAIProvider
from tasks.foundation.llm.request import Message, ProviderCall, Request

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(weights.missing("smollm2-135m") is not None, reason="colloquy models pull smollm2-135m"),
]

KEY = "local-test-key"


class Verdict(BaseModel):
    label: Literal["agree", "disagree"]
    score: int = Field(ge=1, le=10)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = load_server(weights.path_of("smollm2-135m"), slots=2, threads=1, context_tokens=512, http_key=KEY)
    yield f"{server.listening_address}/v1"


@pytest.fixture
def spec(url: str, monkeypatch: pytest.MonkeyPatch) -> ModelSpec:
    monkeypatch.setenv("LOCAL_KEY", KEY)
    return ModelSpec("local", "openai", "smollm2", "smollm", base_url=url, api_key_env="LOCAL_KEY", access="open")


def request(number: int) -> Request:
    message = Message("user", f"Do rivers flow downhill? ({number})")
    return Request("voting", f"row-{number}", "judge", "local", (message,), Verdict, max_tokens=60, seed=number)


@pytest.mark.parametrize("structured", ["json_schema", "json_object"])
async def test_replies_over_http_are_checked_and_booked(spec: ModelSpec, structured: str, tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "c.sqlite")
    models = {"local": replace(spec, structured=structured)}  # type: ignore[arg-type]
    engine = Engine(models, cache, run_id="r")
    outcomes = await asyncio.gather(*(engine.ask(request(number)) for number in range(2)))
    if structured == "json_schema":
        assert all(isinstance(outcome.value, Verdict) for outcome in outcomes)
    assert all(outcome.record.completion_tokens for outcome in outcomes)
    assert all(outcome.record.cost_usd is None for outcome in outcomes), "nobody lists a price for localhost"
    await engine.close()
    cache.close()


async def test_a_prompt_beyond_the_context_is_its_own_failure(spec: ModelSpec) -> None:
    provider = OpenAIProvider(spec)
    with pytest.raises(ModelError) as caught:
        await provider.call(ProviderCall(spec, (Message("user", "word " * 2000),), None, "", 0.0, 8, None, 0))
    assert caught.value.kind == "context_overflow"
    await provider.close()


async def test_a_wrong_key_makes_the_model_unavailable(spec: ModelSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_KEY", "another-secret")
    provider = OpenAIProvider(spec)
    with pytest.raises(ModelUnavailable) as caught:
        await provider.call(ProviderCall(spec, (Message("user", "hi"),), None, "", 0.0, 8, None, 0))
    assert "another-secret" not in str(caught.value)
    await provider.close()
