"""From one physical call to the provider's reply: through the gate and within the budget, retried where it may help.

Nothing outside this module retries. A refusal for lack of quota is a matter of the gate, which pauses for
everybody; it counts against a call's attempts only after several. Other passing failures (time-outs, broken
connections, server errors) are tried again after a pause that doubles.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tasks.foundation.errors import FailureKind, ModelError, ModelUnavailable
from tasks.foundation.llm.budget import Budget, Spent, spent_of
from tasks.foundation.llm.failures import Border, unexpected_failure
from tasks.foundation.llm.limits.gate import Gate, Gates, Permit, Result
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.pricing import Pricing, pricing_of
from tasks.foundation.llm.redaction import encodable
from tasks.foundation.llm.request import Provider, ProviderCall, RawReply, Usage

RETRIED_KINDS: tuple[FailureKind, ...] = ("rate_limited", "timeout", "connection", "server")
"""The failures that are worth another attempt."""

REFUSALS_PER_ATTEMPT = 4
"""A call is refused for lack of quota so many times for each of its attempts before it fails."""

LONGEST_BACKOFF_SECONDS = 60.0
LONGEST_RETRY_AFTER_SECONDS = 600.0
"""A provider that asks for a longer pause has run out of quota: the row fails now and is redone later."""

BYTES_PER_TOKEN = 3.5
"""Of UTF-8: English has about four characters a token, a Chinese character takes three bytes and about one token."""
FRAMING_TOKENS = 8
"""What a chat template adds to each message."""

NOTHING = Spent()


@dataclass(slots=True)
class Counters:
    """What this process did: calls sent (failed ones too), replies found in the cache, tokens bought; `unreported` are
    replies whose tokens the provider did not report."""

    calls_made: int = 0
    cached_replies: int = 0
    usage: Usage = field(default_factory=Usage)
    unreported: int = 0


@dataclass(slots=True)
class Dispatch:
    """How far a call has got. `sent`: a provider may be working on it, or has answered; it will be paid for. `wanted`:
    somebody waits for it; else it is not tried again."""

    sent: bool = False
    wanted: bool = True


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on: attempts of one call, the first pause between them, an outage that stops everything."""

    attempts: int = 5
    base_seconds: float = 0.5
    outage_seconds: float = 120.0


