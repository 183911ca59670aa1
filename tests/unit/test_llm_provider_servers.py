"""Every row of the table of failures through the real libraries: a local server answers, or does worse.

For llama.cpp the boundary is its server object, which is played here.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tasks.foundation.errors import ModelError, ModelUnavailable
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.engine import Engine
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.providers import embedded
from tasks.foundation.llm.providers.google_genai import GoogleProvider
from tasks.foundation.llm.providers.openai_compatible import OpenAIProvider
from tasks.foundation.llm.request import Message, RawReply, Request
from tests.fakes.http import HttpFake, cutting, hanging, reset, saying
from tests.unit.provider_rows import KEYS, Row, call_to, rows_of, seen

PROVIDERS: dict[str, Callable[[ModelSpec], Any]] = {"openai": OpenAIProvider, "google": GoogleProvider}
PATIENCE = 0.4
"""Seconds that a call waits for a server which hangs."""


class Server(HttpFake):
    """Answers as the row says whose place in the table is the model's name."""

    def __init__(self, rows: list[Row]) -> None:
        super().__init__(self.answer)
        self.rows = rows
        self.requests: list[int] = []
        self.over = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        place = int(self.bodies[-1].get("model") or request.path.rsplit("/", 1)[-1].split(":")[0])
        self.requests.append(place)
        row = self.rows[place]
        begun = b'{"choices": [{"mess'
        answers = {
            "": saying(row.status, row.content, row.headers),
            "close": reset,
            "hang": hanging(self.over),
            "stall": cutting(begun, self.over),
            "reset": cutting(begun),
        }
        return await answers[row.does](request)


@pytest.fixture
async def serve(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[list[Row]], Any]]:
    """Starts a server for some rows."""
    for provider, key in KEYS.items():
        monkeypatch.setenv(f"{provider.upper()}_STUB", key)
    started: list[Server] = []

    async with AsyncExitStack() as stack:

        async def start(rows: list[Row]) -> Server:
            started.append(Server(rows))
            await stack.enter_async_context(started[-1].running())
            return started[-1]

        yield start
        for server in started:
            server.over.set()


def spec_of(provider: str, url: str, name: str, timeout_seconds: float = 20.0) -> ModelSpec:
    return ModelSpec(
        "stub",
        provider,  # type: ignore[arg-type]
        name,
        "f",
        base_url=f"{url}/v1" if provider == "openai" else url,
        api_key_env=f"{provider.upper()}_STUB",
        timeout_seconds=timeout_seconds,
    )


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """The exception, and those that led to it."""
    for linked in (error.__cause__, error.__context__):
        if linked is not None:
            yield from chain_of(linked)
    yield error


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_every_answer_of_a_server_becomes_the_failure_of_the_table(
    provider: str, serve: Callable[[list[Row]], Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    rows = [row for row in rows_of(provider) if row.does != "refuse"]
    server = await serve(rows)
    made: dict[str, Any] = {}
    caller = PROVIDERS[provider](spec_of(provider, server.url, "m"))
    for place, row in enumerate(rows):
        patience = PATIENCE if row.does in ("hang", "stall") else 20.0
        try:
            made[row.name] = await caller.call(call_to(spec_of(provider, server.url, str(place), patience)))
        except (ModelError, ModelUnavailable) as failure:
            made[row.name] = failure
    await caller.close()

    assert {name: seen(outcome) for name, outcome in made.items()} == {row.name: row.expected for row in rows}
    assert server.requests == list(range(len(rows))), "every call was sent once: the libraries do not retry"
    failures = [outcome for outcome in made.values() if not isinstance(outcome, RawReply)]
    for failed in failures:
        assert list(chain_of(failed)) == [failed], "no exception of the library, with its request, is behind it"
        assert KEYS[provider] not in str(failed) and "SECRET" not in repr(failed.__dict__)
    assert KEYS[provider] not in caplog.text


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_server_that_is_not_there_is_a_connection_failure(
    provider: str, serve: Callable[[list[Row]], Any]
) -> None:
    (row,) = [row for row in rows_of(provider) if row.does == "refuse"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    caller = PROVIDERS[provider](spec_of(provider, f"http://127.0.0.1:{port}", "m"))
    with pytest.raises(ModelError) as caught:
        await caller.call(call_to(spec_of(provider, f"http://127.0.0.1:{port}", "m")))
    await caller.close()
    assert seen(caught.value) == row.expected
    assert list(chain_of(caught.value)) == [caught.value]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("empty content", "unreadable"),
        ("null content", "unreadable"),
        ("a tool call instead of content", "unreadable"),
        ("cut off", "truncated"),
        ("reasoning and no content", "truncated"),
        ("the model refuses", "refused"),
        ("the filter stopped the reply", "content_filter"),
    ],
)
async def test_a_reply_that_is_none_is_a_failure_of_its_own_kind_to_the_engine(
    name: str, kind: str, serve: Callable[[list[Row]], Any], tmp_path: Path
) -> None:
    server = await serve([row for row in rows_of("openai") if row.name == name])
    cache = ReplyCache(tmp_path / "c.sqlite")
    engine = Engine({"stub": spec_of("openai", server.url, "0")}, cache, run_id="run", max_reasks=0)
    outcome = await engine.ask(Request("voting", "row", "judge", "stub", (Message("user", "rate"),)))
    await engine.close()
    cache.close()
    assert outcome.error is not None and outcome.error.kind == kind == outcome.record.error_kind


class LlamaServer:
    """llama.cpp's server object as far as it is called: one method, which answers, raises or never returns."""

    def __init__(self, row: Row, over: threading.Event) -> None:
        self._row = row
        self._over = over

    def handle_chat_completions(self, request: dict[str, Any]) -> Any:
        assert request["messages"] == [{"role": "user", "content": "hello"}]
        if self._row.does == "hang":
            self._over.wait(30)
        if self._row.raises:
            kind, words = self._row.raises
            raise {"RuntimeError": RuntimeError, "ValueError": ValueError, "MemoryError": MemoryError}[kind](words)
        return self._row.body


@pytest.mark.parametrize("row", rows_of("embedded"), ids=[row.name for row in rows_of("embedded")])
async def test_whatever_llama_cpp_answers_becomes_the_failure_of_the_table(
    row: Row, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    over = threading.Event()
    monkeypatch.setattr(embedded, "_MODELS", embedded._LoadedModels())
    monkeypatch.setattr(embedded, "load_server", lambda path, **settings: LlamaServer(row, over))
    monkeypatch.setattr(embedded.weights, "path_of", lambda name: tmp_path / name)
    spec = ModelSpec("stub", "embedded", "tiny.gguf", "f", timeout_seconds=PATIENCE if row.does == "hang" else 20.0)
    try:
        outcome: Any = await embedded.EmbeddedProvider(spec).call(replace(call_to(spec), seed=7))
    except ModelError as failure:
        outcome = failure
    finally:
        over.set()
        for local in embedded._MODELS.loaded.values():
            local.threads.shutdown()
    assert seen(outcome) == row.expected
    if isinstance(outcome, RawReply):
        assert (outcome.model_reported, outcome.seed_sent) == ("tiny.gguf", 7)
