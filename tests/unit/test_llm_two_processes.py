"""Two processes that ask the same at once: each reply is bought once, and both go on with the one that is stored."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.engine import Engine
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.request import Message, ProviderCall, RawReply, Request, Usage
from tests.fakes.http import HttpFake, completion

REQUESTS = 200

ASKS = """
import asyncio, json, sys
from pathlib import Path
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.engine import Engine
from tasks.foundation.llm.request import Message, Request
from tasks.foundation.llm.models import ModelSpec

async def main(path, url, build, requests):
    with ReplyCache(path) as cache:
        spec = ModelSpec("m", "openai", "m", "f", base_url=url, max_in_flight=16)
        engine = Engine({"m": spec}, cache, run_id=f"{build}/voting/f/r0")
        asked = [Request("voting", f"row {n}", "j", "m", (Message("user", f"question {n}"),)) for n in range(requests)]
        print("ready", flush=True)
        sys.stdin.readline()
        outcomes = await asyncio.gather(*map(engine.ask, asked))
        await engine.close()
    paid = sum(not outcome.record.from_cache for outcome in outcomes)
    print(json.dumps({"texts": [outcome.trace.reply for outcome in outcomes], "paid": paid}))

asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])))
"""


@pytest.fixture
async def counting() -> AsyncIterator[tuple[str, Counter[str]]]:
    """A server whose every answer is another, and how often it was asked each question."""
    asked: Counter[str] = Counter()
    numbers = itertools.count()

    async def handle(request: web.Request) -> web.Response:
        question = server.bodies[-1]["messages"][-1]["content"]
        asked[question] += 1
        await asyncio.sleep(0.02)
        return web.json_response(completion(f"answer {next(numbers)}", prompt_tokens=3, completion_tokens=2))

    server = HttpFake(handle)
    async with server.running():
        yield f"{server.url}/v1", asked


async def test_two_processes_that_ask_the_same_buy_each_reply_once_and_agree_on_it(
    counting: tuple[str, Counter[str]], tmp_path: Path
) -> None:
    url, asked = counting

    async def start(build: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", ASKS, str(tmp_path / "replies.sqlite"), url, build, str(REQUESTS)),
            cwd=Path(__file__).parents[2],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )

    both = [await start("first"), await start("second")]
    for process in both:
        assert process.stdout is not None and await process.stdout.readline() == b"ready\n"
    first, second = (json.loads(out) for out, _ in await asyncio.gather(*(each.communicate(b"go\n") for each in both)))
    assert first["texts"] == second["texts"]
    assert len(asked) == REQUESTS and asked.total() == REQUESTS
    assert first["paid"] + second["paid"] == REQUESTS


async def test_who_could_not_wait_goes_on_with_the_reply_that_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.foundation.llm.claims.LONGEST_SECONDS", 0.0)
    both_are_asked = asyncio.Barrier(2)

    class Saying:
        def __init__(self, words: str) -> None:
            self.words = words

        async def call(self, call: ProviderCall) -> RawReply:
            await both_are_asked.wait()
            return RawReply(self.words, Usage(3, None, len(self.words)), "stop")

        async def close(self) -> None: ...

    request = Request("voting", "row", "judge", "m", (Message("user", "q"),))
    with ReplyCache(tmp_path / "c.sqlite") as one, ReplyCache(tmp_path / "c.sqlite") as two:
        engines = [
            Engine({"m": ModelSpec("m", "openai", "m", "f")}, cache, run_id="b/s", providers={"m": Saying(words)})
            for cache, words in ((one, "short"), (two, "rather longer"))
        ]
        outcomes = await asyncio.gather(*(engine.ask(request) for engine in engines))
        again = await engines[1].ask(request)
    said = [outcome.value for outcome in outcomes if outcome.error is None]
    assert len(said) == 2 and said[0] == said[1]
    assert again.error is None and again.value == said[0]
    assert sorted(outcome.record.completion_tokens or 0 for outcome in outcomes) == [5, 13], "each paid for its own"
