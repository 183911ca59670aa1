"""The engine against the bare SDK on one loopback server with 50 ms latency, and replies from the cache.

make bench        prints ratios; both sides run in one process, one after the other, best of three
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import openai
from aiohttp import web
from pydantic import BaseModel

from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.engine import Engine
from tasks.foundation.llm.reply import schema_of
from tasks.foundation.llm.request import Message, ModelSpec, Request

LATENCY_SECONDS = 0.05
REQUESTS = 1000
IN_FLIGHT = 64
ROUNDS = 3


class Verdict(BaseModel):
    reason: str
    score: int


ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "created": 0,
    "model": "stub",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": json.dumps({"reason": "fine", "score": 7})},
        }
    ],
    "usage": {"prompt_tokens": 50, "completion_tokens": 12, "total_tokens": 62},
}


async def _serve() -> tuple[web.AppRunner, str]:
    async def complete(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(LATENCY_SECONDS)
        return web.json_response(ANSWER)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
    return runner, f"http://127.0.0.1:{port}/v1"


def _request(number: int) -> Request:
    messages = (Message("system", "You judge."), Message("user", f"Row {number}: is this good?"))
    return Request("bench", str(number), "judge", "stub", messages, reply=Verdict, max_tokens=100)


async def _rate(ask: Callable[[int], Awaitable[object]], n: int) -> float:
    places = asyncio.Semaphore(IN_FLIGHT)

    async def one(number: int) -> None:
        async with places:
            await ask(number)

    started = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(n)))
    return n / (time.perf_counter() - started)


async def _compare(folder: Path) -> tuple[float, float, float]:
    """Requests a second: bare SDK, engine, and the engine again from its cache."""
    runner, url = await _serve()
    bare = openai.AsyncOpenAI(
        base_url=url, api_key="none", max_retries=0, http_client=openai.DefaultAioHttpClient(timeout=60)
    )
    schema = {"type": "json_schema", "json_schema": {"name": "Verdict", "schema": schema_of(Verdict)}}

    async def ask_bare(number: int) -> Verdict:
        messages = [{"role": part.role, "content": part.content} for part in _request(number).messages]
        reply = await bare.chat.completions.create(
            model="stub",
            messages=messages,
            response_format=schema,
            max_tokens=100,  # type: ignore[arg-type]
        )
        return Verdict.model_validate(json.loads(reply.choices[0].message.content or ""))

    spec = ModelSpec(alias="stub", provider="openai", name="stub", family="stub", base_url=url, max_in_flight=IN_FLIGHT)
    rates = []
    for number in range(ROUNDS):
        cache = ReplyCache(folder / f"{number}.sqlite")
        engine = Engine({"stub": spec}, cache, run_id="bench")
        rates.append(
            (
                await _rate(ask_bare, REQUESTS),
                await _rate(lambda n, engine=engine: engine.ask(_request(n)), REQUESTS),  # type: ignore[misc]
                await _rate(lambda n, engine=engine: engine.ask(_request(n)), REQUESTS),  # type: ignore[misc]
            )
        )
        await engine.close()
        cache.close()
    await bare.close()
    await runner.cleanup()
    best = [max(column) for column in zip(*rates, strict=True)]
    return best[0], best[1], best[2]


def test_engine_against_the_bare_sdk(tmp_path: Path) -> None:
    bare, engine, cached = asyncio.run(_compare(tmp_path))
    print(f"\n{REQUESTS} structured requests, {LATENCY_SECONDS * 1000:.0f} ms, {IN_FLIGHT} in flight, best of {ROUNDS}")
    print(f"bare SDK  {bare:8.0f}/s\nengine    {engine:8.0f}/s   {engine / bare:.2f} of bare")
    print(f"cached    {cached:8.0f}/s   {cached / bare:.2f} of bare")
