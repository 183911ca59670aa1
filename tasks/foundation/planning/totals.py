"""Sums of plans, and what they mean for limits a minute and for budgets. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tasks.foundation.llm.budget import Allowed
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.planning.calls import PlannedCalls
from tasks.foundation.planning.span import Span


@dataclass(frozen=True, slots=True)
class Total:
    """What some planned calls come to. `dollars` is that of the models with a price; `unpriced` names the others
    that are asked anything."""

    requests: Span
    calls: Span
    prompt_tokens: Span
    completion_tokens: Span
    dollars: Span
    unpriced: tuple[str, ...] = ()

    @property
    def tokens(self) -> Span:
        return self.prompt_tokens + self.completion_tokens


def total_of(calls: Iterable[PlannedCalls]) -> Total:
    every = list(calls)
    return Total(
        Span.total(each.requests for each in every),
        Span.total(each.calls for each in every),
        Span.total(each.prompt_tokens for each in every),
        Span.total(each.completion_tokens for each in every),
        Span.total(each.dollars for each in every if each.dollars is not None),
        tuple(dict.fromkeys(each.alias for each in every if each.dollars is None and each.calls.high)),
    )


def minutes_at_least(calls: PlannedCalls, spec: ModelSpec) -> Span | None:
    """The time that the model's own limits a minute take for these calls, whatever the latency; None: it has none."""
    limits = [
        Span(amount.low / limit, amount.high / limit)
        for amount, limit in (
            (calls.calls, spec.requests_per_minute),
            (calls.prompt_tokens + calls.completion_tokens, spec.tokens_per_minute),
        )
        if limit is not None
    ]
    return Span(max(one.low for one in limits), max(one.high for one in limits)) if limits else None


@dataclass(frozen=True, slots=True)
class Passed:
    """A limit (its setting's name) that a plan passes, together with what was spent before: already the `low`
    estimate does, or only the `high` one; or one in dollars that cannot be kept, as models have no price
    (`unpriced`)."""

    limit: str
    allowed: float
    planned: Span
    by: Literal["low", "high", "unpriced"]


def passed(limit: Allowed, total: Total) -> list[Passed]:
    """The limits of a budget that a plan passes."""
    before = limit.before
    amounts = {
        "max_calls": (limit.max_calls, total.calls + before.calls),
        "max_tokens": (limit.max_tokens, total.tokens + before.tokens),
        "max_cost_usd": (limit.max_cost_usd, total.dollars + before.cost_usd),
    }
    found = []
    for name, (allowed, planned) in amounts.items():
        if allowed is None:
            continue
        if name == "max_cost_usd" and total.unpriced:
            found.append(Passed(f"{limit.name}.{name}", allowed, planned, "unpriced"))
        elif planned.high > allowed:
            found.append(Passed(f"{limit.name}.{name}", allowed, planned, "low" if planned.low > allowed else "high"))
    return found
