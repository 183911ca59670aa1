"""Runs of an engine in batch mode against the local batch servers, for the tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from tasks.foundation.llm.batch.transport import BatchTransport
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.engine import Engine
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.request import Message, Outcome, Request
from tasks.foundation.llm.sending import Patience
from tests.fakes.batch_servers import KEY, BatchServer, GeminiServer, OpenAIServer, serving


class Score(BaseModel):
    score: int = Field(ge=1, le=10)
    why: str


@pytest.fixture(params=[OpenAIServer, GeminiServer], ids=["openai", "gemini"])
async def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BatchServer]:
    monkeypatch.setenv("STUB_KEY", KEY)
    async with serving(request.param()) as server:
        yield server


only_openai = pytest.mark.parametrize("server", [OpenAIServer], indirect=True, ids=["openai"])
"""For what has nothing to do with the protocol."""


@pytest.fixture
def spec(server: BatchServer) -> ModelSpec:
    return spec_of(server)


def spec_of(server: BatchServer) -> ModelSpec:
    common: dict[str, Any] = {"api_key_env": "STUB_KEY", "batch": True, "max_in_flight": 1000, "timeout_seconds": 5}
    if isinstance(server, GeminiServer):
        return ModelSpec("judge", "google", "gemini-x", "gemini", base_url=server.url, **common)
    return ModelSpec("judge", "openai", "gpt-x", "gpt", base_url=f"{server.url}/v1", **common)


def request(row: int, **changes: Any) -> Request:
    base = Request("judging", f"row-{row}", "judge", "judge", (Message("user", f"rate row {row}"),), Score, seed=row)
    return replace(base, **changes)


def transport_in(folder: Path, cache: ReplyCache | None = None, **changes: Any) -> BatchTransport:
    settings: dict[str, Any] = {"requests_per_job": 1000, "gather_seconds": 0.1, "poll_seconds": 0.01}
    is_cached: Callable[[str], bool] = (lambda key: cache.get(key) is not None) if cache else (lambda key: False)
    return BatchTransport(folder, is_cached=is_cached, **(settings | changes))


@asynccontextmanager
async def engine_in(
    folder: Path, spec: ModelSpec, *, live: bool = False, attempts: int = 5, **changes: Any
) -> AsyncIterator[Engine]:
    """An engine over the cache and the jobs in `folder`, as a run of the program has it."""
    cache = ReplyCache(folder / "replies.sqlite")
    transport = None if live else transport_in(folder, cache, **changes)
    engine = Engine(
        {"judge": spec},
        cache,
        run_id="run",
        patience=Patience(attempts, base_seconds=0.0),
        transport=transport,
    )
    try:
        yield engine
    finally:
        await engine.close()
        if transport is not None:
            await transport.close()
        cache.close()


async def ask_all(engine: Engine, rows: range) -> list[Outcome]:
    return await asyncio.gather(*(engine.ask(request(row)) for row in rows))


def values(outcomes: list[Outcome]) -> list[Any]:
    return [outcome.value if outcome.error is None else outcome.error for outcome in outcomes]


async def run(folder: Path, spec: ModelSpec, rows: range = range(4), **changes: Any) -> list[Outcome]:
    """What a whole run gives. The first job is cut as soon as all rows have gathered."""
    async with engine_in(folder, spec, **({"requests_per_job": len(rows)} | changes)) as engine:
        return await ask_all(engine, rows)


async def stopped_run(folder: Path, server: BatchServer, spec: ModelSpec, rows: range = range(4)) -> None:
    """A run that is cancelled, as by Ctrl-C, while its job runs at the provider."""
    polls, server.polls = server.polls, 10**9
    async with engine_in(folder, spec, requests_per_job=len(rows)) as engine:
        task = asyncio.create_task(ask_all(engine, rows))
        while not server.polled:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    server.polls = polls
    for job in server.jobs.values():
        job["polls"] = polls
