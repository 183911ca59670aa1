"""Replies from a list or a callable: tests, and pipelines that run without any model.

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
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

from tasks.foundation.errors import ConfigError
from tasks.foundation.ids import seed_of
from tasks.foundation.llm.request import ProviderCall, RawReply, Usage
from tasks.foundation.llm.schema_filler import SchemaFiller

Scripted = str | RawReply | Exception
Answerer = Callable[[ProviderCall], Scripted | Awaitable[Scripted]]

LATENCY_ENV = "COLLOQUY_SCRIPTED_LATENCY"
"""Seconds that every scripted call takes; for trying out kills and progress reports."""


class ScriptedProvider:
    """Answers from `replies` in order, from a callable, or (None) from the callable each model names.

    A list that runs out raises AssertionError: an unexpected call is a fault of the test or the code.
    """

    def __init__(self, replies: Sequence[Scripted] | Answerer | None = None) -> None:
        self.calls: list[ProviderCall] = []
        self._answerer = replies if callable(replies) else None
        self._waiting = None if replies is None or callable(replies) else list(replies)
        self._keep_calls = replies is not None

    async def call(self, call: ProviderCall) -> RawReply:
        """The next reply; text becomes a RawReply that stopped by itself, exceptions are raised."""
        if self._keep_calls:
            self.calls.append(call)
        started = time.monotonic()
        if latency := float(os.environ.get(LATENCY_ENV, "0") or 0):
            await asyncio.sleep(latency)
        reply = await self._reply(call)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, RawReply):
            return reply
        return as_reply(reply, call, time.monotonic() - started)

    async def close(self) -> None:
        """Nothing to close."""

    async def _reply(self, call: ProviderCall) -> Scripted:
        if self._waiting is not None:
            if not self._waiting:
                raise AssertionError(f"The scripted replies ran out at call {len(self.calls)} ({call.model.alias}).")
            return self._waiting.pop(0)
        answerer = self._answerer or resolve(call.model.name)
        reply = answerer(call)
        return await reply if inspect.isawaitable(reply) else reply


def as_reply(text: str, call: ProviderCall, latency_seconds: float = 0.0) -> RawReply:
    """`text` as a complete reply; tokens are counted as four characters each."""
    prompt = sum(len(message.content) for message in call.messages)
    usage = Usage(_tokens(prompt), 0, _tokens(len(text)), 0)
    return RawReply(text, usage, "stop", call.model.name, call.seed, latency_seconds)


def resolve(name: str) -> Answerer:
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
    return cast(Answerer, found)


def from_schema(call: ProviderCall) -> str:
    """JSON that fits the call's schema, or two sentences of text: the same for the same call anywhere."""
    messages = [[message.role, message.content] for message in call.messages]
    voice = call.model.extra_body.get("voice")
    source = random.Random(seed_of("from_schema", voice, messages, call.seed, call.sample))
    filler = SchemaFiller(source)
    if call.schema is None:
        return f"{filler.sentence(8)} {filler.sentence(6)}"
    return json.dumps(filler.fill(call.schema), ensure_ascii=False)


def _tokens(characters: int) -> int:
    return (characters + 3) // 4
