"""What stands before one model: every call enters here, and says on leaving what came of it.

    permit = await gate.enter("judge", tokens=1200)
    reply = await provider.call(call)
    gate.leave(permit, Result(tokens=1130))

A burst of refusals is one event: the first one cuts, those that were sent before the cut say nothing new.
After any trouble one call goes ahead as a probe. A probe that is refused although it is alone shows that not
the number of calls but a quota was the matter. Waiting roles are served in turn, the one with the fewest
calls under way first, so that a slow judge does not starve a fast simulator that shares its model.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from dataclasses import dataclass
from textwrap import shorten
from weakref import WeakKeyDictionary

from tasks.foundation.errors import FailureKind, ModelUnavailable
from tasks.foundation.ids import digest
from tasks.foundation.llm.limits.in_flight import InFlight
from tasks.foundation.llm.limits.rates import LearnedRate, Pace, Quota, SharedLimits, SharedRate
from tasks.foundation.llm.models import ModelSpec

BREAKER_FAILURES = 5
"""Server, connection and time-out failures in a row after which only a probe goes out."""
LONGEST_PAUSE_SECONDS = 60.0
PROBES_PER_OUTAGE = 4
"""Pauses between probes grow to a quarter of the patience at most, so that it is not used up by one of them."""
CLOCK_TICK = 1e-6
LONGEST_REASON = 160
"""Characters of a failure's sentence that are shown while its model is waited for."""
LEAST_PROBES = 3
"""Failed probes before an outage may be declared, however long ago the last answer was."""


