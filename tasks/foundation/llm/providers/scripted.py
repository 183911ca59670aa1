"""Replies from a callable: for tests, and for pipelines that run without any model.

In configs/models.yaml the model's name is an import path, `package.module:function`, so that another
process finds the same callable. `from_schema` below answers any schema with plausible values that
depend only on the messages, the seed, the sample and the model's `extra_body.voice`.

>>> from_schema  # doctest: +ELLIPSIS
<function from_schema at ...>
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import random
import time
from collections.abc import Awaitable, Callable
from typing import cast

from tasks.foundation.errors import ConfigError
from tasks.foundation.ids import seed_of
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.request import ProviderCall, RawReply, Usage
from tasks.foundation.llm.schema_filler import SchemaFiller

Scripted = str | RawReply | Exception
Script = Callable[[ProviderCall], Scripted | Awaitable[Scripted]]

SAID = ("text", "content", "user_text")
"""Fields of replies that hold what somebody says."""
_SAID_IN_CHINESE = "今天 明天 我们 妹妹 烤箱 桥边 花园 书信 市场 觉得 喜欢 记得 等着 修好 慢慢 真的 也许 但是".split()  # noqa: SIM905

LATENCY_ENV = "COLLOQUY_SCRIPTED_LATENCY"
"""Seconds that every scripted call takes; for trying out kills and progress reports."""


class ScriptedProvider:
    """Answers each call by the callable that its model names."""

    def __init__(self, spec: ModelSpec) -> None:
        """One client serves all scripted models."""

    async def call(self, call: ProviderCall) -> RawReply:
        """What the callable says; text becomes a reply that stopped by itself, exceptions are raised."""
        return await answer(find_callable(call.model.name), call)

    async def close(self) -> None:
        """Nothing to close."""


async def answer(script: Script, call: ProviderCall) -> RawReply:
    """The reply of a script to a call, with the latency it took."""
    started = time.monotonic()
    if latency := float(os.environ.get(LATENCY_ENV, "0") or 0):
        await asyncio.sleep(latency)
    reply = script(call)
    if inspect.isawaitable(reply):
        reply = await reply
    if isinstance(reply, Exception):
        raise reply
    return reply if isinstance(reply, RawReply) else make_reply(reply, call, time.monotonic() - started)


def make_reply(text: str, call: ProviderCall, latency_seconds: float = 0.0) -> RawReply:
    """`text` as a complete reply; tokens are counted as four characters each."""
    prompt = sum(len(message.content) for message in call.messages)
    usage = Usage(_count_tokens(prompt), 0, _count_tokens(len(text)), 0)
    return RawReply(text, usage, "stop", call.model.name, call.seed, latency_seconds)


def find_callable(name: str) -> Script:
    """The callable that `package.module:function` names; ConfigError when there is none."""
    module_name, _, function_name = name.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), function_name or "-")
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"Expected the name of a scripted model to be package.module:function, found {name!r}: {error}"
        ) from None
    if not callable(found):
        raise ConfigError(f"Expected {name!r} to be a function of one ProviderCall, found {type(found).__name__}.")
    return cast(Script, found)


def missing_callable(spec: ModelSpec) -> str | None:
    """Why the model's name is no callable, or None."""
    try:
        find_callable(spec.name)
    except ConfigError as error:
        return str(error)
    return None


class Plausible(SchemaFiller):
    """What is asked for as right is so more often than not; else three checks would seldom hold together, and half of
    what can be used would not be. Where its prompt is Chinese, so is what it says; its labels are not."""

    def __init__(self, source: random.Random, prompt: str) -> None:
        super().__init__(source)
        self.in_chinese = sum("\u4e00" <= sign <= "\u9fff" for sign in prompt) > len(prompt) / 10

    def write(self, shortest: int, longest: int, name: str) -> str:
        if not self.in_chinese or name not in SAID:
            return super().write(shortest, longest, name)
        said = "".join(self.source.choice(_SAID_IN_CHINESE) for _ in range(max(6, shortest // 2 + 1)))
        return f"{said}。"

    def chance_of(self, name: str) -> float:
        if name == "usable":
            return 1.0
        return 0.95 if name.endswith("_ok") else super().chance_of(name)


def from_schema(call: ProviderCall) -> str:
    """JSON that fits the call's schema, or two sentences of text: the same for the same call anywhere."""
    messages = [[message.role, message.content] for message in call.messages]
    voice = call.model.extra_body.get("voice")
    source = random.Random(seed_of("from_schema", voice, messages, call.seed, call.sample))
    filler = Plausible(source, call.messages[0].content)
    if call.schema is None:
        return f"{filler.sentence(8)} {filler.sentence(6)}"
    return json.dumps(filler.fill(call.schema), ensure_ascii=False)


def _count_tokens(characters: int) -> int:
    return (characters + 3) // 4
