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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from tasks.foundation.errors import ConfigError
from tasks.foundation.ids import seed_of
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.request import ProviderCall, RawReply, Usage

Scripted = str | RawReply | Exception
Script = Callable[[ProviderCall], Scripted | Awaitable[Scripted]]

LATENCY_ENV = "COLLOQUY_SCRIPTED_LATENCY"
"""Seconds that every scripted call takes; for trying out kills and progress reports."""

DEEPEST = 6
"""Below this nesting lists are as short and options as empty as their schema allows, so that it ends."""

_WORDS = (  # noqa: SIM905 - easier to read as a text
    "quiet river morning letter harvest lantern bridge garden winter promise window market coffee violin"
    " station mountain kitchen orchard notebook journey doctor teacher sister neighbour engine island"
    " carries finds mends leaves remembers asks answers waits hopes chooses walks paints"
    " gentle stubborn early honest careful bright distant patient uneasy grateful"
).split()

_STRING_FORMATS = {
    "date": "2026-01-02",
    "date-time": "2026-01-02T03:04:05Z",
    "time": "03:04:05Z",
    "email": "someone@example.org",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


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


def from_schema(call: ProviderCall) -> str:
    """JSON that fits the call's schema, or two sentences of text: the same for the same call anywhere."""
    messages = [[message.role, message.content] for message in call.messages]
    voice = call.model.extra_body.get("voice")
    source = random.Random(seed_of("from_schema", voice, messages, call.seed, call.sample))
    if call.schema is None:
        return f"{_make_sentence(source, 8)} {_make_sentence(source, 6)}"
    return json.dumps(_Filler(source, call.schema.get("$defs", {})).value(call.schema, 0), ensure_ascii=False)


class _Filler:
    """Makes up values that fit schemas; raises ConfigError on what it does not know. `depth` is that of the nesting."""

    def __init__(self, source: random.Random, definitions: Mapping[str, Any]) -> None:
        self._source = source
        self._definitions = definitions

    def value(self, schema: Mapping[str, Any], depth: int) -> Any:
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[-1]
            return self.value({**self._definitions[name], **_without(schema, "$ref")}, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._source.choice(schema["enum"])
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return self.value(self._choose(schema[several], depth), depth)
        if "allOf" in schema:
            merged = {key: value for part in schema["allOf"] for key, value in part.items()}
            return self.value({**merged, **_without(schema, "allOf")}, depth)
        return self._of_type(schema, depth)

    def _of_type(self, schema: Mapping[str, Any], depth: int) -> Any:
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = next((name for name in kind if name != "null"), "null")
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "string":
                return self._string(schema)
            case "integer":
                return self._source.randint(*_find_bounds(schema, 1, 5))
            case "number":
                low, high = _find_bounds(schema, 0, 1)
                return min(max(round(self._source.uniform(low, high), 2), low), high)
            case "boolean":
                return self._source.random() < 0.5
            case "null":
                return None
        raise ConfigError(f"The scripted model cannot fill a schema of type {kind!r}: {dict(schema)!r}.")

    def _choose(self, options: Sequence[Mapping[str, Any]], depth: int) -> Mapping[str, Any]:
        """An alternative: seldom null, and null where the nesting would not end."""
        nulls = [option for option in options if option.get("type") == "null"]
        others = [option for option in options if option.get("type") != "null"]
        if nulls and (not others or depth > DEEPEST or self._source.random() < 0.1):
            return nulls[0]
        return self._source.choice(others)

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        known = {name: self.value(part, depth + 1) for name, part in schema.get("properties", {}).items()}
        rest = schema.get("additionalProperties")
        if isinstance(rest, Mapping):
            for index in range(max(schema.get("minProperties", 0), 1)):
                known[f"{self._source.choice(_WORDS)}{index}"] = self.value(rest, depth + 1)
        return known

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        fixed = [self.value(part, depth + 1) for part in schema.get("prefixItems", [])]
        low = schema.get("minItems", 0 if depth > DEEPEST else 1)
        high = low if depth > DEEPEST else schema.get("maxItems", max(low, 3))
        wanted = self._source.randint(low, max(low, high)) if "items" in schema else 0
        while len(fixed) < wanted:
            item = self.value(schema.get("items", {}), depth + 1)
            if not schema.get("uniqueItems") or item not in fixed:
                fixed.append(item)
            elif len(fixed) >= low and self._source.random() < 0.2:
                break
        return fixed

    def _string(self, schema: Mapping[str, Any]) -> str:
        if "pattern" in schema:
            raise ConfigError(
                f"The scripted model cannot fill a string with the pattern {schema['pattern']!r};"
                " name a callable of your own in configs/models.yaml."
            )
        if schema.get("format") in _STRING_FORMATS:
            return _STRING_FORMATS[schema["format"]]
        low, high = schema.get("minLength", 1), schema.get("maxLength", 10_000)
        text = _make_sentence(self._source, self._source.randint(4, 9))
        while len(text) < low:
            text = f"{text} {_make_sentence(self._source, 6)}"
        cut = text[: max(low, high)]
        bare = cut.strip()
        return cut if len(bare) >= low and bare == cut else (bare + "." * high)[: max(low, len(cut))]


def _without(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != name}


def _make_sentence(source: random.Random, words: int) -> str:
    return " ".join(source.choice(_WORDS) for _ in range(words)).capitalize() + "."


def _find_bounds(schema: Mapping[str, Any], low: int, span: int) -> tuple[int, int]:
    """Whole lower and upper bounds within the schema's own, open ends filled in."""
    step = 1 if schema.get("type") == "integer" else 0
    lowest = schema.get("minimum", schema["exclusiveMinimum"] + step if "exclusiveMinimum" in schema else None)
    highest = schema.get("maximum", schema["exclusiveMaximum"] - step if "exclusiveMaximum" in schema else None)
    if lowest is None and highest is None:
        return low, low + span
    if lowest is None:
        return highest - span, highest
    return lowest, lowest + span if highest is None else highest


def _count_tokens(characters: int) -> int:
    return (characters + 3) // 4
