"""One request in, one checked answer out, nothing paid for twice.

`Engine.ask` walks a chain of physical calls: the first, then re-asks after replies that were cut off,
unreadable or invalid. Each call is looked up in the reply cache first, and its reply is on disk
before anyone sees it. How a call is sent, paced, retried and paid for is the business of `sending`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tasks.foundation.errors import ConfigError, ModelError, ModelUnavailable
from tasks.foundation.llm.budget import Budget
from tasks.foundation.llm.cache import CachedReply, ReplyCache
from tasks.foundation.llm.chain import Chain, Link, first_call
from tasks.foundation.llm.limits.gate import Gates, gates_of_process
from tasks.foundation.llm.models import ModelSpec, unknown_alias
from tasks.foundation.llm.redaction import brief, redact
from tasks.foundation.llm.reply import BadReply, SilentModels, read
from tasks.foundation.llm.request import Outcome, Provider, RawReply, Request
from tasks.foundation.llm.sending import Counters, Dispatch, Patience, Sender
from tasks.foundation.tables.operations import LlmCall

INTERRUPTED_SECONDS = 30.0
"""How long an interrupted run waits for answers that are paid for."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Flight:
    """A physical call under way, how far it has got, and how many requests wait for it."""

    key: str
    task: asyncio.Task[Link]
    dispatch: Dispatch
    waiting: int = 0


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Engine:
    """Sends requests to the models. Belongs to one event loop; one engine serves a whole stage run.

    `run_id` names the stage run that pays: a run killed and resumed under its id books what it had
    already paid. `revision` is that of the stage's commit, for the ledger. `fresh_salt` makes every sample a new draw
    instead of a replay. `providers` (by alias or provider kind) replaces the real ones; `transport` takes all other
    calls and sends them in batch jobs. `on_call` gets each ledger row, also of failures. `gates` are the limits of the
    models (None: those that the whole process shares), `budget` is what may be spent. With `replay_only` a reply that
    is not in the cache is an error instead of a call.
    """

    def __init__(
        self,
        models: Mapping[str, ModelSpec],
        cache: ReplyCache,
        *,
        run_id: str,
        revision: int = 0,
        max_reasks: int = 2,
        patience: Patience = Patience(),
        gates: Gates | None = None,
        budget: Budget | None = None,
        replay_only: bool = False,
        transport: Provider | None = None,
        fresh_salt: int | None = None,
        providers: Mapping[str, Provider] | None = None,
        now: Callable[[], datetime] = _utc_now,
        on_call: Callable[[LlmCall], None] = lambda row: None,
    ) -> None:
        self.counters = Counters()
        self.budget = budget or Budget()
        self._models = models
        self._cache = cache
        self._run_id = run_id
        self._revision = revision
        self._max_reasks = max_reasks
        self._replay_only = replay_only
        self._gates = gates
        self._patience = patience
        self._transport = transport
        self._given = providers or {}
        self._sender: Sender | None = None
        self._fresh_salt = fresh_salt
        self._flights: dict[str, _Flight] = {}
        self._stopped = False
        self._silent_models = SilentModels()
        self._now = now
        self._on_call = on_call

    @property
    def _batched(self) -> bool:
        return self._transport is not None

    async def ask(self, request: Request) -> Outcome:
        """The checked answer or the failure, with its ledger row and trace.

        Failures of this request are in the outcome. ModelUnavailable, ConfigError and StoreError,
        after which no request can succeed, are raised.
        """
        if request.alias not in self._models:
            raise ConfigError(unknown_alias(request.alias, self._models))
        spec = self._models[request.alias]
        chain = Chain(request, first_call(spec, request, self._fresh_salt))
        value: Any = None
        error: ModelError | None = None
        try:
            value = await self._walk(chain)
        except ModelUnavailable as stop:
            raise ModelUnavailable(f"Model {request.alias!r} cannot be used. {redact(str(stop))}") from None
        except ModelError as failure:
            sentence = f"{request.alias}: {brief(failure)}"
            error = ModelError(failure.kind, sentence, attempts=chain.attempts, text=chain.last_text)
        price = partial(self._sending().cost, spec)
        row = chain.ledger_row(error.kind if error else None, self._revision, price, self._now())
        self._on_call(row)
        self._silent_models.count(request.alias, row.error_kind, chain.last_text)
        return Outcome(value, error, row, chain.reply_row())

    def stop(self) -> None:
        """The run ends with an error: nothing is tried again, and `close` waits until answers under way have come."""
        self._stopped = True
        if self._sender is not None:
            self._sender.stop()

    async def close(self) -> None:
        """Closes the providers' clients. The cache and the transport belong to the caller.

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

    async def _walk(self, chain: Chain) -> Any:
        """Calls until a reply can be used; raises ModelError when there is none to be had."""
        reasks = 0
        while True:
            try:
                link = await self._obtain(chain)
            except ModelError as error:
                chain.failed_attempts = error.attempts
                raise
            chain.links.append(link)
            _raise_if_withheld(link.reply)
            try:
                return read(link.reply.text, chain.request.reply, link.reply.finish_reason, chain.cut)
            except BadReply as trouble:
                if reasks == self._max_reasks or not chain.go_on(trouble):
                    raise ModelError(trouble.kind, trouble.sentence) from None
                reasks += 1

    async def _obtain(self, chain: Chain) -> Link:
        """The reply to the chain's current call: from the cache, from a call under way, or bought."""
        key = chain.key
        if (found := self._replay(chain)) is not None:
            return found
        if self._replay_only:
            raise ModelUnavailable(_not_in_cache(chain.request))
        flight = self._flights.get(key)
        if flight is None:
            dispatch = Dispatch()
            task = asyncio.create_task(self._buy(chain, dispatch))
            flight = self._flights[key] = _Flight(key, task, dispatch)
            task.add_done_callback(lambda _: self._land(flight))
            return await self._join(flight)
        return replace(await self._join(flight), paid=False)

    def _replay(self, chain: Chain) -> Link | None:
        """The reply to the chain's current call, if the cache has it."""
        found = self._cache.get(chain.key)
        if found is None:
            return None
        self.counters.cached_replies += 1
        paid = found.run_id == self._run_id and found.request_id == chain.request_id
        return Link(found.reply, paid, 1, found.created_at)

    def _land(self, flight: _Flight) -> None:
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

    async def _buy(self, chain: Chain, dispatch: Dispatch) -> Link:
        """Sends the call, retrying what may pass, and returns once the reply is on disk.

        Another process may be sending it, too: then its reply is waited for. Should both have sent it, the reply that
        was stored first is everybody's, and each has paid for its own.
        """
        call, request = chain.call, chain.request
        # Batch jobs have claims of their own, which hold for days.
        async with nullcontext() if self._batched else self._cache.claims.claimed(chain.key):
            if (found := self._replay(chain)) is not None:
                return found
            reply, attempts = await self._sending().send(call, request.purpose, dispatch)
            stored = await self._cache.put(
                CachedReply(
                    key=chain.key,
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
        reply = replace(stored.reply, usage=reply.usage, latency_seconds=reply.latency_seconds)
        return Link(reply, True, attempts, stored.created_at)

    def _sending(self) -> Sender:
        """Made on first use, within the event loop whose limits it keeps."""
        if self._sender is None:
            self._sender = Sender(
                gates=self._gates or gates_of_process(),
                budget=self.budget,
                patience=self._patience,
                counters=self.counters,
                given=self._given,
                transport=self._transport,
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
