"""So many units a minute, evenly: a token bucket whose first burst cannot break the limit.

The bucket fills at 98 % of the limit and holds the other 2 % at most, so that no sixty seconds, however they
are cut, hold more than the limit. A request larger than the bucket goes when the bucket is full and leaves a
debt that those after it wait out.
"""

from __future__ import annotations

import math

SHARE_FILLED = 0.98
ROUNDING = 1e-6
"""Of a unit: less than this is missing only because clocks are floats, and waiting for it would never end."""


class Pace:
    """At most `per_minute` units in any `minute` seconds. Times are of one monotonic clock, in seconds."""

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
