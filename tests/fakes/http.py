"""A local HTTP server whose answers a test writes, and the ways in which servers misbehave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def listening(app: web.Application) -> AsyncIterator[str]:
    """The URL at which the application is served on this machine."""
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


class HttpFake:
    """Answers every POST: with its `answers` one after another, the last of them for ever. Keeps what it was sent."""

    def __init__(self, *answers: Handler) -> None:
        self.answers = list(answers)
        self.paths: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""

    def says(self, status: int, body: Any, headers: dict[str, str] | None = None) -> HttpFake:
        """One more answer: a body that is JSON, or a text that claims to be."""
        return self.does(saying(status, body, headers))

    def does(self, answer: Handler) -> HttpFake:
        """One more answer."""
        self.answers.append(answer)
        return self

    @asynccontextmanager
    async def running(self) -> AsyncIterator[HttpFake]:
        """The fake, at its `url`."""
        app = web.Application()
        app.router.add_post("/{path:.*}", self._handle)
        async with listening(app) as self.url:
            yield self

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path)
        self.bodies.append(await request.json())
        self.headers.append(dict(request.headers))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await answer(request)


def saying(status: int, body: Any, headers: dict[str, str] | None = None) -> Handler:
    """An answer of a body that is JSON, or of a text or bytes that claim to be."""
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    content = text.encode() if isinstance(text, str) else text

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(
            status=status, body=content, headers={"Content-Type": "application/json", **(headers or {})}
        )

    return answer


def completion(content: Any, finish: str | None = "stop", **usage: Any) -> dict[str, Any]:
    """The body of a chat completion as OpenAI's endpoint sends it."""
    message = {"role": "assistant", "content": content}
    return {"model": "m", "choices": [{"index": 0, "finish_reason": finish, "message": message}], "usage": usage}


async def reset(request: web.Request) -> web.StreamResponse:
    """The connection is gone."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def hanging(over: asyncio.Event) -> Handler:
    """Nothing comes until it is `over`."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await over.wait()
        return web.Response(status=500)

    return answer


def cutting(begun: bytes, over: asyncio.Event | None = None) -> Handler:
    """A body that breaks off after its beginning: at once, or when it is `over`."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "1000"})
        await response.prepare(request)
        await response.write(begun)
        if over is not None:
            await over.wait()
        if request.transport is not None:  # else whoever asked has gone
            request.transport.abort()
        return response

    return answer


async def trickle(request: web.Request) -> web.StreamResponse:
    """A body that never ends."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.02)
