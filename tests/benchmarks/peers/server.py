"""A chat-completions endpoint for measuring clients: every answer takes 50 ms and is {"reason": "fine", "score": 7}.

Where a request brings a schema, every field is filled by its type (curator first probes with a schema of its own);
where JSON was only asked for in words, it comes in a fenced block. `GET /stats?last=2000` tells what arrived,
`POST /reset` forgets it. The first line on stdout is the base URL. With a limit, no window of so many seconds
holds more answers: what comes above is refused with HTTP 429 and no hint when to come again.

    python server.py [--latency 0.05] [--limit 600 --window 60]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import deque
from contextlib import suppress
from typing import Any

from aiohttp import web

ANSWER = json.dumps({"reason": "fine", "score": 7})
USAGE = {"prompt_tokens": 50, "completion_tokens": 12, "total_tokens": 62}


class Endpoint:
    """Answers, and counts what it answered between two resets."""

    def __init__(self, latency_seconds: float, limit: int | None, window_seconds: float) -> None:
        self.latency_seconds = latency_seconds
        self.limit = limit
        self.window_seconds = window_seconds
        self.taken: deque[float] = deque()
        self.reset()

    def reset(self) -> None:
        self.in_flight = self.peak_in_flight = self.refused = 0
        self.arrivals: list[float] = []
        self.last_answer = 0.0

    async def complete(self, request: web.Request) -> web.Response:
        if self.is_full():
            self.refused += 1
            return web.json_response({"error": {"code": "rate_limit_exceeded", "message": "slow down"}}, status=429)
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

    def is_full(self) -> bool:
        """Whether the window that ends now holds as many as it may; if not, one more is counted."""
        if self.limit is None:
            return False
        now = time.monotonic()
        while self.taken and self.taken[0] <= now - self.window_seconds:
            self.taken.popleft()
        if len(self.taken) >= self.limit:
            return True
        self.taken.append(now)
        return False

    async def stats(self, request: web.Request) -> web.Response:
        """`serving_seconds`: from the first of the `last` requests to arrive to the last answer; null for none."""
        counted = self.arrivals[-int(request.query.get("last", 0)) :]
        return web.json_response(
            {
                "served": len(self.arrivals),
                "refused": self.refused,
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


async def serve(endpoint: Endpoint) -> None:
    """Listens on a free loopback port until the process is stopped."""
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
    parser.add_argument("--limit", type=int, help="answers in a window")
    parser.add_argument("--window", type=float, default=60.0, help="seconds of a window")
    options = parser.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(Endpoint(options.latency, options.limit, options.window)))
