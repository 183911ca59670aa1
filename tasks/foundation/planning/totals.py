"""Sums of plans, and what they mean for limits a minute and for budgets. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tasks.foundation.llm.request import ModelSpec
from tasks.foundation.planning.calls import PlannedCalls
from tasks.foundation.planning.span import Span
from tasks.foundation.settings import BudgetSection


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
class Spent:
    """What a build's commits have used. `dollars` is that of the calls with a price."""

    calls: float = 0
    tokens: float = 0
    dollars: float = 0

    @staticmethod
    def of(usages: Iterable[Mapping[str, float | None]]) -> Spent:
        """The sum over the `usage` of commits."""
        every = list(usages)

        def total(*names: str) -> float:
            return sum(usage.get(name) or 0 for usage in every for name in names)

        return Spent(total("calls"), total("prompt_tokens", "completion_tokens"), total("cost_usd"))


@dataclass(frozen=True, slots=True)
class Reached:
    """A limit (its setting's name) that a plan passes: already the `low` estimate, or only the `high` one; or one in
    dollars that cannot be kept because models have no price (`unpriced`)."""

    limit: str
    allowed: float
    planned: Span
    by: Literal["low", "high", "unpriced"]


def reached(budget: BudgetSection, of: str, total: Total, spent: Spent) -> list[Reached]:
    """The limits of a budget (`of`: its setting's name) that what was spent and the plan pass together."""
    amounts = {
        "max_calls": (budget.max_calls, total.calls + spent.calls),
        "max_tokens": (budget.max_tokens, total.tokens + spent.tokens),
        "max_cost_usd": (budget.max_cost_usd, total.dollars + spent.dollars),
    }
    found = []
    for name, (allowed, planned) in amounts.items():
        if allowed is None:
            continue
        if name == "max_cost_usd" and total.unpriced:
            found.append(Reached(f"{of}.{name}", allowed, planned, "unpriced"))
        elif planned.high > allowed:
            found.append(Reached(f"{of}.{name}", allowed, planned, "low" if planned.low > allowed else "high"))
    return found
