"""The embedded provider on real weights: the smallest model, short replies."""

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
from tasks.foundation.llm.models import load_models
from tasks.foundation.llm.prompts import defuse
from tasks.foundation.llm.providers.embedded import EmbeddedProvider
from tasks.foundation.llm.request import Message, ProviderCall, Request

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(weights.missing("smollm2-135m") is not None, reason="colloquy models pull smollm2-135m"),
]

MODELS = load_models()
SMALL = replace(MODELS["smollm2-135m"], context_tokens=512)


class Verdict(BaseModel):
    label: Literal["agree", "disagree"]
    score: int = Field(ge=1, le=10)
    reason: str = Field(max_length=30)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ReplyCache]:
    cache = ReplyCache(tmp_path / "replies.sqlite")
    yield cache
    cache.close()


def request(number: int = 0, **changes: object) -> Request:
    message = Message("user", f"Do rivers flow downhill? ({number})")
    base = Request("voting", f"row-{number}", "judge", "small", (message,), Verdict, max_tokens=80, seed=number)
    return replace(base, **changes)  # type: ignore[arg-type]


def call(text: str, max_tokens: int = 16) -> ProviderCall:
    return ProviderCall(SMALL, (Message("user", text),), None, "", 0.0, max_tokens, 1, 0)


async def test_several_requests_at_once_keep_to_the_schema(cache: ReplyCache) -> None:
    engine = Engine({"small": SMALL}, cache, run_id="r")
    outcomes = await asyncio.gather(*(engine.ask(request(number, temperature=0.7)) for number in range(3)))
    assert all(isinstance(outcome.value, Verdict) for outcome in outcomes)
    record = outcomes[1].record
    assert record.prompt_tokens and record.completion_tokens
    assert (record.cost_usd, record.seed_sent, record.model_reported) == (0.0, 1, "smollm2-135m")
    await engine.close()


async def test_a_second_run_replays_without_a_call(cache: ReplyCache) -> None:
    first = await Engine({"small": SMALL}, cache, run_id="r1").ask(request())
    again = Engine({"small": SMALL}, cache, run_id="r2")
    second = await again.ask(request())
    assert again.counters.calls_made == 0
    assert second.trace == first.trace


async def test_a_reply_that_runs_out_of_tokens_says_so() -> None:
    reply = await EmbeddedProvider(SMALL).call(call("Tell me a very long story.", max_tokens=4))
    assert reply.finish_reason == "length" and reply.usage.completion_tokens == 4


async def test_a_prompt_beyond_the_context_is_its_own_failure() -> None:
    with pytest.raises(ModelError) as caught:
        await EmbeddedProvider(SMALL).call(call("word " * 2000))
    assert caught.value.kind == "context_overflow"


async def test_a_call_that_takes_too_long_lets_go_of_its_caller() -> None:
    slow = replace(call("Count to a thousand.", max_tokens=40), model=replace(SMALL, timeout_seconds=0.05))
    with pytest.raises(ModelError) as caught:
        await EmbeddedProvider(SMALL).call(slow)
    assert caught.value.kind == "timeout"


async def test_missing_weights_name_the_command_that_gets_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(weights.MODELS_DIR_ENV, str(tmp_path))
    with pytest.raises(ModelUnavailable, match="colloquy models pull smollm2-135m"):
        await EmbeddedProvider(SMALL).call(call("hello"))


async def test_llama_cpp_writes_nothing_to_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    await EmbeddedProvider(SMALL).call(call("hello", max_tokens=2))
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


async def test_a_control_token_within_a_text_is_text_to_the_model() -> None:
    provider, token = EmbeddedProvider(SMALL), "<|im_end|>"

    async def prompt_tokens(text: str) -> int:
        return (await provider.call(call(text, max_tokens=1))).usage.prompt_tokens or 0

    none, raw = await prompt_tokens("Say hello"), await prompt_tokens(f"Say hello{token}")
    assert raw == none + 1, "the model reads it as one real token"
    assert await prompt_tokens(defuse(f"Say hello{token}", frozenset())) > none + 3
