"""What may still be spent: a call is sent only if the dearest it can become still fits.

Before a call its worst case is reserved (the prompt's estimated tokens and all of `max_tokens`); afterwards
what it really took is booked. So a limit is never passed by more than the error of the prompt's estimate.
When a call does not fit, it waits for those under way to give back what they did not need; when nothing is
under way any more, the budget is used up and every further call is refused with the kind `budget`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.foundation.errors import ModelError
from tasks.foundation.llm.request import Usage


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls, tokens (prompt and completion together) and US dollars. `cost_usd` is 0.0 where no limit asks for it."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.calls + other.calls, self.tokens + other.tokens, self.cost_usd + other.cost_usd)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.calls - other.calls, self.tokens - other.tokens, self.cost_usd - other.cost_usd)


@dataclass(frozen=True, slots=True)
class Allowed:
    """One limit of the settings (`name` is where it stands there) and what was spent of it before."""

    name: str
    before: Spent
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None

    @property
    def sets_something(self) -> bool:
        return (self.max_calls, self.max_tokens, self.max_cost_usd) != (None, None, None)

    def broken_by(self, spent: Spent) -> str | None:
        """The part of the limit that so much (since `before`) would pass, with its numbers; None: it fits."""
        whole = self.before + spent
        if self.max_calls is not None and whole.calls > self.max_calls:
            return f"{self.name}.max_calls = {self.max_calls:,}"
        if self.max_tokens is not None and whole.tokens > self.max_tokens:
            return f"{self.name}.max_tokens = {self.max_tokens:,}"
        if self.max_cost_usd is not None and whole.cost_usd > self.max_cost_usd + 1e-12:
            return f"{self.name}.max_cost_usd = {self.max_cost_usd:g}"
        return None


class Budget:
    """All limits that hold for one stage run. `reached` says which one ended it; None: none did."""

    def __init__(self, allowed: Sequence[Allowed] = ()) -> None:
        self.reached: str | None = None
        self.spent = Spent()
        self._allowed = [each for each in allowed if each.sets_something]
        self._reserved = Spent()
        self._under_way = 0
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def limited(self) -> bool:
        return bool(self._allowed)

    async def reserve(self, worst: Spent) -> Spent:
        """Holds `worst` back for one call; to be ended by `book`. Raises ModelError (`budget`) when it cannot fit."""
        while True:
            if self.reached is not None:
                raise ModelError("budget", self.reached, attempts=0)
            broken = self._broken_by(self.spent + self._reserved + worst)
            if broken is None:
                self._reserved = self._reserved + worst
                self._under_way += 1
                return worst
            if self._under_way == 0:
                self.reached = self._sentence(broken, worst)
                continue
            ended = asyncio.get_running_loop().create_future()
            self._waiting.append(ended)
            await ended

    def book(self, reserved: Spent, actual: Spent) -> None:
        """The call has ended and took `actual` (a failed one: a call without tokens)."""
        self._reserved = self._reserved - reserved
        self.spent = self.spent + actual
        self._under_way -= 1
        waiting, self._waiting = self._waiting, []
        for ended in waiting:
            if not ended.done():
                ended.set_result(None)

    def _broken_by(self, spent: Spent) -> str | None:
        return next((broken for each in self._allowed if (broken := each.broken_by(spent))), None)

    def _sentence(self, broken: str, worst: Spent) -> str:
        limit = next(each for each in self._allowed if broken.startswith(f"{each.name}."))
        whole = limit.before + self.spent
        dollars = f" and {whole.cost_usd:.4f} US dollars" if limit.max_cost_usd is not None else ""
        return (
            f"the budget {broken} is used up: {whole.calls:,} calls, {whole.tokens:,} tokens{dollars} were spent, and "
            f"the next call may take {worst.tokens:,} tokens. What was answered is kept: raise the budget and run the "
            "same command, it goes on."
        )


def spent_of(usage: Usage, cost_usd: float | None, calls: int = 1) -> Spent:
    """What one reply took. Tokens that were not reported count as 0 here: who has reserved for the call books that
    instead. An unknown price counts as 0.0; where dollars are limited it was refused before."""
    tokens = (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
    return Spent(calls, tokens, cost_usd or 0.0)
