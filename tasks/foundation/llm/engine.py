"""One request in, one checked answer out, nothing paid for twice.

`Engine.ask` walks a chain of physical calls: the first, then re-asks after replies that were cut off,
unreadable or invalid. Each call is looked up in the reply cache first, and its reply is on disk
before anyone sees it. Retries after a provider's failure happen within one call and only here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_exponential_jitter

from tasks.foundation.errors import ConfigError, FailureKind, ModelError, ModelUnavailable
from tasks.foundation.ids import canonical_json, content_id, seed_of
from tasks.foundation.llm.cache import Entry, ReplyCache
from tasks.foundation.llm.failures import brief, redact
from tasks.foundation.llm.limiter import Limiter
from tasks.foundation.llm.models import unknown_alias
from tasks.foundation.llm.pricing import Pricing, pricing_of
from tasks.foundation.llm.providers import provider_for
from tasks.foundation.llm.reply import BadReply, clean, encodable, read, schema_of
from tasks.foundation.llm.request import (
    Answer,
    CallRecord,
    Message,
    ModelSpec,
    Outcome,
    Provider,
    ProviderCall,
    RawReply,
    Request,
    Trace,
    Usage,
)

RETRIED_KINDS: tuple[FailureKind, ...] = ("rate_limited", "timeout", "connection", "server")
"""The failures that are worth another attempt at once; nothing outside this module retries."""

LONGEST_WAIT_SECONDS = 60.0
LONGEST_RETRY_AFTER_SECONDS = 600.0
"""A provider that asks for a longer pause has run out of quota: the row fails now and is redone later."""

QUOTED_CHARACTERS = 8000
"""As much of a bad reply as is shown to the model when it is asked again."""

SEED_BITS = 31

SCHEMA_INSTRUCTION = (
    "Answer with one JSON object and nothing else. It must be valid against this JSON schema:\n{schema}"
)
REASK_INSTRUCTION = "{sentence}\nAnswer again with the complete corrected JSON object and nothing else."
REASK_TEXT_INSTRUCTION = "{sentence}\nAnswer again."


@dataclass(frozen=True, slots=True)
class Link:
    """One physical reply of a chain. `paid` tells whether this logical request paid in this run."""

    reply: RawReply
    paid: bool
    attempts: int
    created_at: datetime


@dataclass(slots=True)
class Chain:
    """The physical calls of one logical request so far."""

    request_id: str
    call: ProviderCall
    key: str
    links: list[Link] = field(default_factory=list)
    failed_attempts: int = 0
    lengthened: bool = False


@dataclass(slots=True)
class Counters:
    """What this process did: calls sent (failed ones too), replies found in the cache, tokens bought."""

    calls_made: int = 0
    cached_replies: int = 0
    usage: Usage = field(default_factory=Usage)


@dataclass(slots=True)
class _Flight:
    """A physical call under way and how many requests wait for it."""

    task: asyncio.Task[Link]
    waiting: int = 0


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Engine:
    """Sends requests to the models. Belongs to one event loop; one engine serves a whole stage run.

    `run_id` names the stage run that pays: a run killed and resumed under its id books what it had
    already paid. `fresh_salt` makes every sample a new draw instead of a replay. `providers` (by alias
    or provider kind) replaces the real ones. `on_call` gets each ledger row, also of failures.
    """

    def __init__(
        self,
        models: Mapping[str, ModelSpec],
        cache: ReplyCache,
        *,
        run_id: str,
        max_reasks: int = 2,
        retry_attempts: int = 5,
        retry_base_seconds: float = 0.5,
        fresh_salt: int | None = None,
        providers: Mapping[str, Provider] | None = None,
        now: Callable[[], datetime] = _utc_now,
        on_call: Callable[[CallRecord], None] | None = None,
    ) -> None:
        self.counters = Counters()
        self._models = models
        self._cache = cache
        self._run_id = run_id
        self._max_reasks = max_reasks
        self._retry_attempts = retry_attempts
        self._backoff = wait_exponential_jitter(
            initial=retry_base_seconds, max=LONGEST_WAIT_SECONDS, jitter=retry_base_seconds
        )
        self._fresh_salt = fresh_salt
        self._given = dict(providers or {})
        self._providers: dict[tuple[str, str | None, str | None], Provider] = {}
        self._limiters: dict[tuple[str, str, str | None], Limiter] = {}
        self._pricings: dict[str, Pricing] = {}
        self._flights: dict[str, _Flight] = {}
        self._now = now
        self._on_call = on_call

    @property
    def calls_made(self) -> int:
        """Physical calls that this process sent, failed ones included."""
        return self.counters.calls_made

    @property
    def cached_replies(self) -> int:
        """Replies that this process read from the cache."""
        return self.counters.cached_replies

    async def ask(self, request: Request) -> Outcome:
        """The checked answer or the failure, with its ledger row and trace.

        Failures of this request are in the outcome. ModelUnavailable, ConfigError and StoreError,
        after which no request can succeed, are raised.
        """
        spec = self._spec(request.alias)
        call = first_call(spec, request, self._fresh_salt)
        key = call.key()
        chain = Chain(content_id("call", request.stage, request.row_key, request.purpose, key), call, key)
        try:
            value = await self._walk(chain, request)
        except ModelUnavailable as error:
            raise ModelUnavailable(f"Model {request.alias!r} cannot be used. {redact(str(error))}") from None
        except ModelError as error:
            outcome = self._failed(chain, request, error)
        else:
            outcome = self._answered(chain, request, value)
        if self._on_call is not None:
            self._on_call(outcome.record)
        return outcome

    async def close(self) -> None:
        """Closes the providers' clients. The cache belongs to the caller."""
        for provider in self._providers.values():
            await provider.close()
        self._providers.clear()

    async def _walk(self, chain: Chain, request: Request) -> Any:
        """Calls until a reply can be used; raises ModelError when there is none to be had."""
        reasks = 0
        while True:
            try:
                link = await self._obtain(chain, request)
            except ModelError as error:
                chain.failed_attempts = error.attempts
                raise
            chain.links.append(link)
            _raise_if_withheld(link.reply)
            try:
                return read(link.reply.text, request.reply, link.reply.finish_reason).value
            except BadReply as trouble:
                following = next_call(chain, link.reply, trouble) if reasks < self._max_reasks else None
                if following is None:
                    raise ModelError(trouble.kind, trouble.sentence) from None
                chain.call, chain.key = following, following.key()
                reasks += 1

    async def _obtain(self, chain: Chain, request: Request) -> Link:
        """The reply to the chain's current call: from the cache, from a call under way, or bought."""
        key = chain.key
        found = self._cache.get(key)
        if found is not None:
            self.counters.cached_replies += 1
            paid = found.run_id == self._run_id and found.request_id == chain.request_id
            return Link(found.reply, paid, 1, found.created_at)
        flight = self._flights.get(key)
        if flight is None:
            task = asyncio.create_task(self._buy(key, chain, chain.call, request))
            flight = self._flights[key] = _Flight(task)
            task.add_done_callback(lambda _: self._flights.pop(key, None))
            return await self._join(flight)
        link = await self._join(flight)
        return replace(link, paid=False)

    @staticmethod
    async def _join(flight: _Flight) -> Link:
        """Waits for a flight; when its last waiter is cancelled, the call is cancelled with it."""
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        except asyncio.CancelledError:
            if flight.waiting == 1:
                flight.task.cancel()
            raise
        finally:
            flight.waiting -= 1

    async def _buy(self, key: str, chain: Chain, call: ProviderCall, request: Request) -> Link:
        """Sends the call, retrying what may pass, and returns once the reply is on disk."""
        reply, attempts = await self._send(call)
        created_at = self._now()
        await self._cache.put(
            Entry(
                key=key,
                request=request_json(call),
                reply=reply,
                run_id=self._run_id,
                request_id=chain.request_id,
                stage=request.stage,
                alias=request.alias,
                created_at=created_at,
            )
        )
        return Link(reply, True, attempts, created_at)

    async def _send(self, call: ProviderCall) -> tuple[RawReply, int]:
        """The provider's reply and the number of attempts it took; ModelError carries that number too."""
        provider, limiter = self._provider(call.model), self._limiter(call.model)
        attempts = 0
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self._retry_attempts),
            wait=self._wait,
            retry=retry_if_exception(_worth_retrying),
            reraise=True,
        )
        try:
            async for attempt in retrying:
                with attempt:
                    attempts += 1
                    async with limiter.slot():
                        reply = await self._call_once(provider, limiter, call)
        except ModelError as error:
            error.attempts = attempts
            raise
        return reply, attempts

    async def _call_once(self, provider: Provider, limiter: Limiter, call: ProviderCall) -> RawReply:
        self.counters.calls_made += 1
        try:
            reply = await provider.call(call)
        except ModelError as error:
            if (seconds := _retry_after(error)) is not None and seconds <= LONGEST_RETRY_AFTER_SECONDS:
                limiter.pause(seconds)
            raise
        self.counters.usage = self.counters.usage + reply.usage
        return replace(reply, text=encodable(reply.text))

    def _wait(self, state: RetryCallState) -> float:
        """Seconds until the next attempt: the provider's wish if it is the longer, else the back-off."""
        error = state.outcome.exception() if state.outcome is not None else None
        return max(self._backoff(state), _retry_after(error) or 0.0)

    def _answered(self, chain: Chain, request: Request, value: Any) -> Outcome:
        record = self._record(chain, request, None)
        text = chain.links[-1].reply.text
        return Outcome(Answer(value, text, record), None, record, _trace(chain))

    def _failed(self, chain: Chain, request: Request, error: ModelError) -> Outcome:
        text = chain.links[-1].reply.text if chain.links else None
        safe = ModelError(error.kind, f"{request.alias}: {brief(error)}", attempts=_attempts(chain), text=text)
        return Outcome(None, safe, self._record(chain, request, error.kind), _trace(chain))

    def _record(self, chain: Chain, request: Request, error_kind: FailureKind | None) -> CallRecord:
        spec, links = chain.call.model, chain.links
        last = links[-1] if links else None
        from_cache = bool(links) and not chain.failed_attempts and not any(link.paid for link in links)
        booked = [link for link in links if link.paid or from_cache]
        usage = sum((link.reply.usage for link in booked), Usage())
        return CallRecord(
            request_id=chain.request_id,
            stage=request.stage,
            row_key=request.row_key,
            purpose=request.purpose,
            alias=request.alias,
            model=spec.name,
            family=spec.family,
            provider=spec.provider,
            base_url=spec.base_url,
            prompt_fingerprint=request.prompt_fingerprint,
            temperature=request.temperature,
            seed_sent=last.reply.seed_sent if last else chain.call.seed,
            model_reported=last.reply.model_reported if last else None,
            usage=usage,
            cost_usd=self._cost(spec, [link.reply.usage for link in booked]),
            latency_seconds=sum(link.reply.latency_seconds for link in booked),
            attempts=_attempts(chain),
            from_cache=from_cache,
            finish_reason=last.reply.finish_reason if last else None,
            error_kind=error_kind,
            created_at=last.created_at if last else self._now(),
        )

    def _cost(self, spec: ModelSpec, usages: list[Usage]) -> float | None:
        """Dollars over the given calls; None when the price of any is unknown or nothing was answered."""
        pricing = self._pricings.setdefault(spec.alias, pricing_of(spec))
        costs = [pricing(usage) for usage in usages]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known and len(known) == len(costs) else None

    def _spec(self, alias: str) -> ModelSpec:
        try:
            return self._models[alias]
        except KeyError:
            raise ConfigError(unknown_alias(alias, self._models)) from None

    def _provider(self, spec: ModelSpec) -> Provider:
        given = self._given.get(spec.alias) or self._given.get(spec.provider)
        if given is not None:
            return given
        key = (spec.provider, spec.base_url, spec.api_key_env)
        if key not in self._providers:
            self._providers[key] = provider_for(spec)
        return self._providers[key]

    def _limiter(self, spec: ModelSpec) -> Limiter:
        key = (spec.provider, spec.name, spec.base_url)
        if key not in self._limiters:
            self._limiters[key] = Limiter(spec.max_in_flight)
        return self._limiters[key]


