"""The gate before a model, in virtual time: servers with limits of every kind, and what the gate makes of them."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.errors import FailureKind, ModelUnavailable
from tasks.foundation.llm.limits.gate import BREAKER_FAILURES, Gate, Gates, Result
from tasks.foundation.llm.limits.rates import Pace, Quota, read_quota
from tasks.foundation.llm.models import ModelSpec
from tests.virtual_time import run


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class Server:
    """Answers after `latency`, as its limits allow; counts what it did."""

    latency: float = 0.05
    per_minute: int | None = None
    at_once: int | None = None
    slots: int | None = None
    down: Callable[[float], FailureKind | None] = lambda t: None
    retry_after: bool = False
    answered: int = 0
    refused: list[float] = field(default_factory=list)
    most_at_once: int = 0
    starts: deque[float] = field(default_factory=deque)
    under_way: int = 0

    async def call(self, latency: float | None = None) -> Result:
        started = now()
        if trouble := self.down(started):
            await asyncio.sleep(0.01)
            return Result(trouble)
        if self.at_once is not None and self.under_way >= self.at_once:
            return await self._refuse(None)
        if self.per_minute is not None:
            while self.starts and self.starts[0] <= started - 60:
                self.starts.popleft()
            if len(self.starts) >= self.per_minute:
                return await self._refuse(self.starts[0] + 60 - started)
            self.starts.append(started)
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        crowd = max(1.0, self.under_way / self.slots) if self.slots else 1.0
        try:
            await asyncio.sleep((latency or self.latency) * crowd)
        finally:
            self.under_way -= 1
        self.answered += 1
        return Result()

    async def _refuse(self, seconds: float | None) -> Result:
        self.refused.append(now())
        await asyncio.sleep(0.005)
        return Result("rate_limited", retry_after_seconds=seconds if self.retry_after else None)


async def keep_asking(gate: Gate, server: Server, *, callers: int, until: float, role: str = "judge") -> None:
    """`callers` at a time, each asking again as soon as it may, a refused call too."""

    async def caller() -> None:
        while now() < until:
            permit = await gate.enter(role)
            gate.leave(permit, await server.call())

    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(caller())


def gate_of(**limits: object) -> Gate:
    return Gate("m", **{"max_in_flight": 64, **limits})  # type: ignore[arg-type]


@given(st.integers(1, 5000), st.lists(st.floats(0, 3), max_size=60))
def test_no_minute_of_a_pace_holds_more_than_its_limit(per_minute: int, idle: list[float]) -> None:
    pace, clock, sent = Pace(per_minute), 0.0, []
    for seconds in idle:
        clock += seconds
        for _ in range(50):
            clock += pace.wait(clock)
            pace.take(clock)
            sent.append(clock)
    for start in sent[:: max(1, len(sent) // 50)]:
        assert sum(start <= moment < start + 60 - 1e-6 for moment in sent) <= per_minute


def test_a_request_larger_than_the_bucket_goes_when_it_is_full_and_is_paid_for_afterwards() -> None:
    pace = Pace(600)
    assert pace.wait(0.0, 5000) == 0.0
    pace.take(0.0, 5000)
    assert pace.wait(0.0, 1) == pytest.approx((5000 - 12 + 1) / 9.8)


def test_an_estimate_that_was_too_high_is_given_back() -> None:
    pace = Pace(6000)
    pace.take(0.0, 4000)
    pace.correct(4000, 100)
    assert pace.wait(0.0, 20) == 0.0


def test_a_known_limit_is_kept_from_the_first_minute_on() -> None:
    async def main() -> Server:
        server = Server(per_minute=600)
        await keep_asking(gate_of(requests_per_minute=600), server, callers=64, until=180)
        return server

    server = run(main())
    assert not server.refused
    assert server.answered >= 0.95 * 3 * 600


@pytest.mark.parametrize("retry_after", [True, False])
def test_a_limit_that_nobody_told_is_learned_and_kept_full(retry_after: bool) -> None:
    async def main() -> tuple[Server, int, int]:
        server = Server(per_minute=600, retry_after=retry_after)
        gate = gate_of()
        await keep_asking(gate, server, callers=64, until=120)
        answered, refused = server.answered, len(server.refused)
        await keep_asking(gate, server, callers=64, until=720)
        return server, server.answered - answered, len(server.refused) - refused

    server, answered, refused = run(main())
    assert answered >= 0.95 * 10 * 600
    assert refused < 0.02 * (answered + refused)
    assert len(server.refused) < 200, "the first burst is one event, not a storm"


def test_a_server_that_takes_eight_at_once_is_held_at_eight() -> None:
    async def main() -> tuple[int, int]:
        server = Server(at_once=8)
        gate = gate_of()
        await keep_asking(gate, server, callers=64, until=20)
        answered, refused = server.answered, len(server.refused)
        await keep_asking(gate, server, callers=64, until=140)
        return server.answered - answered, len(server.refused) - refused

    answered, refused = run(main())
    assert answered >= 0.8 * 8 * 120 / 0.05
    assert refused < 0.02 * answered


def test_a_burst_of_refusals_cuts_once() -> None:
    async def main() -> int:
        gate = gate_of(base_pause_seconds=0.0)
        gate.in_flight.level = 64
        permits = [await gate.enter("judge") for _ in range(64)]
        await asyncio.sleep(0.1)
        for permit in reversed(permits):
            gate.leave(permit, Result("rate_limited"))
        return gate.in_flight.level

    assert run(main()) == 32


def test_a_limit_that_was_not_exercised_does_not_grow() -> None:
    async def main() -> int:
        gate = gate_of(max_in_flight=500)
        await keep_asking(gate, Server(), callers=4, until=120)
        return gate.in_flight.level

    assert run(main()) == 16


def test_a_limit_that_is_exercised_grows_to_the_cap() -> None:
    async def main() -> tuple[int, int]:
        gate, server = gate_of(max_in_flight=256), Server()
        await keep_asking(gate, server, callers=300, until=5)
        return gate.in_flight.level, server.most_at_once

    assert run(main()) == (256, 256)


def test_a_server_that_is_full_without_saying_so_is_not_flooded() -> None:
    async def main() -> tuple[int, Server]:
        gate, server = gate_of(max_in_flight=512), Server(slots=16, latency=0.2)
        await keep_asking(gate, server, callers=512, until=120)
        return gate.in_flight.level, server

    level, server = run(main())
    assert level <= 64, "twice its slots at most, after a try of twice that"
    assert server.answered >= 0.9 * 16 * 120 / 0.2


def test_a_server_that_grows_slow_is_given_less() -> None:
    async def main() -> tuple[int, int]:
        gate, server = gate_of(max_in_flight=64), Server(latency=0.1)
        await keep_asking(gate, server, callers=64, until=30)
        before = gate.in_flight.level
        server.slots = 4
        await keep_asking(gate, server, callers=64, until=120)
        return before, gate.in_flight.level

    before, after = run(main())
    assert before == 64 and after < 16


def test_a_pause_that_the_provider_asks_for_holds_everybody() -> None:
    async def main() -> float:
        gate = gate_of()
        permit = await gate.enter("judge")
        gate.leave(permit, Result("rate_limited", retry_after_seconds=17.0))
        await gate.enter("simulator")
        return now()

    assert run(main()) == pytest.approx(17.0)


def test_who_waits_is_told_what_the_last_failure_said() -> None:
    async def main() -> str | None:
        gate = gate_of(base_pause_seconds=5.0)
        for _ in range(BREAKER_FAILURES):
            permit = await gate.enter("judge")
            gate.leave(permit, Result("connection", "no connection to http://localhost:1/v1: " + "refused " * 40))
        return gate.describe()

    told = str(run(main()))
    assert "connection (no connection to http://localhost:1/v1: refused" in told
    assert "…), next try in" in told


def test_after_a_pause_one_call_goes_ahead_alone() -> None:
    async def main() -> list[float]:
        gate, entered = gate_of(), []

        async def one() -> None:
            permit = await gate.enter("judge")
            entered.append(now())
            await asyncio.sleep(1.0)
            gate.leave(permit, Result())

        gate.leave(await gate.enter("judge"), Result("rate_limited", retry_after_seconds=10.0))
        await asyncio.gather(*(one() for _ in range(5)))
        return entered

    assert run(main()) == pytest.approx([10.0, 11.0, 11.0, 11.0, 11.0])


def test_the_breaker_stops_a_storm_and_probes_until_the_server_is_back() -> None:
    calls: Counter[str] = Counter()

    def down(t: float) -> FailureKind | None:
        calls["during" if 10 <= t < 40 else "other"] += 1
        return "server" if 10 <= t < 40 else None

    async def main() -> float:
        gate, server = gate_of(max_in_flight=8), Server(down=down)
        await keep_asking(gate, server, callers=8, until=80)
        return gate.in_flight.level

    run(main())
    assert calls["during"] <= 8 + 4 + 8, "all in flight, those sent until the fifth failure, probes at 0.5, 1, 2, 4 … s"
    assert calls["other"] > 8 * 40 / 0.05 * 0.8, "it works on at full speed within the longest probe's wait"


def test_a_model_that_stays_away_is_given_up_with_a_sentence() -> None:
    async def main() -> float:
        gate, server = gate_of(outage_seconds=30.0), Server(down=lambda t: "connection")
        with pytest.raises(ExceptionGroup) as caught:
            await keep_asking(gate, server, callers=8, until=1000)
        assert all(isinstance(error, ModelUnavailable) for error in caught.value.exceptions)
        assert "answered nothing" in str(caught.value.exceptions[0])
        return now()

    assert run(main()) < 120


def test_one_good_answer_between_failures_keeps_the_breaker_closed() -> None:
    async def main() -> float:
        gate = gate_of()
        for number in range(100):
            gate.leave(await gate.enter("judge"), Result("server" if number % 3 else None))
        return now()

    assert run(main()) == 0.0


def test_a_slow_judge_does_not_starve_a_fast_simulator() -> None:
    async def main() -> Counter[str]:
        gate, answered = gate_of(max_in_flight=8), Counter[str]()

        async def caller(role: str, seconds: float) -> None:
            while now() < 100:
                permit = await gate.enter(role)
                await asyncio.sleep(seconds)
                gate.leave(permit, Result())
                answered[role] += 1

        async with asyncio.TaskGroup() as group:
            for _ in range(64):
                group.create_task(caller("judge", 10.0))
            for _ in range(8):
                group.create_task(caller("simulator", 0.1))
        return answered

    answered = run(main())
    assert answered["simulator"] > 2000, "half of the eight places, ten a second each, would be 4,000"
    assert answered["judge"] >= 30


def test_roles_that_wait_for_a_limit_a_minute_are_served_in_turn() -> None:
    async def main() -> Counter[str]:
        gate, answered = gate_of(requests_per_minute=60), Counter[str]()

        async def caller(role: str) -> None:
            while now() < 600:
                permit = await gate.enter(role)
                gate.leave(permit, Result())
                answered[role] += 1

        async with asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(caller("judge"))
            group.create_task(caller("simulator"))
        return answered

    answered = run(main())
    assert answered["simulator"] >= 0.8 * answered["judge"], "one caller against fifty"


def test_a_waiting_call_that_is_cancelled_takes_no_place() -> None:
    async def main() -> int:
        gate = gate_of(max_in_flight=1)
        first = await gate.enter("judge")
        waiting = [asyncio.create_task(gate.enter("judge")) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        gate.leave(first, Result())
        waiting[1].cancel()
        await asyncio.gather(*waiting[:2], return_exceptions=True)
        gate.leave(await waiting[2], Result())
        gate.leave(await gate.enter("judge"), Result())
        return gate._total

    assert run(main()) == 0


def test_headers_tell_a_limit_a_minute() -> None:
    headers = {
        "X-RateLimit-Limit-Requests": "600",
        "x-ratelimit-remaining-requests": "540",
        "x-ratelimit-reset-requests": "6s",
        "x-ratelimit-limit-tokens": "30000",
        "x-ratelimit-remaining-tokens": "29000",
        "x-ratelimit-reset-tokens": "2s",
    }
    quota = read_quota(headers, now=0.0)
    assert quota is not None and quota.requests is not None and quota.tokens is not None
    assert (quota.requests.per_minute, quota.tokens.per_minute) == (600, 30000)


def test_a_limit_a_day_is_not_taken_for_one_a_minute() -> None:
    headers = {
        "x-ratelimit-limit-requests": "14400",
        "x-ratelimit-remaining-requests": "14370",
        "x-ratelimit-reset-requests": "2m59.56s",
    }
    quota = read_quota(headers, now=0.0)
    assert quota is not None and quota.requests is not None
    assert quota.requests.per_minute is None
    assert quota.requests.reset_seconds == pytest.approx(179.56)


def test_a_reset_may_be_a_date() -> None:
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:30Z",
    }
    quota = read_quota(headers, now=1767225600.0)
    assert quota is not None and quota.pause_seconds() == pytest.approx(30.0)


@pytest.mark.parametrize("value", ["", "soon", "-", "1h2", "∞"])
def test_a_header_that_makes_no_sense_is_no_quota(value: str) -> None:
    headers = {
        "x-ratelimit-limit-requests": "10",
        "x-ratelimit-remaining-requests": "5",
        "x-ratelimit-reset-requests": value,
    }
    assert read_quota(headers, now=0.0) is None


def test_a_gate_keeps_to_the_limit_that_headers_tell() -> None:
    async def main() -> float:
        gate = gate_of()
        quota = read_quota(
            {
                "x-ratelimit-limit-requests": "60",
                "x-ratelimit-remaining-requests": "59",
                "x-ratelimit-reset-requests": "1s",
            },
            now=0.0,
        )
        for _ in range(11):
            gate.leave(await gate.enter("judge"), Result(quota=quota))
        return now()

    assert run(main()) == pytest.approx(9 * 60 / 58.8, rel=0.15)


def test_used_up_tokens_hold_calls_until_they_are_back() -> None:
    async def main() -> float:
        gate = gate_of()
        gate.leave(await gate.enter("judge"), Result(quota=Quota(tokens=_spent(9.0))))
        await gate.enter("judge")
        return now()

    assert run(main()) == pytest.approx(9.0)


def _spent(seconds: float) -> object:
    from tasks.foundation.llm.limits.rates import Allowance

    return Allowance(1000.0, 0.0, seconds)


def test_aliases_of_one_model_share_a_gate() -> None:
    gates = Gates()
    specs = [
        ModelSpec(alias=alias, provider="openai", name="m", family="f", max_in_flight=n)
        for alias, n in (("judge", 4), ("simulator", 9))
    ]
    first, second = (gates.of(spec, base_pause_seconds=1, outage_seconds=1) for spec in specs)
    assert first is second and first.in_flight.cap == 9


class Store:
    """A common store of a limit: grants blocks at the limit's speed, and counts them."""

    def __init__(self) -> None:
        self.granted = 0
        self.asked = 0
        self._free_at = 0.0

    async def acquire(self, name: str, per_minute: float, amount: int) -> None:
        self.asked += 1
        self._free_at = max(self._free_at, now()) + 60 * amount / per_minute
        await asyncio.sleep(self._free_at - now())
        self.granted += amount


def test_two_workers_that_share_one_limit_keep_to_it_together() -> None:
    async def main() -> tuple[Server, Store]:
        store, server = Store(), Server(per_minute=600)
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                gate = gate_of(requests_per_minute=600, shared=store)
                group.create_task(keep_asking(gate, server, callers=32, until=300))
        return server, store

    server, store = run(main())
    assert 0.9 * 5 * 600 <= server.answered <= store.granted
    assert len(server.refused) < 0.02 * server.answered
    assert store.asked < server.answered / 15, "in blocks, not one by one"


def test_a_store_that_cannot_be_asked_leaves_the_own_pace() -> None:
    class Broken:
        async def acquire(self, name: str, per_minute: float, amount: int) -> None:
            raise OSError("no server")

    async def main() -> int:
        server = Server()
        await keep_asking(gate_of(requests_per_minute=600, shared=Broken()), server, callers=8, until=60)
        return server.answered

    assert 0.9 * 600 <= run(main()) <= 600 + 8, "eight were waiting when the minute was over"
