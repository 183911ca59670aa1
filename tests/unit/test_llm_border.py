"""Answers that are no HTTP, or not the one asked for: each is a failure in passing, and nobody hears the key.

A server on a socket sends its bytes as they are, so that the client libraries meet what no web framework would send.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import ssl
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from tasks.foundation.errors import ModelError
from tasks.foundation.llm.batch import BatchApi
from tasks.foundation.llm.batch.transport import make_batch_api
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.engine import Engine
from tasks.foundation.llm.failures import ProviderFailure, read_retry_after
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.providers.google_genai import GoogleProvider
from tasks.foundation.llm.providers.openai_compatible import OpenAIProvider
from tasks.foundation.llm.request import Message, ProviderCall, RawReply, Request
from tasks.foundation.llm.sending import Patience
from tests.unit.provider_rows import KEYS, call_to

PROVIDERS: dict[str, Callable[[ModelSpec], Any]] = {"openai": OpenAIProvider, "google": GoogleProvider}

GOOD = {
    "openai": {"choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}], "model": "m"},
    "google": {"candidates": [{"content": {"parts": [{"text": "fine"}]}, "finishReason": "STOP"}]},
}


def answer_with(headers: str, body: bytes = b"", *, status: str = "HTTP/1.1 200 OK") -> bytes:
    return f"{status}\r\n{headers}\r\n".encode() + body


def right(provider: str, headers: str = "") -> bytes:
    body = json.dumps(GOOD[provider]).encode()
    return answer_with(f"Content-Type: application/json\r\n{headers}Content-Length: {len(body)}\r\n", body)


def broken(provider: str) -> dict[str, bytes]:
    """What comes instead of an answer, by name."""
    body = json.dumps(GOOD[provider]).encode()
    chunked = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return {
        "a header line of 9,000 bytes": right(provider, f"X-Long: {'y' * 9000}\r\n"),
        "a header without a colon": right(provider, "no colon here\r\n"),
        "a status line without a number": answer_with(length, body, status="HTTP/1.1 OK"),
        "a status of four digits": answer_with(length, body, status="HTTP/1.1 2000 OK"),
        "a body shorter than its length": answer_with("Content-Length: 5000\r\n", body),
        "a length that is no number": answer_with("Content-Length: many\r\n", body),
        "a chunk size that is no number": answer_with(chunked, b"zz\r\n" + body + b"\r\n0\r\n\r\n"),
        "a chunked body that breaks off": answer_with(chunked, b"%x\r\n" % (len(body) + 9) + body),
        "gzip that is none": answer_with(f"Content-Encoding: gzip\r\n{length}", body),
        "gzip cut in half": answer_with("Content-Encoding: gzip\r\nConnection: close\r\n", gzip.compress(body)[:20]),
        "a banner of another protocol": b"220 mail.example ready\r\n",
        "a TLS alert": b"\x15\x03\x01\x00\x02\x02\x46",
        "nothing at all": b"",
    }


@dataclass
class Socket:
    """A server that sends `answers` one after another, the last for ever; `seen` are the requests it got. It closes
    each connection after one, unless it `keeps` them."""

    answers: list[bytes] = field(default_factory=list)
    keeps: bool = False
    seen: list[bytes] = field(default_factory=list)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
            while self.keeps:
                await self._answer(reader, writer)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            self.seen.append(b"")
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
        self.seen.append(head + await reader.readexactly(int(length.split(b":")[1])))
        writer.write(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])
        await writer.drain()


@pytest.fixture
async def sockets(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[list[bytes]], Any]]:
    """Starts a server for some answers."""
    for provider, key in KEYS.items():
        monkeypatch.setenv(f"{provider.upper()}_STUB", key)
    servers: list[asyncio.Server] = []

    async def start(answers: list[bytes]) -> Socket:
        stub = Socket(answers)
        server = await asyncio.start_server(stub.serve, "127.0.0.1", 0)
        servers.append(server)
        stub.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return stub

    yield start
    for server in servers:
        server.close()


def spec_of(provider: str, url: str) -> ModelSpec:
    return ModelSpec(
        "stub",
        provider,  # type: ignore[arg-type]
        "m",
        "f",
        base_url=f"{url}/v1" if provider == "openai" else url,
        api_key_env=f"{provider.upper()}_STUB",
        timeout_seconds=20.0,
    )


def led_to(error: BaseException) -> Iterator[BaseException]:
    """The exception and every one that can be reached from it."""
    yield error
    for linked in (error.__cause__, error.__context__):
        if linked is not None:
            yield from led_to(linked)


def shown(error: BaseException) -> str:
    """All that a log or a page could show of it."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))


