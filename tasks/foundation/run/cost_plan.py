"""What a run is expected to ask its models: calls, tokens, dollars and hours, each with a range that is meant to hold
in four of five runs. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tasks.foundation.llm.budget import Allowed
from tasks.foundation.llm.models import ModelSpec


@dataclass(frozen=True, slots=True)
class Expected:
    """An amount with its range.

    >>> Expected.exactly(10).spread(1.25) + Expected.exactly(2)
    Expected(value=12, low=10.0, high=14.5)
    """

    value: float
    low: float
    high: float

    @staticmethod
    def exactly(value: float) -> Expected:
        return Expected(value, value, value)

    @staticmethod
    def total(amounts: Iterable[Expected]) -> Expected:
        """The sum; its range is that of amounts that err together, as those of one chain do."""
        every = list(amounts)
        return Expected(*(sum(getattr(one, name) for one in every) for name in ("value", "low", "high")))

    def __add__(self, other: Expected | float) -> Expected:
        return Expected.total((self, other if isinstance(other, Expected) else Expected.exactly(other)))

    def __mul__(self, factor: float) -> Expected:
        return Expected(self.value * factor, self.low * factor, self.high * factor)

    def spread(self, *factors: float) -> Expected:
        """With a range down and up by factors that err apart from one another."""
        factor = math.exp(math.hypot(*(math.log(each) for each in factors)))
        return Expected(self.value, self.value / factor, self.value * factor)

    def possibly(self) -> Expected:
        """The same of what may not be asked at all."""
        return Expected(self.value, 0, self.high)

    def to_json(self) -> list[float]:
        return [self.value, self.low, self.high]


AMOUNTS = ("requests", "calls", "prompt_tokens", "completion_tokens")
Basis = Literal["own", "alike", "table"]
"""What an expectation rests on: earlier requests to the same model, to others of its kind, or the table."""


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """What one model is expected to be asked for one purpose."""

    alias: str
    purpose: str
    requests: Expected
    calls: Expected
    """Requests with what is asked again."""
    prompt_tokens: Expected
    completion_tokens: Expected
    dollars: Expected | None
    """None: the price is not known."""
    most_tokens: float
    """Of the same requests, each asked again as often as the settings allow and answered at full length."""
    most_dollars: float | None
    call_seconds: float | None
    """What one call takes; None: not known."""
    basis: Basis = "table"
    n: int = 0
    """How many earlier requests it rests on."""

    @property
    def tokens(self) -> Expected:
        return self.prompt_tokens + self.completion_tokens

    def scaled(self, share: float) -> PlannedCalls:
        """As many times as much."""
        return self._changed(lambda amount: amount * share, share)

    def possibly(self) -> PlannedCalls:
        """The same of what may not be asked at all."""
        return self._changed(Expected.possibly, 1)

    def _changed(self, change: Any, share: float) -> PlannedCalls:
        changed: dict[str, Any] = {name: change(getattr(self, name)) for name in AMOUNTS}
        changed["dollars"] = None if self.dollars is None else change(self.dollars)
        changed["most_tokens"] = self.most_tokens * share
        changed["most_dollars"] = None if self.most_dollars is None else self.most_dollars * share
        return replace(self, **changed)

    def to_json(self) -> dict[str, Any]:
        """What a commit records of it."""
        amounts = {name: getattr(self, name).to_json() for name in AMOUNTS}
        dollars = None if self.dollars is None else self.dollars.to_json()
        return {"alias": self.alias, "purpose": self.purpose, **amounts, "dollars": dollars}

    @staticmethod
    def from_json(plain: Mapping[str, Any]) -> PlannedCalls:
        amounts: dict[str, Any] = {name: Expected(*plain[name]) for name in AMOUNTS}
        amounts["dollars"] = None if plain["dollars"] is None else Expected(*plain["dollars"])
        return PlannedCalls(
            plain["alias"], plain["purpose"], **amounts, most_tokens=0, most_dollars=None, call_seconds=None
        )


def planned_in(record: Mapping[str, Any]) -> list[PlannedCalls]:
    """What a commit's record says was planned as its stage began; nothing for a stage that asks nobody."""
    return [PlannedCalls.from_json(plain) for plain in record.get("plan", ())]