def first_call(spec: ModelSpec, request: Request, fresh_salt: int | None) -> ProviderCall:
    """The physical call that a request starts with; the reply's schema goes to the API or the prompt."""
    schema = schema_of(request.reply) if request.reply is not None else None
    messages = tuple(Message(part.role, encodable(part.content)) for part in request.messages)
    if schema is not None and spec.structured != "json_schema":
        messages = _with_appended(messages, SCHEMA_INSTRUCTION.format(schema=canonical_json(schema)))
    sample, seed = request.sample, request.seed
    if fresh_salt is not None:
        sample = seed_of("fresh", fresh_salt, sample)
        seed = None if seed is None else seed_of("fresh", fresh_salt, seed)
    return ProviderCall(
        model=spec,
        messages=messages,
        schema=schema,
        schema_name=request.reply.__name__ if request.reply is not None else "",
        temperature=request.temperature,
        max_tokens=request.max_tokens,
        seed=seed % 2**SEED_BITS if seed is not None and spec.supports_seed else None,
        sample=sample,
    )


def next_call(chain: Chain, reply: RawReply, trouble: BadReply) -> ProviderCall | None:
    """The re-ask after a bad reply, or None when a longer budget has been tried and did not help.

    Cut off: the same messages with twice the tokens, once. Otherwise the reply and what was wrong with
    it are shown; an empty reply cannot be shown (some chat templates refuse it), only complained of.
    """
    call = chain.call
    if trouble.kind == "truncated":
        if chain.lengthened:
            return None
        chain.lengthened = True
        return replace(call, max_tokens=call.max_tokens * 2)
    instruction = REASK_TEXT_INSTRUCTION if call.schema is None else REASK_INSTRUCTION
    complaint = instruction.format(sentence=trouble.sentence)
    shown = clean(reply.text)[:QUOTED_CHARACTERS]
    if not shown:
        return replace(call, messages=_with_appended(call.messages, complaint))
    return replace(call, messages=(*call.messages, Message("assistant", shown), Message("user", complaint)))