async def failure_from(provider: str, stub: Socket) -> ProviderFailure:
    caller = PROVIDERS[provider](spec_of(provider, stub.url))
    with pytest.raises(ProviderFailure) as caught:
        await caller.call(call_to(spec_of(provider, stub.url)))
    await caller.close()
    return caught.value


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_is_no_http_is_a_failure_in_passing_that_leads_to_no_key(
    provider: str, sockets: Callable[[list[bytes]], Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for name, answer in broken(provider).items():
        stub = await sockets([answer])
        failure = await failure_from(provider, stub)
        assert failure.kind in ("connection", "server"), name
        assert list(led_to(failure)) == [failure], name
        assert "SECRET" not in shown(failure), name
        assert len(stub.seen) == 1, f"{name}: the libraries do not try again by themselves"
    assert "SECRET" not in caplog.text


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("extra", ["many headers", "bytes after the last chunk"])
async def test_oddities_around_a_right_answer_cost_no_more_than_a_failure_in_passing(
    provider: str, extra: str, sockets: Callable[[list[bytes]], Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    body = json.dumps(GOOD[provider]).encode()
    odd = {
        "many headers": right(provider, "".join(f"X-{n}: {n}\r\n" for n in range(150))),
        "bytes after the last chunk": answer_with(
            "Transfer-Encoding: chunked\r\n", b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\ngarbage\r\n"
        ),
    }
    stub = await sockets([odd[extra], right(provider)])
    stub.keeps = True
    caller = PROVIDERS[provider](spec_of(provider, stub.url))
    outcomes: list[Any] = []
    for _ in range(3):
        try:
            outcomes.append(await caller.call(call_to(spec_of(provider, stub.url))))
        except ProviderFailure as failure:
            assert failure.kind in ("connection", "server") and "SECRET" not in shown(failure)
            outcomes.append(failure)
    await caller.close()
    assert isinstance(outcomes[-1], RawReply) and outcomes[-1].text == "fine"
    assert "SECRET" not in caplog.text


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_engine_goes_on_after_a_broken_answer_and_counts_it(
    provider: str, sockets: Callable[[list[bytes]], Any], tmp_path: Path
) -> None:
    stub = await sockets(
        [broken(provider)["a header line of 9,000 bytes"], broken(provider)["gzip that is none"], right(provider)]
    )
    with ReplyCache(tmp_path / "c.sqlite") as cache:
        engine = Engine({"stub": spec_of(provider, stub.url)}, cache, run_id="b/s", patience=Patience(base_seconds=0.0))
        outcome = await engine.ask(Request("voting", "row", "judge", "stub", (Message("user", "rate"),)))
        await engine.close()
    assert outcome.error is None and outcome.value == "fine"
    assert outcome.record.attempts == 3 == len(stub.seen)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_a_redirect_is_not_followed_and_both_addresses_are_named(
    provider: str, status: str, sockets: Callable[[list[bytes]], Any]
) -> None:
    elsewhere = await sockets([right(provider)])
    location = f"Location: {elsewhere.url}/v1/chat?token={KEYS[provider]}\r\nContent-Length: 0\r\n"
    stub = await sockets([answer_with(location, status=f"HTTP/1.1 {status}")])
    failure = await failure_from(provider, stub)
    assert failure.kind == "connection"
    assert stub.url in str(failure) and f"{elsewhere.url}/v1/chat" in str(failure) and "base_url" in str(failure)
    assert elsewhere.seen == [], "neither the prompt nor the key went there"
    assert "SECRET" not in shown(failure)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_batch_calls_meet_the_same_border(
    provider: str, sockets: Callable[[list[bytes]], Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    elsewhere = await sockets([right(provider)])
    moved = answer_with(f"Location: {elsewhere.url}/\r\nContent-Length: 0\r\n", status="HTTP/1.1 307 Elsewhere")
    odd = [b'[1, "two"]', b'{"id": 5, "data": 7, "batches": "x", "file": []}', b"{}"]
    strange = [answer_with(f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n", text) for text in odd]
    file = tmp_path / "job.jsonl"
    file.write_bytes(b"{}\n")

    def asks(api: BatchApi) -> dict[str, Callable[[], Any]]:
        return {
            "upload": lambda: api.upload(file, "tag"),
            "create": lambda: api.create("files/1", "tag", "m"),
            "find": lambda: api.find("tag"),
            "status": lambda: api.status("batches/1"),
            "download": lambda: api.download("files/1", tmp_path / "out"),
        }

    answers = broken(provider)
    del answers["gzip cut in half"]  # of a file without a length nobody can tell; its missing lines are asked again
    for answer in [*answers.values(), moved, *strange]:
        stub = await sockets([answer])
        api = make_batch_api(spec_of(provider, stub.url))
        for name, ask in asks(api).items():
            try:
                await ask()
            except ProviderFailure as failure:
                assert failure.kind in ("connection", "server"), name
                assert list(led_to(failure)) == [failure] and "SECRET" not in shown(failure), name
            else:
                assert answer in strange, f"{name} took {answer!r} for an answer"
        await api.close()
    assert elsewhere.seen == []
    assert "SECRET" not in caplog.text


async def test_plain_http_to_a_tls_port_and_tls_to_a_plain_one_are_connection_failures(
    sockets: Callable[[list[bytes]], Any],
) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    stub = await sockets([])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for scheme, settings in (("https", {}), ("http", {"ssl": tls})):
        server = await asyncio.start_server(plain, "127.0.0.1", 0, **settings)
        stub.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        failure = await failure_from("openai", stub)
        server.close()
        assert failure.kind == "connection" and "SECRET" not in shown(failure)


async def test_whatever_else_escapes_a_provider_is_a_redacted_failure_of_the_call(tmp_path: Path) -> None:
    class Leaking:
        async def call(self, call: ProviderCall) -> RawReply:
            try:
                raise ValueError("Authorization: Bearer sk-proj-SECRETsecretSECRET")
            except ValueError:
                raise LookupError("headers {'authorization': 'Bearer sk-proj-SECRETsecretSECRET'}") from None

        async def close(self) -> None: ...

    spec = ModelSpec("stub", "openai", "m", "f")
    with ReplyCache(tmp_path / "c.sqlite") as cache:
        engine = Engine({"stub": spec}, cache, run_id="b/s", patience=Patience(2, 0.0), providers={"stub": Leaking()})
        outcome = await engine.ask(Request("voting", "row", "judge", "stub", (Message("user", "rate"),)))
        await engine.close()
    assert outcome.error is not None and outcome.error.kind == "server" and outcome.record.attempts == 2
    assert "LookupError" in str(outcome.error) and "SECRET" not in shown(outcome.error)
    assert isinstance(outcome.error, ModelError) and list(led_to(outcome.error)) == [outcome.error]


def test_a_date_to_wait_until_is_by_the_clock_of_the_server_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 12, 1, 12, tzinfo=UTC)
    monkeypatch.setattr("tasks.foundation.llm.failures.time.time", now.timestamp)
    ahead = now + timedelta(hours=1)
    headers = {"Date": format_datetime(ahead), "Retry-After": format_datetime(ahead + timedelta(seconds=20))}
    assert read_retry_after(headers) == 20.0
    assert read_retry_after({**headers, "Retry-After": format_datetime(ahead - timedelta(minutes=5))}) == 0.0
    assert read_retry_after({"Retry-After": headers["Retry-After"]}) == 3620.0, "by ours where it names none"
    assert read_retry_after({"Retry-After": "Tue, 99 Foo 99999 00:00:00 GMT"}) is None
