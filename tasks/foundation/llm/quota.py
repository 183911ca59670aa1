"""What response headers say of the account's limits, in the spellings of the vendors.

>>> quota_of({"x-ratelimit-limit-requests": "600", "x-ratelimit-remaining-requests": "540",
...           "x-ratelimit-reset-requests": "6s"}, now=0.0).requests.per_minute
600.0
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")

LIMIT, REMAINING, RESET = "limit", "remaining", "reset"
_NAMES = (
    "x-ratelimit-{field}-{unit}",
    "anthropic-ratelimit-{unit}-{field}",
)


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


def quota_of(headers: Mapping[str, str], now: float) -> Quota | None:
    """The quota in a response's headers (looked up without regard to case), None where there is none.

    `now` is the time as seconds since the epoch: Anthropic reports resets as a date.
    """
    if not any("ratelimit" in name.lower() for name in headers):
        return None
    lowered = {name.lower(): value for name, value in headers.items()}
    quota = Quota(_allowance(lowered, "requests", now), _allowance(lowered, "tokens", now))
    return quota if quota.requests or quota.tokens else None


def _allowance(headers: Mapping[str, str], unit: str, now: float) -> Allowance | None:
    for name in _NAMES:
        limit = _number(headers.get(name.format(field=LIMIT, unit=unit)))
        remaining = _number(headers.get(name.format(field=REMAINING, unit=unit)))
        reset = _seconds(headers.get(name.format(field=RESET, unit=unit)), now)
        if limit is not None and remaining is not None and reset is not None:
            return Allowance(limit, remaining, reset)
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
        return sum(float(count) * _UNITS[unit] for count, unit in _PIECE.findall(text))
    if (seconds := _number(text)) is not None:
        return seconds
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp() - now)
    except ValueError:
        return None
