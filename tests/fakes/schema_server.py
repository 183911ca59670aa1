"""A chat-completions endpoint that answers any schema, cheaply enough for a thousand calls a second on one core.

A schema is filled as the scripted models fill it, a few times, and each of these fillings is kept as a template: with
places for its texts, which every request gets others in. The same body gets the same answer. `python -m
tests.fakes.schema_server [--latency 0.05]` says its base URL on the first line of stdout; `GET /stats` how many it
answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, Literal

from aiohttp import web

from tasks.foundation import ROOT
from tasks.foundation.llm.request import ProviderCall
from tasks.foundation.llm.schema_filler import SchemaFiller

Language = Literal["en", "zh"]

TEMPLATES = 16
"""Fillings of a schema; their lists and decisions differ."""
TEXTS = 4096
"""Different texts of a length."""
LENGTHS = (12, 40, 120)
"""Characters of texts at most; a place takes the longest ones that its limit allows."""
ANSWER_CHARACTERS = 290
"""Of a reply without a schema: the usual 72 tokens."""
YES = 0.9
_HAN = re.compile("[\u4e00-\u9fff]")
_CHINESE = (
    "我你他们这有在是不了很会想去来看说做家里今天明年朋友时候工作孩子老师城市河边晚上早起喜欢觉得可以因为所以但如果"
)
_PLACE = re.compile("⟦(\\d+)⟧")


class TemplateFiller(SchemaFiller):
    """Writes numbered places instead of texts; says yes where models mostly do, and never that a talk is over."""

    def __init__(self, source: random.Random) -> None:
        super().__init__(source)
        self.limits: list[int] = []

    def write(self, shortest: int, longest: int, name: str) -> str:
        if longest < LENGTHS[0]:
            return super().write(shortest, longest, name)
        self.limits.append(longest)
        return f"⟦{len(self.limits) - 1}⟧"

    def chance_of(self, name: str) -> float:
        return YES

    def items_of(self, name: str, fewest: int, most: int) -> int:
        return fewest if name == "changes" else super().items_of(name, fewest, min(most, fewest + 2))

    def _value(self, schema: Mapping[str, Any], name: str, depth: int) -> Any:
        if name == "progress" and (going_on := {"in_progress", "进行中"} & set(schema.get("enum", ()))):
            return going_on.pop()
        return super()._value(schema, name, depth)


class Template:
    """A filling of a schema as JSON, cut at the places of its texts."""

    def __init__(self, schema: Mapping[str, Any], seed: int) -> None:
        filler = TemplateFiller(random.Random(seed))
        parts = _PLACE.split(json.dumps(filler.fill(schema), ensure_ascii=False))
        self._between = parts[::2]
        self._lengths = [max(n for n in LENGTHS if n <= filler.limits[int(place)]) for place in parts[1::2]]

    def fill(self, draw: random.Random, language: Language) -> str:
        written = [self._between[0]]
        for length, following in zip(self._lengths, self._between[1:], strict=True):
            written += (draw.choice(texts(language, length)), following)
        return "".join(written)


@lru_cache
def texts(language: Language, length: int) -> list[str]:
    """Texts of at most and about so many characters, none of which JSON would escape."""
    draw = random.Random(f"{language} {length}")
    if language == "zh":
        return ["".join(draw.choices(_CHINESE, k=length // 3)) + "。" for _ in range(TEXTS)]
    filler = SchemaFiller(draw)
    return [filler.sentence(length // 9 + 1)[: length - 1].rstrip(". ") + "." for _ in range(TEXTS)]


class Templates:
    """The fillings of every schema that was asked for."""

    def __init__(self) -> None:
        self._made: dict[str, list[Template]] = {}

    def answer(self, prompt: str, seed: int, schema: Mapping[str, Any] | None) -> str:
        """What the model says to a prompt that begins so: the same for the same seed."""
        draw = random.Random(seed)
        language: Language = "zh" if _HAN.search(prompt) else "en"
        if schema is None:
            return " ".join(draw.choices(texts(language, LENGTHS[-1]), k=ANSWER_CHARACTERS // LENGTHS[-1] + 1))
        return draw.choice(self._of(schema)).fill(draw, language)

    def _of(self, schema: Mapping[str, Any]) -> list[Template]:
        key = repr(schema)
        if key not in self._made:
            self._made[key] = [Template(schema, seed) for seed in range(TEMPLATES)]
        return self._made[key]


_TEMPLATES = Templates()


def answer_at_once(call: ProviderCall) -> str:
    """A script for scripted models: the endpoint's answers without an endpoint."""
    said = "".join(message.content for message in call.messages)
    seed = zlib.crc32(f"{call.model.alias} {call.seed} {call.sample} {said}".encode("utf-8", "replace"))
    return _TEMPLATES.answer(call.messages[0].content, seed, call.schema)


class Endpoint:
    """Answers, and counts."""

    def __init__(self, latency_seconds: float) -> None:
        self.latency_seconds = latency_seconds
        self.answered = 0
        self._templates = Templates()

    async def complete(self, request: web.Request) -> web.Response:
        sent = await request.read()
        text = self.answer(sent)
        await asyncio.sleep(self.latency_seconds)
        self.answered += 1
        usage = {"prompt_tokens": len(sent) // 4, "completion_tokens": len(text) // 4 + 1}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        return web.json_response({"model": "stub", "choices": [choice], "usage": usage})

    def answer(self, sent: bytes) -> str:
        """The reply to a body."""
        body = json.loads(sent)
        wanted = body.get("response_format")
        schema = None if wanted is None else wanted["json_schema"]["schema"]
        return self._templates.answer(body["messages"][0]["content"], zlib.crc32(sent), schema)

    async def stats(self, request: web.Request) -> web.Response:
        return web.json_response({"answered": self.answered})


async def serve(endpoint: Endpoint) -> None:
    """Listens on a free loopback port until the process is stopped."""
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", endpoint.complete)
    app.router.add_get("/stats", endpoint.stats)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.Event().wait()


@contextmanager
def endpoint(latency_seconds: float = 0.05) -> Iterator[tuple[str, int]]:
    """The base URL of an endpoint in a process of its own, and the process's id."""
    command = [sys.executable, "-m", "tests.fakes.schema_server", "--latency", str(latency_seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.terminate()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds an answer takes")
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(Endpoint(parser.parse_args().latency)))