def total_of(calls: Iterable[PlannedCalls], alias: str = "", purpose: str = "") -> PlannedCalls:
    """The sum of some calls under one name. `dollars` is that of the priced ones; None where none of them is."""
    every = list(calls)
    priced = [each.dollars for each in every if each.dollars is not None]
    most = [each.most_dollars for each in every if each.most_dollars is not None]
    amounts: dict[str, Any] = {name: Expected.total(getattr(each, name) for each in every) for name in AMOUNTS}
    return PlannedCalls(
        alias,
        purpose,
        **amounts,
        dollars=Expected.total(priced) if priced or not every else None,
        most_tokens=sum(each.most_tokens for each in every),
        most_dollars=sum(most) if most or not every else None,
        call_seconds=None,
    )


def unpriced_in(calls: Iterable[PlannedCalls]) -> list[str]:
    """The models without a known price that are asked anything."""
    return list(dict.fromkeys(each.alias for each in calls if each.dollars is None and each.calls.high))


def by_alias(calls: Iterable[PlannedCalls]) -> list[PlannedCalls]:
    """One entry a model, for all purposes; without a price where one of them has none."""
    of: dict[str, list[PlannedCalls]] = {}
    for each in calls:
        of.setdefault(each.alias, []).append(each)
    return [_without_part_of_a_price(total_of(several, alias), several) for alias, several in of.items()]


def _without_part_of_a_price(total: PlannedCalls, several: Sequence[PlannedCalls]) -> PlannedCalls:
    return replace(total, dollars=None, most_dollars=None) if unpriced_in(several) else total


def hours_of(
    calls: Iterable[PlannedCalls],
    models: Mapping[str, ModelSpec],
    tokens_per_second: float | None = None,
    rows_at_once: float = math.inf,
) -> Expected | None:
    """How long the calls of one run take, one model beside the other: what its limits a minute allow, or what its calls
    take with so many at once; and no less than `rows_at_once` rows take that each ask one thing after another.
    `tokens_per_second`: completion tokens that a server without a price gives altogether; it goes before what was
    measured. None: of a model nothing is known."""

    def by_tokens(each: PlannedCalls) -> bool:
        return tokens_per_second is not None and not (each.dollars and each.dollars.high)

    longest: dict[str, Expected] = {}
    for each in by_alias(several := list(calls)):
        spec, own = models[each.alias], [one for one in several if one.alias == each.alias]
        bounds = [each.calls * (1 / spec.requests_per_minute / 60)] if spec.requests_per_minute else []
        bounds += [each.tokens * (1 / spec.tokens_per_minute / 60)] if spec.tokens_per_minute else []
        if by_tokens(each):
            assert tokens_per_second is not None
            bounds.append(each.completion_tokens * (1 / tokens_per_second / 3600))
        elif all(one.call_seconds is not None for one in own):
            at_once = spec.slots if spec.provider == "embedded" else spec.max_in_flight
            bounds.append(Expected.total(one.calls * ((one.call_seconds or 0) / at_once / 3600) for one in own))
        else:
            return None
        longest[each.alias] = max(bounds, key=lambda one: one.value)
    timed = [one for one in several if one.call_seconds is not None and not by_tokens(one)]
    by_rows = Expected.total(one.calls * ((one.call_seconds or 0) / rows_at_once / 3600) for one in timed)
    return max([by_rows, *longest.values()], key=lambda one: one.value)


@dataclass(frozen=True, slots=True)
class PassedBudget:
    """A limit (its setting's name) that a plan passes, with what was spent before: the `expected` amount does, or only
    the upper end of its range (`perhaps`); or one in dollars that cannot be kept, as models have no price."""

    limit: str
    allowed: float
    planned: Expected
    by: Literal["expected", "perhaps", "unpriced"]


def find_passed_budgets(limit: Allowed, calls: Sequence[PlannedCalls]) -> list[PassedBudget]:
    """The parts of a budget that a plan passes."""
    total, before = total_of(calls), limit.before
    amounts = {
        "max_calls": (limit.max_calls, total.calls + before.calls),
        "max_tokens": (limit.max_tokens, total.tokens + before.tokens),
        "max_cost_usd": (limit.max_cost_usd, (total.dollars or Expected.exactly(0)) + before.cost_usd),
    }
    found = []
    for name, (allowed, planned) in amounts.items():
        if allowed is None:
            continue
        if name == "max_cost_usd" and unpriced_in(calls):
            found.append(PassedBudget(f"{limit.name}.{name}", allowed, planned, "unpriced"))
        elif planned.high > allowed:
            by: Literal["expected", "perhaps"] = "expected" if planned.value > allowed else "perhaps"
            found.append(PassedBudget(f"{limit.name}.{name}", allowed, planned, by))
    return found
