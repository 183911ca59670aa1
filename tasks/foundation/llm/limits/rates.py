"""Limits a minute: kept evenly, read from response headers, learned from refusals, shared with other processes."""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tasks.foundation.llm.redaction import brief

log = logging.getLogger(__name__)

SHARE_FILLED = 0.98
ROUNDING = 1e-6
"""Of a unit: less than this is missing only because clocks are floats, and waiting for it would never end."""


class Pace:
    """At most `per_minute` units in any `minute` seconds, evenly. Times are of one monotonic clock, in seconds.

    A token bucket that fills at 98 % of the limit and holds the other 2 % at most, so that no sixty seconds, however
    they are cut, hold more than the limit. A request larger than the bucket goes when the bucket is full and leaves a
    debt that those after it wait out.
    """

    def __init__(self, per_minute: float, minute: float = 60.0) -> None:
        self.per_minute = 0.0
        self._minute = minute
        self._level = 0.0
        self._filled_at: float | None = None
        self.set(per_minute)
        self._level = self._holds

    def set(self, per_minute: float) -> None:
        """Another limit from now on; a debt stays."""
        self.per_minute = max(1.0, per_minute)
        self._holds = float(max(1, math.floor(self.per_minute * (1 - SHARE_FILLED))))
        self._rate = self.per_minute * SHARE_FILLED / self._minute
        self._level = min(self._level, self._holds)

    def wait(self, now: float, amount: float = 1.0) -> float:
        """Seconds until `amount` may go; 0.0: now."""
        self._fill(now)
        missing = min(amount, self._holds) - self._level
        return missing / self._rate if missing > ROUNDING else 0.0

    def take(self, now: float, amount: float = 1.0) -> None:
        """Lets `amount` go (after `wait` said 0.0)."""
        self._fill(now)
        self._level -= amount

    def correct(self, estimated: float, actual: float) -> None:
        """Books what a request really took in place of what was estimated for it."""
        self._level = min(self._holds, self._level + estimated - actual)

    def _fill(self, now: float) -> None:
        if self._filled_at is not None:
            self._level = min(self._holds, self._level + (now - self._filled_at) * self._rate)
        self._filled_at = now


FIRST_STEP = 0.02
LARGEST_STEP = 1.0
STEPS_PER_MINUTE = 4
BUCKETS_PER_MINUTE = 60
ENOUGH_TO_LEARN = 10
"""Calls that went through in the last minute; fewer say nothing of the limit (others may have used it up)."""
SEEN_MINUTES = 0.5
"""A refusal soon after the first call may be a storm that passes: then the pause is enough, nothing is learned."""


class LearnedRate:
    """Requests a minute as learned from refusals. `pace` is None until the first one.

    When a server refuses although few calls are in flight, what it let through in the last minute is its limit.
    That is held; while it binds and nothing is refused it is tried a little higher, in steps that double, until
    the next refusal sets it right again.
    """

    def __init__(self, minute: float = 60.0) -> None:
        self.pace: Pace | None = None
        self._minute = minute
        self._step = FIRST_STEP
        self._tried_at = 0.0
        self._bound = False
        self._since = math.inf
        self._passed: deque[tuple[int, int]] = deque()

    def note_passed(self, sent_at: float) -> None:
        """A call that was sent at this time was not refused."""
        self._since = min(self._since, sent_at)
        bucket = int(sent_at / self._minute * BUCKETS_PER_MINUTE)
        if self._passed and self._passed[-1][0] >= bucket:
            self._passed[-1] = (self._passed[-1][0], self._passed[-1][1] + 1)
        else:
            self._passed.append((bucket, 1))
        while self._passed[0][0] < bucket - BUCKETS_PER_MINUTE:
            self._passed.popleft()

    def note_refused(self, now: float) -> None:
        """The quota of the last minute is used up: hold what went through in it."""
        limit = float(self._in_last_minute(now))
        if self.pace is None:
            if limit < ENOUGH_TO_LEARN or now - self._since < SEEN_MINUTES * self._minute:
                return
            self.pace = Pace(limit, self._minute)
        else:
            # Just after a pause the last minute holds little: one refusal never takes more than a tenth.
            self.pace.set(min(self.pace.per_minute, max(limit, 0.9 * self.pace.per_minute)))
        self._step, self._tried_at, self._bound = FIRST_STEP, now, False

    def wait(self, now: float) -> float:
        """Seconds until the next request may go."""
        if self.pace is None:
            return 0.0
        seconds = self.pace.wait(now)
        self._bound = self._bound or seconds > 0
        if self._bound and now - self._tried_at > self._minute / STEPS_PER_MINUTE:
            self.pace.set(self.pace.per_minute * (1 + self._step))
            self._step = min(LARGEST_STEP, 2 * self._step)
            self._tried_at, self._bound = now, False
        return seconds

    def take(self, now: float) -> None:
        if self.pace is not None:
            self.pace.take(now)

    def _in_last_minute(self, now: float) -> int:
        oldest = int(now / self._minute * BUCKETS_PER_MINUTE) - BUCKETS_PER_MINUTE
        return sum(count for bucket, count in self._passed if bucket >= oldest)


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_DURATION_PARTS = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")

