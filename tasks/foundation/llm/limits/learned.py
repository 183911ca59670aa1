"""A limit a minute that nobody told us, learned from refusals.

When a server refuses although few calls are in flight, what it let through in the last minute is its limit.
That is held; while it binds and nothing is refused it is tried a little higher, in steps that double, until
the next refusal sets it right again.
"""

from __future__ import annotations

import math
from collections import deque

from tasks.foundation.llm.limits.pace import Pace

FIRST_STEP = 0.02
LARGEST_STEP = 1.0
STEPS_PER_MINUTE = 4
BUCKETS_PER_MINUTE = 60
ENOUGH_TO_LEARN = 10
"""Calls that went through in the last minute; fewer say nothing of the limit (others may have used it up)."""
SEEN_MINUTES = 0.5
"""A refusal soon after the first call may be a storm that passes: then the pause is enough, nothing is learned."""


class LearnedRate:
    """Requests a minute as learned. `pace` is None until the first refusal."""

    def __init__(self, minute: float = 60.0) -> None:
        self.pace: Pace | None = None
        self._minute = minute
        self._step = FIRST_STEP
        self._tried_at = 0.0
        self._bound = False
        self._since = math.inf
        self._passed: deque[tuple[int, int]] = deque()

    def passed(self, sent_at: float) -> None:
        """A call that was sent at this time was not refused."""
        self._since = min(self._since, sent_at)
        bucket = int(sent_at / self._minute * BUCKETS_PER_MINUTE)
        if self._passed and self._passed[-1][0] >= bucket:
            self._passed[-1] = (self._passed[-1][0], self._passed[-1][1] + 1)
        else:
            self._passed.append((bucket, 1))
        while self._passed[0][0] < bucket - BUCKETS_PER_MINUTE:
            self._passed.popleft()

    def refused(self, now: float) -> None:
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