@dataclass(frozen=True, slots=True)
class Permit:
    """One call under way. `in_use`: how many there were when it was sent, itself included."""

    role: str
    tokens: float
    sent_at: float
    in_use: int
    probe: bool


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a call: the kind of failure (None: answered) and its sentence, what it really took, what headers
    said."""

    kind: FailureKind | None = None
    sentence: str = ""
    tokens: float | None = None
    retry_after_seconds: float | None = None
    quota: Quota | None = None


@dataclass(slots=True)
class _Waiter:
    tokens: float
    ready: asyncio.Future[Permit]


class Gate:
    """The limits of one model for all its callers in one event loop.

    `minute` is the length of a minute in seconds of the loop's clock (tests and benchmarks shorten it).
    """

    def __init__(
        self,
        name: str,
        *,
        max_in_flight: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        base_pause_seconds: float = 0.5,
        outage_seconds: float = 120.0,
        minute: float = 60.0,
        shared: SharedLimits | None = None,
        shared_as: str | None = None,
    ) -> None:
        self.name = name
        self.in_flight = InFlight(max_in_flight, minute)
        self.learned = LearnedRate(minute)
        self.base_pause_seconds = base_pause_seconds
        self.outage_seconds = outage_seconds
        self._requests = Pace(requests_per_minute, minute) if requests_per_minute else None
        self._tokens = Pace(tokens_per_minute, minute) if tokens_per_minute else None
        self._minute = minute
        self._shared = {
            unit: SharedRate(shared, f"{shared_as or name}/{unit}", per_minute, self._grant)
            for unit, per_minute in (("requests", requests_per_minute), ("tokens", tokens_per_minute))
            if shared is not None and per_minute
        }
        self._waiting: dict[str, deque[_Waiter]] = {}
        self._in_use: Counter[str] = Counter()
        self._total = 0
        self._served: dict[str, int] = {}
        self._turn = 0
        self._timer: asyncio.TimerHandle | None = None
        self._paused_until = 0.0
        self._half_open = False
        self._probing = False
        self._failures = 0
        self._failed_probes = 0
        self._cut_at = float("-inf")
        self._level_before_cut: int | None = None
        self._trouble_since: float | None = None
        self._last_trouble: FailureKind | None = None
        self._last_sentence = ""

    @property
    def counts_tokens(self) -> bool:
        """Whether callers should estimate tokens: only where a limit on them is known."""
        return self._tokens is not None

    def set_cap(self, max_in_flight: int) -> None:
        """Another cap from now on (another alias of the same model)."""
        self.in_flight.cap = max(self.in_flight.cap, max_in_flight)

    def describe(self) -> str | None:
        """Why nothing goes out at this moment, for people; None when calls go out."""
        left = self._paused_until - _now()
        if left > 0.5:
            return f"{self.name}: {self._describe_trouble() or 'quota used up'}, next try in {left:.0f} s"
        return None

    async def enter(self, role: str, tokens: float = 0.0) -> Permit:
        """Waits for leave to send one call of about so many tokens.

        Raises ModelUnavailable when the model has answered nothing for `outage_seconds`.
        """
        now = _now()
        if not self._waiting and self._may_go(now, tokens):
            return self._issue_permit(role, tokens, now)
        waiter = _Waiter(tokens, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(role, deque()).append(waiter)
        self._grant()
        try:
            return await waiter.ready
        except asyncio.CancelledError:
            if waiter.ready.done() and not waiter.ready.cancelled() and waiter.ready.exception() is None:
                self.abandon(waiter.ready.result())
            else:
                self._forget(role, waiter)
            raise

    def leave(self, permit: Permit, result: Result) -> None:
        """The call has ended; lets the next ones go."""
        now = _now()
        if self._tokens is not None and result.tokens is not None:
            self._tokens.correct(permit.tokens, result.tokens)
        if result.quota is not None:
            self._adopt_quota(result.quota, now)
        if result.retry_after_seconds is not None:
            self._pause(now, result.retry_after_seconds)
        if result.kind == "rate_limited":
            self._last_sentence = result.sentence
            self._note_refusal(permit, now)
        elif result.kind in ("timeout", "server", "connection"):
            self._last_sentence = result.sentence
            self._note_outage(permit, result.kind, now)
        else:
            self._note_answer(permit, now)
        self._end(permit)

    def abandon(self, permit: Permit) -> None:
        """The call was given up before anything came of it."""
        self._end(permit)

    def turn_away(self, error: ModelUnavailable) -> None:
        """Everybody who waits now gets `error`: no call to this model can succeed. Those who come later may try."""
        waiting, self._waiting = self._waiting, {}
        for waiters in waiting.values():
            for waiter in waiters:
                if not waiter.ready.done():
                    waiter.ready.set_exception(error)

    def _note_answer(self, permit: Permit, now: float) -> None:
        self._failures = 0
        self._trouble_since = self._last_trouble = None
        self.learned.note_passed(permit.sent_at)
        self.in_flight.note_answer(now, permit.sent_at, permit.role, self._total)
        if permit.probe:
            self._half_open, self._failed_probes = False, 0

    def _note_refusal(self, permit: Permit, now: float) -> None:
        self._remember_trouble("rate_limited", now)
        if permit.sent_at < self._cut_at and not permit.probe:
            return
        self._cut_at = now
        if permit.probe or self._is_rate_bound(permit) or self.in_flight.has_borne(permit.in_use):
            if self._level_before_cut is not None:
                self.in_flight.uncut(self._level_before_cut)
            if self._failed_probes == 0:
                self.learned.note_refused(now)
            self._level_before_cut = None
        else:
            self._level_before_cut = self.in_flight.level
            self.in_flight.cut(now, permit.in_use)
        self._begin_probing(permit, now)

    def _note_outage(self, permit: Permit, kind: FailureKind, now: float) -> None:
        self._remember_trouble(kind, now)
        self._failures += 1
        if kind == "timeout" and permit.sent_at >= self._cut_at and not permit.probe:
            self._cut_at = now
            self.in_flight.cut(now, permit.in_use)
        if permit.probe or (self._failures >= BREAKER_FAILURES and not self._half_open):
            self._begin_probing(permit, now)

    def _begin_probing(self, permit: Permit, now: float) -> None:
        """A pause, twice as long after each probe that failed; then one call alone."""
        self._failed_probes += permit.probe
        self._half_open = True
        longest = min(LONGEST_PAUSE_SECONDS, self.outage_seconds / PROBES_PER_OUTAGE)
        self._pause(now, min(longest, self.base_pause_seconds * 2 ** min(self._failed_probes, 16)))
        out_for = now - (self._trouble_since if self._trouble_since is not None else now)
        if self._failed_probes >= LEAST_PROBES and out_for > self.outage_seconds:
            self._give_up(out_for)

    def _give_up(self, seconds: float) -> None:
        error = ModelUnavailable(
            f"{self.name} has answered nothing for {seconds:.0f} s (llm.outage_seconds = {self.outage_seconds:g}); the "
            f"last failure was {self._describe_trouble()}. What was answered is kept: run the same command when it is "
            "back."
        )
        self.turn_away(error)
        self._failed_probes, self._trouble_since = 0, None

    def _remember_trouble(self, kind: FailureKind, now: float) -> None:
        self._last_trouble = kind
        if self._trouble_since is None:
            self._trouble_since = now

    def _describe_trouble(self) -> str:
        """The latest failure for people: its kind and the beginning of its sentence; empty: there was none."""
        if self._last_trouble is None:
            return ""
        said = f" ({shorten(self._last_sentence, LONGEST_REASON, placeholder=' …')})" if self._last_sentence else ""
        return f"{self._last_trouble}{said}"

    def _is_rate_bound(self, permit: Permit) -> bool:
        """Whether a limit a minute, and not the number of calls, held the call back."""
        known = self._requests is not None or self.learned.pace is not None
        return known and permit.in_use < self.in_flight.level

    def _adopt_quota(self, quota: Quota, now: float) -> None:
        """What headers say: limits a minute (the account's own, so they win over the configuration's), and when one
        is used up."""
        if quota.requests and (limit := quota.requests.per_minute):
            self._requests = _update_pace(self._requests, limit, self._minute)
        if quota.tokens and (limit := quota.tokens.per_minute):
            self._tokens = _update_pace(self._tokens, limit, self._minute)
        if (seconds := quota.pause_seconds()) > 0:
            self._pause(now, min(seconds, LONGEST_PAUSE_SECONDS))

    def _pause(self, now: float, seconds: float) -> None:
        self._paused_until = max(self._paused_until, now + seconds)

    def _may_go(self, now: float, tokens: float) -> bool:
        """Whether a call may be sent at once; where only time is wanting, a timer is set."""
        if self._total >= self.in_flight.level or (self._half_open and self._probing):
            return False
        wait = max(self._paused_until - now, self.learned.wait(now))
        if self._requests is not None:
            wait = max(wait, self._requests.wait(now))
        if self._tokens is not None:
            wait = max(wait, self._tokens.wait(now, tokens))
        if wait > CLOCK_TICK:
            self._wake_in(wait)
            return False
        return not self._shared or self._take_shared(tokens)

    def _take_shared(self, tokens: float) -> bool:
        requests, shared_tokens = self._shared.get("requests"), self._shared.get("tokens")
        if requests is not None and not requests.take(1.0):
            return False
        if shared_tokens is not None and not shared_tokens.take(tokens):
            if requests is not None:
                requests.give_back(1.0)
            return False
        return True

    def _issue_permit(self, role: str, tokens: float, now: float) -> Permit:
        self.learned.take(now)
        if self._requests is not None:
            self._requests.take(now)
        if self._tokens is not None:
            self._tokens.take(now, tokens)
        self._in_use[role] += 1
        self._total += 1
        self._turn += 1
        self._served[role] = self._turn
        if self._half_open:
            self._probing = True
        return Permit(role, tokens, now, self._total, self._half_open)

    def _end(self, permit: Permit) -> None:
        self._total -= 1
        self._in_use[permit.role] -= 1
        if permit.probe:
            self._probing = False
        if self._waiting:
            self._grant()

    def _grant(self) -> None:
        """Lets waiting calls go, role by role, as long as the limits allow."""
        while self._waiting:
            role = min(self._waiting, key=lambda name: (self._in_use[name], self._served.get(name, 0)))
            queue = self._waiting[role]
            now = _now()
            given_up = queue[0].ready.done()
            if not given_up and not self._may_go(now, queue[0].tokens):
                return
            waiter = queue.popleft()
            if not queue:
                del self._waiting[role]
            if not given_up:
                waiter.ready.set_result(self._issue_permit(role, waiter.tokens, now))

    def _forget(self, role: str, waiter: _Waiter) -> None:
        queue = self._waiting.get(role)
        if queue is not None and waiter in queue:
            queue.remove(waiter)
            if not queue:
                del self._waiting[role]
        self._grant()

    def _wake_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self._grant)


class Gates:
    """The gates of a process: one for each (provider, model, base URL, key), whoever asks. Each is made on first use
    and kept, with all that it has learned.

    `shared`: limits a minute that other processes keep as well; None: this process has them to itself.
    """

    def __init__(self, *, minute: float = 60.0, shared: SharedLimits | None = None) -> None:
        self._shared = shared
        self._minute = minute
        self._gates: dict[tuple[str, str, str | None, str | None], Gate] = {}

    def of(self, spec: ModelSpec, *, base_pause_seconds: float, outage_seconds: float) -> Gate:
        """The gate of a model; the patience is that of whoever asked last."""
        key = (spec.provider, spec.name, spec.base_url, spec.api_key_env)
        gate = self._gates.get(key)
        if gate is None:
            gate = self._gates[key] = Gate(
                spec.name,
                max_in_flight=spec.max_in_flight,
                requests_per_minute=spec.requests_per_minute,
                tokens_per_minute=spec.tokens_per_minute,
                minute=self._minute,
                shared=self._shared,
                shared_as=f"{spec.name}-{digest(key)[:6]}",
            )
        gate.set_cap(spec.max_in_flight)
        gate.base_pause_seconds, gate.outage_seconds = base_pause_seconds, outage_seconds
        return gate

    def share(self, shared: SharedLimits) -> None:
        """From now on new gates keep their limits a minute together with other processes; the first of them stays."""
        self._shared = self._shared or shared

    def describe(self) -> list[str]:
        """Why models are not being asked at this moment, one sentence each."""
        return [reason for gate in self._gates.values() if (reason := gate.describe())]


_OF_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, Gates] = WeakKeyDictionary()


def gates_of_process() -> Gates:
    """The gates that all stages and shards of this process (its running event loop) share."""
    loop = asyncio.get_running_loop()
    if loop not in _OF_LOOP:
        _OF_LOOP[loop] = Gates()
    return _OF_LOOP[loop]


def _update_pace(pace: Pace | None, per_minute: float, minute: float) -> Pace:
    if pace is None:
        return Pace(per_minute, minute)
    if abs(pace.per_minute - per_minute) > 0.01 * per_minute:
        pace.set(per_minute)
    return pace


def _now() -> float:
    return asyncio.get_running_loop().time()