def request_json(call: ProviderCall) -> str:
    """What the cache keeps of a call for people to read: the model, the messages and the parameters."""
    return canonical_json(
        {
            "model": call.model.identity(),
            "messages": [{"role": part.role, "content": part.content} for part in call.messages],
            "schema": call.schema,
            "temperature": call.temperature,
            "max_tokens": call.max_tokens,
            "seed": call.seed,
            "sample": call.sample,
        }
    )


def _with_appended(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """`text` at the end of the last user message (as a message of its own where the last is another's)."""
    if messages and messages[-1].role == "user":
        return (*messages[:-1], Message("user", f"{messages[-1].content}\n\n{text}"))
    return (*messages, Message("user", text))


def _raise_if_withheld(reply: RawReply) -> None:
    if reply.finish_reason == "content_filter":
        raise ModelError("content_filter", "The provider's content filter withheld the reply.")
    if reply.finish_reason == "refusal":
        raise ModelError("refused", f"The model refused: {brief(reply.text)}")


def _worth_retrying(error: BaseException) -> bool:
    if not isinstance(error, ModelError) or error.kind not in RETRIED_KINDS:
        return False
    return (_retry_after(error) or 0.0) <= LONGEST_RETRY_AFTER_SECONDS


def _retry_after(error: BaseException | None) -> float | None:
    seconds = getattr(error, "retry_after_seconds", None)
    return None if seconds is None else max(0.0, float(seconds))


def _attempts(chain: Chain) -> int:
    return sum(link.attempts for link in chain.links) + chain.failed_attempts


def _trace(chain: Chain) -> Trace:
    prompt = [{"role": part.role, "content": part.content} for part in chain.call.messages]
    reply = chain.links[-1].reply.text if chain.links else None
    return Trace(chain.request_id, json.dumps(prompt, ensure_ascii=False), reply)
