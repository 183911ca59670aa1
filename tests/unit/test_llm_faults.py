"""Whole stage runs against a server that misbehaves by script: nothing lost or paid twice, no stall, no key shown."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tasks.foundation.errors import ColloquyError, ModelUnavailable, StoreError, TooManyFailures
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.run.context import Workspace
from tasks.foundation.run.files import RunFiles
from tasks.foundation.store.commits import Commit
from tasks.foundation.store.layout import Layout
from tests.fakes.http import HttpFake, completion, cutting, reset
from tests.many_rows.task import STAGE
from tests.whole_stage import run_whole

ROWS = 60
KEY = "sk-proj-TheKeyThatNobodyMaySee"
HANG_SECONDS = 30.0

Trouble = Callable[[web.Request], Any]


def error(status: int, message: str, code: str = "", **headers: str) -> web.Response:
    body = {"error": {"message": f"{message} (key {KEY})", "type": code, "code": code}}
    return web.json_response(body, status=status, headers=headers)


async def hang(request: web.Request) -> web.Response:
    await asyncio.sleep(HANG_SECONDS)
    return error(500, "too late")


async def half_a_json(request: web.Request) -> web.Response:
    return web.Response(text='{"choices": [{"message": {"content": "ab', content_type="application/json")


TROUBLES: dict[str, Trouble] = {
    "429": lambda request: error(429, "slow down", "rate_limit_exceeded"),
    "429 with Retry-After": lambda request: error(429, "slow down", "rate_limit_exceeded", **{"Retry-After": "0.1"}),
    "500": lambda request: error(500, "oops", "server_error"),
    "503": lambda request: error(503, "overloaded", "overloaded"),
    "hang": hang,
    "reset": reset,
    "cut in the body": cutting(b'{"choices": [{"message": {"content": "'),
    "half a JSON": half_a_json,
    "200 with an error": lambda request: web.json_response({"error": {"code": 429, "message": f"slow down {KEY}"}}),
    "200 with a server error": lambda request: web.json_response({"error": {"code": 502, "message": "bad gateway"}}),
    "an HTML page": lambda request: web.Response(text="<html>Bad gateway</html>", status=502, content_type="text/html"),
    "expired key": lambda request: error(401, f"Incorrect API key provided: {KEY}", "invalid_api_key"),
    "wrong model": lambda request: error(404, "The model `m` does not exist", "model_not_found"),
}


class Server(HttpFake):
    """Answers rows; `script` names the trouble for the call of a number (from 0), None answers it after `seconds`."""

    def __init__(self) -> None:
        super().__init__(self.complete)
        self.script: Callable[[int], str | None] = lambda number: None
        self.seconds = 0.0
        self.troubles: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()

    @property
    def calls(self) -> int:
        return len(self.bodies)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        row = self.bodies[-1]["messages"][-1]["content"]
        if trouble := self.script(self.calls - 1):
            self.troubles[trouble] += 1
            response = TROUBLES[trouble](request)
            return await response if asyncio.iscoroutine(response) else response
        await asyncio.sleep(self.seconds)
        self.answered[row] += 1
        text = json.dumps({"topic": "about it"})
        return web.json_response(completion(text, prompt_tokens=9, completion_tokens=4))


def storm(trouble: str, *, after: int = 20, seconds: float = 0.3) -> Callable[[int], str | None]:
    """From the call of this number on, for so long, there is nothing but this trouble."""
    ends_at: list[float] = []

    def script(number: int) -> str | None:
        now = asyncio.get_running_loop().time()
        if number >= after and not ends_at:
            ends_at.append(now + seconds)
        return trouble if ends_at and now < ends_at[0] else None

    return script


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    async with server.running():
        yield server


@pytest.fixture
def workspace_of(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Workspace]:
    monkeypatch.setenv("COLLOQUY_BENCH_ROWS", str(ROWS))
    monkeypatch.setenv("FAULTY_API_KEY", KEY)

    def make(*overrides: str, **changes: Any) -> Workspace:
        settings = (
            "curation.shard_rows=20",
            "llm.retry_base_seconds=0.02",
            "llm.outage_seconds=8",
            "run.rows_in_flight=8",
            *overrides,
        )
        workspace = Workspace.open("test", settings, Layout(tmp_path / "artifacts"))
        spec = ModelSpec(
            alias="scripted-a",
            provider="openai",
            name="m",
            family="a",
            base_url=f"{server.url}/v1",
            api_key_env="FAULTY_API_KEY",
            max_in_flight=16,
            timeout_seconds=10.0,
            prices={"input_per_million": 1, "output_per_million": 2},
        )
        workspace.models = {**workspace.models, "scripted-a": replace(spec, **changes)}
        return workspace

    return make


async def run(workspace: Workspace) -> Commit:
    return await run_whole(STAGE, workspace)


def nothing_lost_and_nothing_paid_twice(server: Server, commit: Commit) -> None:
    assert len(server.answered) == ROWS and set(server.answered.values()) == {1}
    accounting = commit.accounting
    assert (accounting.n_in, accounting.n_produced, accounting.n_failed) == (ROWS, ROWS, 0)
    assert not commit.partial
    assert commit.usage["prompt_tokens"] == 9 * ROWS
    assert commit.usage["calls"] <= server.calls


@pytest.mark.parametrize("trouble", sorted(set(TROUBLES) - {"hang", "expired key", "wrong model"}))
async def test_a_storm_in_the_middle_of_a_run_costs_no_row(server: Server, workspace_of: Any, trouble: str) -> None:
    server.script = storm(trouble)
    commit = await run(workspace_of())
    nothing_lost_and_nothing_paid_twice(server, commit)
    assert server.troubles[trouble] >= 1


async def test_calls_that_hang_are_given_up_and_asked_again(server: Server, workspace_of: Any) -> None:
    server.script = lambda number: "hang" if number % 10 == 3 else None
    commit = await run(workspace_of(timeout_seconds=2.0))
    nothing_lost_and_nothing_paid_twice(server, commit)
    assert server.troubles["hang"] >= ROWS // 10


async def test_all_troubles_at_once_cost_no_row(server: Server, workspace_of: Any) -> None:
    passing = sorted(set(TROUBLES) - {"hang", "expired key", "wrong model"})
    server.script = lambda number: passing[number // 3 % len(passing)] if number % 3 == 1 else None
    commit = await run(workspace_of())
    nothing_lost_and_nothing_paid_twice(server, commit)
    assert set(server.troubles) == set(passing)


@pytest.mark.parametrize("trouble", ["expired key", "wrong model"])
async def test_a_key_that_expires_and_a_model_that_goes_stop_the_run_which_goes_on_later(
    server: Server, workspace_of: Any, trouble: str
) -> None:
    server.script = lambda number: trouble if number >= 30 else None
    with pytest.raises(ModelUnavailable) as caught:
        await run(workspace_of())
    assert KEY not in str(caught.value)
    assert server.troubles[trouble] <= 24, "one call for each row under way at most"
    server.script = lambda number: None
    nothing_lost_and_nothing_paid_twice(server, await run(workspace_of()))


@pytest.mark.parametrize("trouble", ["expired key", "500"])
async def test_answers_under_way_when_a_run_stops_are_kept(server: Server, workspace_of: Any, trouble: str) -> None:
    server.seconds = 0.5
    server.script = lambda number: trouble if number >= 20 else None
    strict = ("llm.retry_attempts=1", "llm.salvage_rounds=0", "curation.max_failure_rate=0.01")
    with pytest.raises((ModelUnavailable, TooManyFailures)):
        await run(workspace_of(*strict))
    assert 12 < server.calls < ROWS and sum(server.answered.values()) >= 16
    server.seconds, server.script = 0.0, lambda number: None
    nothing_lost_and_nothing_paid_twice(server, await run(workspace_of()))


async def test_answers_under_way_when_the_disk_fills_are_kept(
    server: Server, workspace_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.seconds = 0.4

    def full(*arguments: Any) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch, pytest.raises(StoreError):
        patch.setattr(RunFiles, "write_shard", full)
        await run(workspace_of("curation.shard_rows=8", "run.rows_in_flight=4"))
    server.seconds = 0.0
    nothing_lost_and_nothing_paid_twice(server, await run(workspace_of("curation.shard_rows=8")))


async def test_answers_under_way_when_a_user_interrupts_are_kept(server: Server, workspace_of: Any) -> None:
    server.seconds, asked = 0.4, asyncio.Event()

    def script(number: int) -> None:
        if number == 20:
            asked.set()

    server.script = script
    running = asyncio.create_task(run(workspace_of()))
    await asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(server.answered) < ROWS
    server.seconds, server.script = 0.0, lambda number: None
    nothing_lost_and_nothing_paid_twice(server, await run(workspace_of()))


async def test_failures_that_come_sooner_than_answers_do_not_stop_a_stage(server: Server, workspace_of: Any) -> None:
    server.seconds = 0.4
    server.script = lambda number: "500" if number % 4 == 0 else None
    commit = await run(workspace_of("llm.retry_attempts=1", "llm.salvage_rounds=0", "run.rows_in_flight=20"))
    assert 0 < commit.accounting.n_failed < ROWS / 2


async def test_an_outage_stops_the_run_and_rows_answered_before_it_are_kept(server: Server, workspace_of: Any) -> None:
    server.script = lambda number: "503" if number >= 30 else None
    with pytest.raises(ModelUnavailable, match="answered nothing"):
        await run(workspace_of("llm.outage_seconds=0.3", "llm.retry_attempts=50"))
    assert len(server.answered) == 30
    server.script = lambda number: None
    nothing_lost_and_nothing_paid_twice(server, await run(workspace_of()))


async def test_rows_that_fail_for_good_are_rejects_with_their_reason(server: Server, workspace_of: Any) -> None:
    workspace = workspace_of("llm.retry_attempts=1", "llm.salvage_rounds=0")
    server.script = lambda number: "500" if number % 4 == 0 else None
    commit = await run(workspace)
    failed = commit.accounting.n_failed
    assert 0 < failed < ROWS / 2 and commit.partial
    assert commit.accounting.n_produced == len(server.answered) == ROWS - failed
    server.script = lambda number: None
    again = await run(workspace_of())
    assert len(server.answered) == ROWS and set(server.answered.values()) == {1}
    assert not again.partial and again.accounting.n_produced == ROWS


async def test_a_server_that_refuses_everything_stops_before_all_rows_were_tried(
    server: Server, workspace_of: Any
) -> None:
    server.script = lambda number: "500"
    with pytest.raises((TooManyFailures, ModelUnavailable)):
        await run(workspace_of("llm.retry_attempts=1", "llm.outage_seconds=0.2"))
    assert server.calls < ROWS


async def test_no_trouble_shows_the_key_anywhere(
    server: Server, workspace_of: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    said = []
    for trouble in sorted(set(TROUBLES) - {"hang"}):
        server.script = lambda number, trouble=trouble: trouble  # type: ignore[misc]
        try:
            await run(workspace_of("llm.retry_attempts=1", "llm.outage_seconds=0.1", "curation.max_failure_rate=1"))
        except ColloquyError as caught:
            said += [str(caught), repr(caught), repr(caught.__cause__), repr(caught.__context__)]
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert said and written
    everything = "\n".join([*said, caplog.text]).encode() + written
    assert KEY.encode() not in everything
    assert KEY[8:].encode() not in everything
