"""A chat-completions endpoint for measuring clients: every answer takes 50 ms and is {"reason": "fine", "score": 7}.

Where a request brings a schema, every field is filled by its type (curator first probes with a schema of its own);
where JSON was only asked for in words, it comes in a fenced block. `GET /stats?last=2000` tells what arrived,
`POST /reset` forgets it. The first line on stdout is the base URL.

    python server.py [--latency 0.05]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from contextlib import suppress
from typing import Any

from aiohttp import web

ANSWER = json.dumps({"reason": "fine", "score": 7})
USAGE = {"prompt_tokens": 50, "completion_tokens": 12, "total_tokens": 62}


class Endpoint:
    """Answers, and counts what it answered between two resets."""

    def __init__(self, latency_seconds: float) -> None:
        self.latency_seconds = latency_seconds
        self.reset()

    def reset(self) -> None:
        self.in_flight = self.peak_in_flight = 0
        self.arrivals: list[float] = []
        self.last_answer = 0.0

    async def complete(self, request: web.Request) -> web.Response:
        self.arrivals.append(time.monotonic())
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        try:
            body = json.loads(await request.read())
            await asyncio.sleep(self.latency_seconds)
            return web.json_response(answer(body))
        finally:
            self.in_flight -= 1
            self.last_answer = time.monotonic()

    async def stats(self, request: web.Request) -> web.Response:
        """`serving_seconds`: from the first of the `last` requests to arrive to the last answer; null for none."""
        counted = self.arrivals[-int(request.query.get("last", 0)) :]
        return web.json_response(
            {
                "served": len(self.arrivals),
                "peak_in_flight": self.peak_in_flight,
                "serving_seconds": round(self.last_answer - counted[0], 3) if counted else None,
            }
        )

    async def forget(self, request: web.Request) -> web.Response:
        self.reset()
        return web.json_response({})


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """The completion for one request."""
    wanted = body.get("response_format") or {}
    if "json_schema" in wanted:
        text = filled(wanted["json_schema"].get("schema") or {})
    else:
        text = ANSWER if wanted else f"```json\n{ANSWER}\n```"
    message = {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model", "stub"),
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": USAGE,
    }


def filled(schema: dict[str, Any]) -> str:
    """An object that keeps to a flat schema, as JSON: 7 for numbers, "fine" for everything else."""
    numbers = ("integer", "number")
    fields = schema.get("properties") or {}
    return json.dumps({name: 7 if field.get("type") in numbers else "fine" for name, field in fields.items()})


async def serve(latency_seconds: float) -> None:
    """Listens on a free loopback port until the process is stopped."""
    endpoint = Endpoint(latency_seconds)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", endpoint.complete)
    app.router.add_get("/stats", endpoint.stats)
    app.router.add_post("/reset", endpoint.forget)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds an answer takes")
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(parser.parse_args().latency))
