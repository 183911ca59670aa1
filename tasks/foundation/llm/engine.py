"""One request in, one checked answer out, nothing paid for twice.

`Engine.ask` walks a chain of physical calls: the first, then re-asks after replies that were cut off,
unreadable or invalid. Each call is looked up in the reply cache first, and its reply is on disk
before anyone sees it. How a call is sent, paced, retried and paid for is the business of `sending`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from tasks.foundation.errors import ConfigError, FailureKind, ModelError, ModelUnavailable
from tasks.foundation.ids import content_id
from tasks.foundation.llm.budget import Budget
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.cache_rows import CachedReply, Entry
from tasks.foundation.llm.calls import first_call, next_call
from tasks.foundation.llm.failures import brief, redact
from tasks.foundation.llm.limits import Gates, gates_of_process
from tasks.foundation.llm.models import unknown_alias
from tasks.foundation.llm.reply import BadReply, read
from tasks.foundation.llm.request import (
    Answer,
    CallRecord,
    ModelSpec,
    Outcome,
    Provider,
    ProviderCall,
    RawReply,
    Request,
    Trace,
    Usage,
)
from tasks.foundation.llm.sending import Counters, Dispatch, Patience, Sender
from tasks.foundation.llm.wordless import Wordless


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
class _Flight:
    """A physical call under way, how far it has got, and how many requests wait for it."""

    key: str
    task: asyncio.Task[Link]
    dispatch: Dispatch
    waiting: int = 0


INTERRUPTED_SECONDS = 30.0
"""How long an interrupted run waits for answers that are paid for."""

log = logging.getLogger(__name__)

_PLAIN = json.JSONEncoder(ensure_ascii=False)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Engine:
    """Sends requests to the models. Belongs to one event loop; one engine serves a whole stage run.

    `run_id` names the stage run that pays: a run killed and resumed under its id books what it had
    already paid. `fresh_salt` makes every sample a new draw instead of a replay. `providers` (by alias
    or provider kind) replaces the real ones. `on_call` gets each ledger row, also of failures. `gates` are
    the limits of the models (None: those that the whole process shares), `budget` is what may be spent. With
    `replay_only` a reply that is not in the cache is an error instead of a call.
    """

    def __init__(
        self,
        models: Mapping[str, ModelSpec],
        cache: ReplyCache,
        *,
        run_id: str,
        max_reasks: int = 2,
        patience: Patience = Patience(),
        gates: Gates | None = None,
        budget: Budget | None = None,
        replay_only: bool = False,
        batched: bool = False,
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
        self._replay_only = replay_only
        self.budget = budget or Budget()
        self._gates = gates
        self._patience = patience
        self._batched = batched
        self._given = dict(providers or {})
        self._sender: Sender | None = None
        self._fresh_salt = fresh_salt
        self._flights: dict[str, _Flight] = {}
        self._stopped = False
        self._wordless = Wordless()
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
        self._wordless.count(request.alias, outcome.record.error_kind, outcome.trace.reply)
        return outcome

    def stop(self) -> None:
        """The run ends with an error: nothing is tried again, and `close` waits until answers under way have come."""
        self._stopped = True
        if self._sender is not None:
            self._sender.stop()

    async def close(self) -> None:
        """Closes the providers' clients. The cache belongs to the caller.

        What a provider has got is paid for, so its answers are waited for and kept for when the run goes on: all of
        them after `stop`, for some seconds when the run was interrupted.
        """
        try:
            if self._flights and not self._batched:
                log.info("waiting for %d answers under way, which are paid for", len(self._flights))
                await asyncio.wait_for(self.settled(), None if self._stopped else INTERRUPTED_SECONDS)
        except TimeoutError:
            log.warning("%d answers under way were given up; they may be paid for again", len(self._flights))
        finally:
            for flight in list(self._flights.values()):
                flight.task.cancel()
            if self._sender is not None:
                await self._sender.close()

    async def settled(self) -> None:
        """Waits until every call under way has ended and what it got is on disk; failures are its callers'.

        Calls in batch jobs are not waited for: the provider works on, and the next run finds the job.
        """
        while self._flights and not self._batched:
            await asyncio.wait([flight.task for flight in self._flights.values()])

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
                following = None
                if reasks < self._max_reasks:
                    following = next_call(chain.call, link.reply, trouble, chain.lengthened)
                if following is None:
                    raise ModelError(trouble.kind, trouble.sentence) from None
                chain.lengthened = chain.lengthened or trouble.kind == "truncated"
                chain.call, chain.key = following, following.key()
                reasks += 1

    async def _obtain(self, chain: Chain, request: Request) -> Link:
        """The reply to the chain's current call: from the cache, from a call under way, or bought."""
        key = chain.key
        if (found := self._replayed(key, chain)) is not None:
            return found
        if self._replay_only:
            raise ModelUnavailable(_not_in_cache(request))
        flight = self._flights.get(key)
        if flight is None:
            dispatch = Dispatch()
            task = asyncio.create_task(self._buy(key, chain, chain.call, request, dispatch))
            flight = self._flights[key] = _Flight(key, task, dispatch)
            task.add_done_callback(lambda _: self._landed(flight))
            return await self._join(flight)
        link = await self._join(flight)
        return replace(link, paid=False)

    def _replayed(self, key: str, chain: Chain) -> Link | None:
        """The reply to the call with this key, if the cache has it."""
        found = self._cache.get(key)
        if found is None:
            return None
        self.counters.cached_replies += 1
        paid = found.run_id == self._run_id and found.request_id == chain.request_id
        return Link(found.reply, paid, 1, found.created_at)

    def _landed(self, flight: _Flight) -> None:
        if self._flights.get(flight.key) is flight:
            del self._flights[flight.key]
        if not flight.waiting and not flight.task.cancelled():
            flight.task.exception()  # nobody is left to hear of it

    async def _join(self, flight: _Flight) -> Link:
        """Waits for a flight. When its last waiter is cancelled, a call that no provider has got is cancelled with it;
        the reply to any other is still written down, but it is not tried again."""
        flight.waiting += 1
        flight.dispatch.wanted = True
        try:
            return await asyncio.shield(flight.task)
        except asyncio.CancelledError:
            flight.dispatch.wanted = flight.waiting > 1
            if not flight.dispatch.wanted and (self._batched or not flight.dispatch.sent):
                flight.task.cancel()
                self._flights.pop(flight.key, None)  # who asks now asks anew, rather than to be cancelled with it
            raise
        finally:
            flight.waiting -= 1

    async def _buy(self, key: str, chain: Chain, call: ProviderCall, request: Request, dispatch: Dispatch) -> Link:
        """Sends the call, retrying what may pass, and returns once the reply is on disk.

        Another process may be sending it, too: then its reply is waited for. Should both have sent it, the reply that
        was stored first is everybody's, and each has paid for its own.
        """
        # batch jobs have claims of their own, which hold for days
        async with nullcontext() if self._batched else self._cache.claims.claimed(key):
            if (found := self._replayed(key, chain)) is not None:
                return found
            reply, attempts = await self._sending().send(call, request.purpose, dispatch)
            stored = await self._put(key, chain, call, request, reply)
        reply = replace(stored.reply, usage=reply.usage, latency_seconds=reply.latency_seconds)
        return Link(reply, True, attempts, stored.created_at)

    async def _put(self, key: str, chain: Chain, call: ProviderCall, request: Request, reply: RawReply) -> CachedReply:
        return await self._cache.put(
            Entry(
                key=key,
                request=call.canonical(),
                reply=reply,
                run_id=self._run_id,
                request_id=chain.request_id,
                stage=request.stage,
                alias=request.alias,
                created_at=self._now(),
                batched=self._batched,
            )
        )

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
        costs = [self._sending().cost(spec, usage) for usage in usages]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known and len(known) == len(costs) else None

    def _spec(self, alias: str) -> ModelSpec:
        try:
            return self._models[alias]
        except KeyError:
            raise ConfigError(unknown_alias(alias, self._models)) from None

    def _sending(self) -> Sender:
        """Made on first use, within the event loop whose limits it keeps."""
        if self._sender is None:
            self._sender = Sender(
                gates=self._gates or gates_of_process(),
                budget=self.budget,
                patience=self._patience,
                counters=self.counters,
                given=self._given,
                batched=self._batched,
            )
        return self._sender


def _not_in_cache(request: Request) -> str:
    return (
        f"llm.replay_only is true and the reply to {request.purpose!r} of row {request.row_key!r} (stage "
        f"{request.stage}) is not in the cache: expected every reply there, as after `colloquy cache import`. Import "
        "the cache of the build that is replayed, or set llm.replay_only=false to buy what is missing."
    )


def _raise_if_withheld(reply: RawReply) -> None:
    if reply.finish_reason == "content_filter":
        raise ModelError("content_filter", "The provider's content filter withheld the reply.")
    if reply.finish_reason == "refusal":
        raise ModelError("refused", f"The model refused: {brief(reply.text)}")


def _attempts(chain: Chain) -> int:
    return sum(link.attempts for link in chain.links) + chain.failed_attempts


def _trace(chain: Chain) -> Trace:
    prompt = [{"role": part.role, "content": part.content} for part in chain.call.messages]
    reply = chain.links[-1].reply.text if chain.links else None
    return Trace(chain.request_id, _PLAIN.encode(prompt), reply)
