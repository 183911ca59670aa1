"""What the engine is asked and what it gives back.

A `Request` is one *logical* question of one row. It may take several provider calls (retries after
a provider failure, re-asks after an unreadable reply); each completed call is kept in the reply
cache under its own key, so a killed run pays for nothing twice and a replay re-reads every reply.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from tasks.foundation.errors import FailureKind, ModelError
from tasks.foundation.ids import canonical_json
from tasks.foundation.llm.quota import Quota

KEY_VERSION = 2
"""Raised when the meaning of a cached reply changes; old entries then stop matching."""


LOCAL_PROVIDERS = frozenset({"embedded", "scripted"})
"""Models in this process: they prove the pipeline and nothing else."""


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One alias of configs/models.yaml, resolved. `structured` says how replies are held to a schema.

    `name` is the vendor's model name; for `embedded` a name of the weights catalogue or a path to a
    GGUF file; for `scripted` the import path `module:function` of the callable that answers.
    """

    alias: str
    provider: Literal["openai", "google", "embedded", "scripted"]
    name: str
    family: str
    access: Literal["open", "closed"] = "closed"
    base_url: str | None = None
    api_key_env: str | None = None
    structured: Literal["json_schema", "json_object", "prompt"] = "json_schema"
    thinking: bool = False
    thinking_pair: str | None = None
    max_in_flight: int = 8
    requests_per_minute: int | None = None
    """The account's limit; None: unknown, learned from headers and refusals."""
    tokens_per_minute: int | None = None
    """Prompt and completion tokens together; None: unknown."""
    batch: bool = False
    """Whether the endpoint has a batch API that the provider speaks (`mode: batch` on a stage)."""
    context_tokens: int | None = None
    timeout_seconds: float = 120.0
    supports_seed: bool = True
    sends_temperature: bool = True
    """False for models that refuse the parameter (OpenAI's reasoning models)."""
    strict_schema: bool = False
    """OpenAI's `strict` flag on the JSON schema; off unless the endpoint is known to honour it."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    api_version: str | None = None
    """Google only; None: the version pinned in the provider."""
    slots: int = 4
    """Embedded only: replies generated side by side; each has `context_tokens` for itself."""
    threads: int = 1
    """Embedded only: CPU threads; more than one spins and slows everything else on the machine."""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    prices: Mapping[str, float] | None = None
    batch_share: float | None = None
    """What a batched call costs, as a share of a live one; None: what the vendor publishes, else unknown."""
    retired: date | None = None
    """From this day on the provider answers no call; None: no such day is known."""
    successor: str | None = None
    """The alias of the model to ask instead of a retired one."""

    def identity(self) -> dict[str, Any]:
        """What makes two aliases the same model to a fingerprint or the cache (no limits, no keys)."""
        return {
            "provider": self.provider,
            "name": self.name,
            "base_url": self.base_url,
            "structured": self.structured,
            "strict_schema": self.strict_schema,
            "sends_temperature": self.sends_temperature,
            "thinking": self.thinking,
            "extra_body": dict(self.extra_body),
        }


@dataclass(frozen=True, slots=True)
class Request:
    """One logical question. `reply` None asks for plain text; else the JSON is checked against it.

    `row_key` and `purpose` label the ledger row and are no part of the cache key; `sample` is
    (repeats of a legal duplicate use different samples). `max_tokens` bounds the completion.
    """

    stage: str
    row_key: str
    purpose: str
    alias: str
    messages: tuple[Message, ...]
    reply: type[BaseModel] | None = None
    sample: int = 0
    temperature: float = 0.0
    max_tokens: int = 1024
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


MOST_TOKENS = 2**53
"""What a number of JSON can count to; beyond it a server counts wrong."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. `prompt_tokens` includes those read from the provider's cache and those written to it,
    `completion_tokens` includes `reasoning_tokens`; None: not reported."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_write_tokens: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether both the prompt's and the completion's tokens were reported."""
        return self.prompt_tokens is not None and self.completion_tokens is not None

    def __add__(self, other: Usage) -> Usage:
        def plus(a: int | None, b: int | None) -> int | None:
            return b if a is None else a if b is None else a + b

        return Usage(
            plus(self.prompt_tokens, other.prompt_tokens),
            plus(self.cached_tokens, other.cached_tokens),
            plus(self.completion_tokens, other.completion_tokens),
            plus(self.reasoning_tokens, other.reasoning_tokens),
            plus(self.cache_write_tokens, other.cache_write_tokens),
        )


@dataclass(frozen=True, slots=True)
class RawReply:
    """What a provider answered, as it came: also when the text is empty or cut off."""

    text: str
    usage: Usage
    finish_reason: str
    model_reported: str | None = None
    seed_sent: int | None = None
    latency_seconds: float = 0.0
    quota: Quota | None = field(default=None, compare=False)
    """What the response's headers said of the account's limits; not kept in the cache."""


class Provider(Protocol):
    """One vendor. `call` returns what came back or raises ModelError / ModelUnavailable; never retries.

    A refusal, content filter or length cut that the vendor *reports* is returned with its
    `finish_reason` (`stop` | `length` | `content_filter` | `refusal`), so that its usage is booked.
    """

    async def call(self, call: ProviderCall) -> RawReply: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One row of `llm_calls` (see the table): one logical request with its usage over all attempts.

    `from_cache` False: this run made at least one of the calls for this request, in whichever
    process; usage, cost and latency are then those of the calls it made. `from_cache` True: every
    reply was paid for before or by another request, and the numbers are those of that payment. So
    the sum of `cost_usd` over `not from_cache` is what the run spent. `attempts` counts calls that
    reached the provider, failed ones included. `cost_usd` None: the price is unknown. `error_kind`
    None: the request was answered. `created_at` (UTC): when the last reply was received, else when
    the request failed.
    """

    request_id: str
    stage: str
    row_key: str
    purpose: str
    alias: str
    model: str
    family: str
    provider: str
    base_url: str | None
    prompt_fingerprint: str
    temperature: float
    seed_sent: int | None
    model_reported: str | None
    usage: Usage
    cost_usd: float | None
    latency_seconds: float
    attempts: int
    from_cache: bool
    finish_reason: str | None
    error_kind: FailureKind | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Trace:
    """One row of `replies`: the prompt as sent (JSON list of messages) and the last reply's text."""

    request_id: str
    prompt: str
    reply: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """A readable reply. `value` is an instance of the request's reply model, or the text."""

    value: Any
    text: str
    record: CallRecord


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request: exactly one of `answer` and `error` is set; the ledger row always is."""

    answer: Answer | None
    error: ModelError | None
    record: CallRecord
    trace: Trace
