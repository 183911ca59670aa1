"""How many calls are under way at once: doubled at first, then a little more at a time, cut after trouble.

Growth needs a window of answers in which the level was really reached: a limit that was not exercised says
nothing. Latency speaks for servers that never refuse: when a higher level brings no more answers a second and
only makes each wait longer, the server is full and the level goes back.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

FIRST_LEVEL = 16
SMALLEST_WINDOW = 16
"""Answers that a window has at least."""
EXERCISED = 0.8
"""Share of the level that was under way when an answer came: the level was really used."""
BORNE = 0.75
"""Share of the ceiling that was carried before it was met."""
FLOOR = 4
"""Latency alone never cuts below this."""
GAIN = 1.15
"""A doubled level that brings less than this factor of answers a second has met a full server …"""
SLOWER = 1.5
"""… if each answer also takes this many times as long."""
SATURATED = 2.0
"""Times the best latency of a role, at no more answers a second: the server is over-full."""


@dataclass(frozen=True, slots=True)
class Window:
    """What one window of answers showed."""

    level: int
    rate: float
    latency: float


class InFlight:
    """The level for one model, between 1 and `cap`."""

    def __init__(self, cap: int, minute: float = 60.0) -> None:
        self.cap = cap
        self.level = min(cap, FIRST_LEVEL)
        self._minute = minute
        self._doubling = True
        self._ceiling: int | None = None
        self._cut_at = float("-inf")
        self._before: Window | None = None
        self._best: dict[str, float] = {}
        self._slow_windows = 0
        self._started_at, self._count, self._exercised = 0.0, 0, 0
        self._latencies = _no_latencies()

    def cut(self, now: float, in_use: int) -> None:
        """Refused or timed out at `in_use` calls under way: half of that."""
        self._ceiling, self._cut_at, self._doubling = max(1, in_use), now, False
        self.level = max(1, min(self.level, in_use) // 2)
        self._begin(now)

    def has_borne(self, in_use: int) -> bool:
        """Whether so few calls at once are surely not what was refused: one, or well below an earlier ceiling."""
        return in_use == 1 or (self._ceiling is not None and in_use <= BORNE * self._ceiling)

    def uncut(self, level: int) -> None:
        """The cut was not called for: the trouble was not the number of calls."""
        self.level, self._ceiling = level, None

    def note_answer(self, now: float, sent_at: float, role: str, in_use: int) -> None:
        """An answer came while `in_use` calls were under way (it among them)."""
        if self._count == 0:
            self._started_at = sent_at
        self._count += 1
        self._exercised += in_use >= EXERCISED * self.level
        latencies = self._latencies[role]
        latencies[0] += now - sent_at
        latencies[1] += 1
        if self._count >= max(SMALLEST_WINDOW, self.level):
            self._judge(now)
            self._begin(now)

    def _begin(self, now: float) -> None:
        self._started_at, self._count, self._exercised = now, 0, 0
        self._latencies = _no_latencies()

    def _judge(self, now: float) -> None:
        if self._exercised * 2 < self._count:
            return
        total = sum(seconds for seconds, _ in self._latencies.values())
        window = Window(self.level, self._count / max(1e-9, now - self._started_at), total / self._count)
        slowness = self._slowness()
        if self._doubling:
            self._double(window)
        elif slowness > SATURATED and self._before is not None and window.rate <= 1.1 * self._before.rate:
            self._slow_windows += 1
            if self._slow_windows >= 2:
                self._slow_windows = 0
                self.level = max(min(FLOOR, self.cap), self.level * 3 // 4)
        else:
            self._slow_windows = 0
            self._grow(now)
            self._before = window

    def _double(self, window: Window) -> None:
        before = self._before
        if before is not None and window.rate < GAIN * before.rate and window.latency > SLOWER * before.latency:
            self.level, self._doubling, self._ceiling = before.level, False, window.level
            return
        self._before = window
        self.level = min(self.cap, 2 * self.level)
        self._doubling = self.level < self.cap

    def _grow(self, now: float) -> None:
        if self._ceiling is not None:
            if now - self._cut_at < self._minute:
                self.level = max(self.level, min(self.cap, self._ceiling - 1, self.level + max(1, self.level // 20)))
                return
            self._ceiling = None
        self.level = min(self.cap, self.level + max(1, self.level // 20))

    def _slowness(self) -> float:
        """How many times its best each role's mean latency is, over the roles with enough answers."""
        times = []
        for role, (seconds, count) in self._latencies.items():
            if count < SMALLEST_WINDOW // 2:
                continue
            mean = seconds / count
            best = self._best[role] = min(mean, self._best.get(role, mean))
            times.append(mean / max(best, 1e-9))
        return max(times, default=1.0)


def _no_latencies() -> defaultdict[str, list[float]]:
    """Of each role: seconds in all, and of how many answers."""
    return defaultdict(lambda: [0.0, 0.0])
