"""Workers that share a model's limits through a real Prefect server."""

from __future__ import annotations

import asyncio

import pytest
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.shared_limits import PrefectLimits, limit_name
from tasks.foundation.llm.limits.gate import Gate, Result
from tests.flow.conftest import PrefectServer

pytestmark = pytest.mark.flow


async def test_two_workers_draw_on_one_limit_and_ask_the_server_for_blocks(prefect_server: PrefectServer) -> None:
    gates = [Gate("Org/model", max_in_flight=8, requests_per_minute=6000, shared=PrefectLimits()) for _ in range(2)]

    async def ask(gate: Gate, calls: int) -> None:
        for _ in range(calls):
            gate.leave(await gate.enter("judge"), Result())

    with temporary_settings({PREFECT_API_URL: prefect_server.api}):
        await asyncio.gather(*(ask(gate, 150) for gate in gates))
        async with get_client() as client:
            limit = await client.read_global_concurrency_limit_by_name(limit_name("Org/model/requests"))
    assert limit.limit == 200, "a block: two seconds' worth"
    assert limit.slot_decay_per_second == pytest.approx((6000 - 200) / 60)


async def test_a_block_that_is_not_there_yet_is_waited_for(prefect_server: PrefectServer) -> None:
    with temporary_settings({PREFECT_API_URL: prefect_server.api}):
        limits = PrefectLimits()
        for _ in range(3):
            await limits.acquire("scarce/requests", 600, 2)
        async with get_client() as client:
            limit = await client.read_global_concurrency_limit_by_name(limit_name("scarce/requests"))
    assert limit.active_slots <= 2


async def test_a_server_that_is_gone_leaves_each_worker_its_own_pace(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate("m", max_in_flight=8, requests_per_minute=600, shared=PrefectLimits())
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        gate.leave(await gate.enter("judge"), Result())
    assert "this process keeps to the limit alone" in caplog.text
