"""From what a stage asks to physical calls, tokens and dollars, low to high.

Low: every request is answered at once, in few words, and the provider reads what a long prompt repeats from its own
cache, where it sells that cheaper. High: every reply is asked for again as often as the
settings allow, the first time because it was cut off (then with twice the tokens), each uses all its tokens, and
every call is tried as often as the settings allow. A failed try brings no tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.pricing import Pricing, pricing_of
from tasks.foundation.llm.request import Usage
from tasks.foundation.planning.estimate import Ask
from tasks.foundation.planning.span import Span
from tasks.foundation.settings.sections import LlmSection

COMPLAINT_TOKENS = 400
"""More than what a re-ask says of the reply before it (the engine cuts it at 700 characters)."""

CACHED_FROM = 1024
"""Tokens of the shortest common beginning that vendors keep in their caches."""

NUMBERS = ("requests", "calls", "prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """What one model is asked for one purpose. `dollars` None: its price is not known."""

    alias: str
    purpose: str
    requests: Span
    calls: Span
    prompt_tokens: Span
    completion_tokens: Span
    dollars: Span | None

    def to_json(self) -> dict[str, Any]:
        numbers = {name: getattr(self, name).to_json() for name in NUMBERS}
        dollars = None if self.dollars is None else self.dollars.to_json()
        return {"alias": self.alias, "purpose": self.purpose, **numbers, "dollars": dollars}

    @staticmethod
    def from_json(plain: Mapping[str, Any]) -> PlannedCalls:
        numbers = {name: Span(*plain[name]) for name in NUMBERS}
        dollars = None if plain["dollars"] is None else Span(*plain["dollars"])
        return PlannedCalls(plain["alias"], plain["purpose"], **numbers, dollars=dollars)


def planned_calls(
    asks: Iterable[Ask], llm: LlmSection, models: Mapping[str, ModelSpec], *, batched: bool
) -> list[PlannedCalls]:
    """One entry a model and purpose, in the order in which they are first asked."""
    together: dict[tuple[str, str], list[PlannedCalls]] = {}
    for ask in asks:
        pricing = pricing_of(models[ask.alias], batched=batched)
        planned = _planned(ask, llm, models[ask.alias], pricing)
        together.setdefault((ask.alias, ask.purpose), []).append(planned)
    return [merged(each, *key) for key, each in together.items()]


def merged(calls: Sequence[PlannedCalls], alias: str, purpose: str) -> PlannedCalls:
    """The sum of some calls under one name."""
    sums = {name: Span.total(getattr(each, name) for each in calls) for name in NUMBERS}
    priced = [each.dollars for each in calls if each.dollars is not None]
    return PlannedCalls(alias, purpose, **sums, dollars=Span.total(priced) if len(priced) == len(calls) else None)


def by_alias(calls: Iterable[PlannedCalls]) -> list[PlannedCalls]:
    """One entry a model, for all purposes."""
    of: dict[str, list[PlannedCalls]] = {}
    for each in calls:
        of.setdefault(each.alias, []).append(each)
    return [merged(each, alias, "") for alias, each in of.items()]


def _planned(ask: Ask, llm: LlmSection, spec: ModelSpec, pricing: Pricing) -> PlannedCalls:
    prompt, repeats = math.floor(ask.prompt.tokens.low + ask.reply.schema.low), ask.prompt.repeated >= CACHED_FROM
    least = Usage(prompt, prompt if repeats else 0, math.floor(ask.reply.least))
    most = list(_longest_replies(ask, llm.max_reasks, spec))
    return PlannedCalls(
        ask.alias,
        ask.purpose,
        requests=ask.requests,
        calls=Span(ask.requests.low, ask.requests.high * len(most)),
        prompt_tokens=Span(
            ask.requests.low * (least.prompt_tokens or 0),
            ask.requests.high * sum(usage.prompt_tokens or 0 for usage in most),
        ),
        completion_tokens=Span(
            ask.requests.low * (least.completion_tokens or 0),
            ask.requests.high * sum(usage.completion_tokens or 0 for usage in most),
        ),
        dollars=_dollars(ask.requests, least, most, pricing),
    )


def _longest_replies(ask: Ask, reasks: int, spec: ModelSpec) -> Iterator[Usage]:
    """The usage of each reply to a request that uses up everything it may. A prompt longer than the model's
    context is turned down, which costs nothing."""
    context = math.inf if spec.context_tokens is None else spec.context_tokens
    first = ask.prompt.tokens.high + ask.reply.schema.high
    for reask in range(1 + reasks):
        shown = reask * (2 * ask.max_tokens + COMPLAINT_TOKENS)
        prompt = min(math.ceil(first + shown), context)
        yield Usage(int(prompt), 0, ask.max_tokens * (2 if reask else 1))


def _dollars(requests: Span, least: Usage, most: Sequence[Usage], pricing: Pricing) -> Span | None:
    low, highs = pricing(least), [pricing(usage) for usage in most]
    known = [high for high in highs if high is not None]
    if low is None or len(known) < len(highs):
        return None
    return Span(requests.low * low, requests.high * sum(known))