class Sender:
    """Sends calls for one engine. `given` replaces real providers, by alias or provider kind. A `transport` takes all
    other calls and sends them in batch jobs; they pass no gate, for a provider limits its jobs in other ways."""

    def __init__(
        self,
        *,
        gates: Gates,
        budget: Budget,
        patience: Patience,
        counters: Counters,
        given: Mapping[str, Provider],
        transport: Provider | None = None,
    ) -> None:
        self._gates = gates
        self._budget = budget
        self._patience = patience
        self._counters = counters
        self._given = given
        self._transport = transport
        self._providers: dict[tuple[str, str | None, str | None], Provider] = {}
        self._at_gate: dict[str, Gate] = {}
        self._pricings: dict[str, Pricing] = {}
        self._usual_completion: dict[str, float] = {}
        self._stopped = False

    def stop(self) -> None:
        """From now on a call that fails is not tried again."""
        self._stopped = True

    async def send(self, call: ProviderCall, role: str, dispatch: Dispatch) -> tuple[RawReply, int]:
        """The reply and how many attempts it took. ModelError carries that number too. `dispatch` follows the call."""
        provider, gate = self._provider(call.model), self._find_gate(call.model)
        attempts = tries = refusals = 0
        while True:
            attempts += 1
            try:
                return await self._attempt(provider, gate, call, role, dispatch), attempts
            except ModelError as error:
                refused = error.kind == "rate_limited" and self._transport is None
                refusals, tries = refusals + refused, tries + (not refused)
                given_up = error.kind == "budget" or self._stopped or not dispatch.wanted
                if given_up or not self._worth_another(error, tries, refusals):
                    error.attempts = attempts - (error.kind == "budget")
                    raise
            if tries and not refused:
                await asyncio.sleep(self._backoff(tries))

    def cost(self, spec: ModelSpec, usage: Usage) -> float | None:
        """US dollars of one call; None: unknown."""
        if spec.alias not in self._pricings:
            self._pricings[spec.alias] = pricing_of(spec, batched=self._transport is not None)
        return self._pricings[spec.alias](usage)

    async def close(self) -> None:
        """Closes the clients made here."""
        for provider in self._providers.values():
            await provider.close()
        self._providers.clear()

    def _provider(self, spec: ModelSpec) -> Provider:
        """The client for a model, made on first use. ModelUnavailable when its key is not set."""
        given = self._given.get(spec.alias) or self._given.get(spec.provider) or self._transport
        if given is not None:
            return given
        key = (spec.provider, spec.base_url, spec.api_key_env)
        if key not in self._providers:
            self._providers[key] = spec.kind.load(spec.kind.client)(spec)
        return self._providers[key]

    async def _attempt(
        self, provider: Provider, gate: Gate, call: ProviderCall, role: str, dispatch: Dispatch
    ) -> RawReply:
        """One attempt: leave to spend, leave to send, and both told what came of it."""
        reserved = await self._budget.reserve(self._worst_case(call)) if self._budget.limited else NOTHING
        taken = NOTHING
        try:
            if self._transport is not None:
                taken = Spent(calls=1)
                reply = await self._call(provider, call, dispatch)
            else:
                permit = await gate.enter(role, self._expect_tokens(call) if gate.counts_tokens else 0.0)
                taken = Spent(calls=1)
                reply = await self._call_through_gate(provider, gate, call, permit, dispatch)
            taken = self._measure(call, reply, reserved)
            return reply
        except ModelError as error:
            if error.kind == "timeout" and taken.calls:
                taken = reserved  # the provider may have answered all the same, and will want to be paid
            raise
        finally:
            if self._budget.limited:
                self._budget.book(reserved, taken)

    async def _call_through_gate(
        self, provider: Provider, gate: Gate, call: ProviderCall, permit: Permit, dispatch: Dispatch
    ) -> RawReply:
        try:
            reply = await self._call(provider, call, dispatch)
        except ModelError as error:
            seconds = _read_retry_after(error)
            if seconds is not None and seconds > LONGEST_RETRY_AFTER_SECONDS:
                seconds = None
            quota = getattr(error, "quota", None)
            gate.leave(permit, Result(error.kind, str(error), retry_after_seconds=seconds, quota=quota))
            raise
        except BaseException as error:
            if isinstance(error, ModelUnavailable):
                gate.turn_away(error)
            gate.abandon(permit)
            raise
        usage = reply.usage
        tokens = None
        if gate.counts_tokens and usage.prompt_tokens is not None and usage.completion_tokens is not None:
            tokens = float(usage.prompt_tokens + usage.completion_tokens)
            usual = self._usual_completion.get(call.model.alias, float(usage.completion_tokens))
            self._usual_completion[call.model.alias] = 0.9 * usual + 0.1 * usage.completion_tokens
        gate.leave(permit, Result(tokens=tokens, quota=reply.quota))
        return reply

    async def _call(self, provider: Provider, call: ProviderCall, dispatch: Dispatch) -> RawReply:
        self._counters.calls_made += 1
        dispatch.sent = True
        try:
            async with Border(unexpected_failure):
                reply = await provider.call(call)
        except BaseException:
            dispatch.sent = False
            raise
        self._counters.usage = self._counters.usage + reply.usage
        self._counters.unreported += not reply.usage.is_whole
        text = encodable(reply.text)
        return reply if text is reply.text else replace(reply, text=text)

    def _worth_another(self, error: ModelError, tries: int, refusals: int) -> bool:
        if error.kind not in RETRIED_KINDS or (_read_retry_after(error) or 0.0) > LONGEST_RETRY_AFTER_SECONDS:
            return False
        attempts = self._patience.attempts
        return attempts > 1 and tries < attempts and refusals < REFUSALS_PER_ATTEMPT * attempts

    def _backoff(self, tries: int) -> float:
        base = self._patience.base_seconds
        return min(LONGEST_BACKOFF_SECONDS, base * 2 ** (tries - 1)) + random.uniform(0, base)

    def _find_gate(self, spec: ModelSpec) -> Gate:
        gate = self._at_gate.get(spec.alias)
        if gate is None:
            patience = self._patience
            gate = self._at_gate[spec.alias] = self._gates.of(
                spec, base_pause_seconds=patience.base_seconds, outage_seconds=patience.outage_seconds
            )
        return gate

    def _expect_tokens(self, call: ProviderCall) -> float:
        """Tokens that a call will probably take: its prompt, and a completion as long as this model's usually are."""
        usual = self._usual_completion.get(call.model.alias, float(call.max_tokens))
        return count_prompt_tokens(call) + min(usual, call.max_tokens)

    def _measure(self, call: ProviderCall, reply: RawReply, reserved: Spent) -> Spent:
        """What a reply took of the budget; where the provider reports no tokens, all that was reserved for it."""
        usage = reply.usage
        if not self._budget.limited or usage.prompt_tokens is None or usage.completion_tokens is None:
            return reserved
        return spent_of(usage, self.cost(call.model, usage))

    def _worst_case(self, call: ProviderCall) -> Spent:
        prompt = count_prompt_tokens(call)
        usage = Usage(prompt, 0, call.max_tokens, 0)
        return Spent(1, prompt + call.max_tokens, self.cost(call.model, usage) or 0.0)


def count_prompt_tokens(call: ProviderCall) -> int:
    """About how many tokens the messages and the schema of a call are, rather too many than too few."""
    size = sum(len(part.content.encode("utf-8", "replace")) for part in call.messages)
    schema = len(str(call.schema)) if call.schema is not None else 0
    return int((size + schema) / BYTES_PER_TOKEN) + FRAMING_TOKENS * len(call.messages)


def _read_retry_after(error: BaseException) -> float | None:
    seconds = getattr(error, "retry_after_seconds", None)
    return None if seconds is None else max(0.0, float(seconds))
