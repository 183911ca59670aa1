"""What the engine is asked and what it gives back.

A `Request` is one *logical* question of one row. It may take several provider calls (retries after
a provider failure, re-asks after an unreadable reply); each completed call is kept in the reply
cache under its own key, so a killed run pays for nothing twice and a replay re-reads every reply.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from tasks.foundation.errors import ModelError
from tasks.foundation.ids import canonical_json
from tasks.foundation.llm.limits.rates import Quota
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.tables.operations import LlmCall, Reply

KEY_VERSION = 2
"""Raised when the meaning of a cached reply changes; old entries then stop matching."""

MOST_TOKENS = 2**53
"""What a number of JSON can count to; beyond it a server counts wrong."""


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One logical question. `stage`, `row_key` and `purpose` label the ledger row and are no part of the cache key."""

    stage: str
    row_key: str
    purpose: str
    alias: str
    messages: tuple[Message, ...]
    reply: type[BaseModel] | None = None
    """What the JSON of the reply is checked against; None asks for plain text."""
    sample: int = 0
    """Repeats of the same question use different samples, so that each is a call of its own."""
    temperature: float = 0.0
    max_tokens: int = 1024
    """Of the completion, at most."""
    seed: int | None = None
    prompt_fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """One physical call, as a provider module gets it: everything that can change the reply."""

    model: ModelSpec
    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None
    schema_name: str
    temperature: float
    max_tokens: int
    seed: int | None
    sample: int

    _canonical: str | None = field(default=None, init=False, repr=False, compare=False)

    def canonical(self) -> str:
        """Canonical JSON of everything that can change the reply: provider, model, base URL, messages, parameters,
        schema, seed and sample. It is what the key hashes and what the cache keeps for people to read."""
        if self._canonical is None:
            messages = [{"content": part.content, "role": part.role} for part in self.messages]
            rest = {"messages": messages, "seed": self.seed, "sample": self.sample}
            text = f'{{"call":{canonical_json(rest)},"to":{_constant_part(self)}}}'
            object.__setattr__(self, "_canonical", text)
        assert self._canonical is not None
        return self._canonical

    def key(self) -> str:
        """The cache key: that of the canonical JSON."""
        return key_of(self.canonical())


def key_of(canonical: str) -> str:
    """sha256 over the key version and the canonical JSON of a call, in hexadecimal."""
    return hashlib.sha256(f"{KEY_VERSION} {canonical}".encode("utf-8", "surrogatepass")).hexdigest()


_CONSTANT_PARTS: dict[tuple[int, int, float, int], tuple[ModelSpec, Mapping[str, Any] | None, str]] = {}
"""Of calls that differ only in their messages: made once. The objects are kept, so that no id is used again."""
MOST_CONSTANT_PARTS = 4096


def _constant_part(call: ProviderCall) -> str:
    place = (id(call.model), id(call.schema), call.temperature, call.max_tokens)
    found = _CONSTANT_PARTS.get(place)
    if found is not None:
        return found[2]
    text = canonical_json(
        {
            "model": call.model.identity(),
            "schema": call.schema,
            "temperature": call.temperature,
            "max_tokens": call.max_tokens,
        }
    )
    if len(_CONSTANT_PARTS) >= MOST_CONSTANT_PARTS:
        _CONSTANT_PARTS.clear()
    _CONSTANT_PARTS[place] = (call.model, call.schema, text)
    return text


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; None: not reported."""

    prompt_tokens: int | None = None
    """With those that were read from the provider's cache and those that were written to it."""
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    """With the reasoning tokens."""
    reasoning_tokens: int | None = None
    cache_write_tokens: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether both the prompt's and the completion's tokens were reported."""
        return self.prompt_tokens is not None and self.completion_tokens is not None

    def __add__(self, other: Usage) -> Usage:
        """What was reported of both."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Usage(*(b if a is None else a if b is None else a + b for a, b in pairs))


@dataclass(frozen=True, slots=True)
class RawReply:
    """What a provider answered, as it came: also when the text is empty or cut off."""

    text: str
    usage: Usage
    finish_reason: str
    """`stop`, `length`, `content_filter` or `refusal`."""
    model_reported: str | None = None
    seed_sent: int | None = None
    latency_seconds: float = 0.0
    quota: Quota | None = field(default=None, compare=False)
    """What the response's headers said of the account's limits; not kept in the cache."""


class Provider(Protocol):
    """One vendor. `call` returns what came back or raises ModelError / ModelUnavailable; never retries.

    A refusal, content filter or length cut that the vendor *reports* is returned with its
    `finish_reason`, so that its usage is booked.
    """

    async def call(self, call: ProviderCall) -> RawReply: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request, with its rows for the ledger and the replies.

    `value` is an instance of the request's reply model, or text; None where there is an `error`. Usage, cost and
    latency of `record` are those of the calls that this run made for the request, in whichever process; where it made
    none (`from_cache`), those of the earlier payment. So the sum of `cost_usd` over `not from_cache` is what the run
    spent.
    """

    value: Any
    error: ModelError | None
    record: LlmCall
    trace: Reply