_HEADERS = ("x-ratelimit-{field}-{unit}", "anthropic-ratelimit-{unit}-{field}")


@dataclass(frozen=True, slots=True)
class Allowance:
    """Of requests or tokens: the limit, what is left, and seconds until it is whole again (or begins anew)."""

    limit: float
    remaining: float
    reset_seconds: float

    @property
    def per_minute(self) -> float | None:
        """The limit a minute, where the numbers say that it is one a minute; None for a day's and others.

        A bucket that was emptied by `limit - remaining` and is whole in `reset_seconds` refills at that rate;
        a window that starts anew within a minute is one of a minute at most.
        """
        used = self.limit - self.remaining
        if used <= 0 or self.reset_seconds <= 0 or self.limit < 1:
            return None
        refilled = 60.0 * used / self.reset_seconds
        return self.limit if 0.5 * self.limit <= refilled <= 2.0 * self.limit else None


@dataclass(frozen=True, slots=True)
class Quota:
    """The allowances that one response reports; None: not reported."""

    requests: Allowance | None = None
    tokens: Allowance | None = None

    def pause_seconds(self) -> float:
        """How long nothing more may be sent: until what is used up is back."""
        spent = [part.reset_seconds for part in (self.requests, self.tokens) if part and part.remaining < 1]
        return max(spent, default=0.0)


def read_quota(headers: Mapping[str, str], now: float) -> Quota | None:
    """What a response's headers say of the account's limits, in the spellings of the vendors; None where they say
    nothing. `now` is the time as seconds since the epoch: Anthropic reports resets as a date.

    >>> read_quota({"x-ratelimit-limit-requests": "600", "x-ratelimit-remaining-requests": "540",
    ...             "x-ratelimit-reset-requests": "6s"}, now=0.0).requests.per_minute
    600.0
    """
    if not any("ratelimit" in name.lower() for name in headers):
        return None
    lowered = {name.lower(): value for name, value in headers.items()}
    quota = Quota(_allowance(lowered, "requests", now), _allowance(lowered, "tokens", now))
    return quota if quota.requests or quota.tokens else None


def _allowance(headers: Mapping[str, str], unit: str, now: float) -> Allowance | None:
    for name in _HEADERS:
        limit, remaining, reset = (
            headers.get(name.format(field=field, unit=unit)) for field in ("limit", "remaining", "reset")
        )
        numbers = _number(limit), _number(remaining), _seconds(reset, now)
        if None not in numbers:
            return Allowance(*numbers)  # type: ignore[arg-type]
    return None


def _number(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:
        return None


def _seconds(text: str | None, now: float) -> float | None:
    """`6m0s`, `120ms`, `1.5` (seconds) or an ISO date as seconds from now; None for anything else."""
    if text is None:
        return None
    text = text.strip()
    if _DURATION.fullmatch(text):
        return sum(float(count) * _UNITS[unit] for count, unit in _DURATION_PARTS.findall(text))
    if (seconds := _number(text)) is not None:
        return seconds
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp() - now)
    except ValueError:
        return None


BLOCK_SHARE = 1 / 30
"""Of a shared limit that is acquired at once: two seconds' worth, since asking for it takes time."""


class SharedLimits(Protocol):
    """Limits that several processes keep together. `flows` has some that use Prefect's global concurrency limits."""

    async def acquire(self, name: str, per_minute: float, amount: int) -> None:
        """Waits until `amount` units of the limit `name` (so many a minute, over all processes) are ours."""


class SharedRate:
    """A shared limit, of which units are acquired in blocks and spent here. `more` is called when a block has come."""

    def __init__(self, limits: SharedLimits, name: str, per_minute: float, more: Callable[[], None]) -> None:
        self._limits = limits
        self._name = name
        self._per_minute = per_minute
        self._more = more
        self._block = max(1, int(per_minute * BLOCK_SHARE))
        self._in_hand = 0.0
        self._acquiring: asyncio.Task[None] | None = None
        self._alone = False

    def take(self, amount: float) -> bool:
        """Whether `amount` was in hand (it is then spent). A block is acquired before the last one is used up."""
        if self._alone:
            return True
        enough = self._in_hand >= min(amount, self._block)
        if enough:
            self._in_hand -= amount
        if self._in_hand < self._block / 2 and self._acquiring is None:
            self._acquiring = asyncio.get_running_loop().create_task(self._acquire())
        return enough

    def give_back(self, amount: float) -> None:
        """Units that were taken and not used, for the next one here."""
        self._in_hand += amount

    async def _acquire(self) -> None:
        try:
            await self._limits.acquire(self._name, self._per_minute, self._block)
            self._in_hand += self._block
        except Exception as error:  # noqa: BLE001 - whatever the store's trouble: the own pace still holds
            log.warning(
                "shared limit %s cannot be asked (%s); this process keeps to the limit alone", self._name, brief(error)
            )
            self._alone = True
        finally:
            self._acquiring = None
        self._more()
