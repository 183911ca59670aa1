"""The embedded models: tokens a second with 1, 4 and 8 slots, with and without reuse of a common prefix.

Eight requests share a long beginning and end differently, as the requests of a stage do. COLLOQUY_BENCH_MODELS
names the models (default: all three), separated by commas. About ten minutes on two cores.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from dataclasses import dataclass

import pytest

from tasks.foundation import weights
from tasks.foundation.llm.models import ModelSpec, load_models
from tasks.foundation.llm.providers import embedded
from tasks.foundation.llm.request import Message, ProviderCall

MODELS = os.environ.get("COLLOQUY_BENCH_MODELS", "smollm2-135m,gemma-3-270m,qwen2.5-coder-0.5b").split(",")
SLOTS = (1, 4, 8)
REQUESTS = 8
COMPLETION_TOKENS = 48
THREADS = 2

RULES = " ".join(
    f"Rule {number}: when a speaker changes the subject, say who did so, and keep to the words of the dialogue."
    for number in range(1, 9)
)


@dataclass(frozen=True)
class Speed:
    prompt_tokens: int
    completion_tokens: int
    seconds: float

    @property
    def total(self) -> float:
        """Prompt and completion tokens a second, prompts counted whole whether reused or not."""
        return (self.prompt_tokens + self.completion_tokens) / self.seconds


def call(spec: ModelSpec, number: int) -> ProviderCall:
    messages = (
        Message("system", f"You label dialogues. {RULES}"),
        Message("user", f"Dialogue {number}: A asks B about the weather. Describe it in three sentences."),
    )
    return ProviderCall(spec, messages, None, "", 0.8, COMPLETION_TOKENS, number, 0)


async def measure(spec: ModelSpec) -> Speed:
    provider = embedded.EmbeddedProvider(spec)
    await provider.call(call(spec, 10_000))
    started = time.perf_counter()
    replies = await asyncio.gather(*(provider.call(call(spec, number)) for number in range(REQUESTS)))
    seconds = time.perf_counter() - started
    return Speed(
        sum(reply.usage.prompt_tokens or 0 for reply in replies),
        sum(reply.usage.completion_tokens or 0 for reply in replies),
        seconds,
    )


def unload() -> None:
    """Frees the model in memory, so that the next one has the machine to itself."""
    for local in embedded._MODELS.loaded.values():
        local.threads.shutdown()
    embedded._MODELS.loaded.clear()
    gc.collect()


def variant(alias: str, slots: int, reuse: bool) -> ModelSpec:
    spec = load_models()[alias]
    return ModelSpec(
        alias=alias,
        provider="embedded",
        name=spec.name,
        family=spec.family,
        context_tokens=2048,
        slots=slots,
        threads=THREADS,
        timeout_seconds=600,
        extra_body={**spec.extra_body, "cache_prompt": reuse},
    )


@pytest.mark.parametrize("alias", MODELS)
def test_speed_by_slots_and_prefix_reuse(alias: str) -> None:
    if weights.missing(load_models()[alias].name):
        pytest.skip(f"no weights: colloquy models pull {alias}")
    print(f"\n{alias}, {THREADS} threads, {REQUESTS} requests: all tokens/s (completion tokens/s)")
    print(f"{'slots':>6} {'prefix reused':>20} {'prefix read anew':>20}")
    for slots in SLOTS:
        cells = []
        for reuse in (True, False):
            speed = asyncio.run(measure(variant(alias, slots, reuse)))
            unload()
            assert speed.completion_tokens > 0
            cells.append(f"{speed.total:9.0f} ({speed.completion_tokens / speed.seconds:5.1f})")
        print(f"{slots:6} {cells[0]:>20} {cells[1]:>20}", flush=True)
