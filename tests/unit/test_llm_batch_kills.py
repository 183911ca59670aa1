"""Batch mode under kills and beside other processes: no request is paid for twice, and no reply is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.batch import BatchApi
from tasks.foundation.llm.batch.transport import make_batch_api
from tasks.foundation.llm.models import ModelSpec
from tests.fakes.batch_servers import KEY, BatchServer, OpenAIServer, serving
from tests.unit.batch_runs import (
    Score,
    ask_all,
    engine_in,
    only_openai,
    run,
    server,
    spec,
    spec_of,
    stopped_run,
    values,
)

__all__ = ["server", "spec"]  # fixtures

ROOT = Path(__file__).resolve().parents[2]


class Stuck:
    """A batch API whose `create` never comes back, before or after the provider has made the job."""

    def __init__(self, api: BatchApi, *, created: bool) -> None:
        self.api = api
        self.created = created
        self.reached = asyncio.Event()
        self.release = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.api, name)

    async def create(self, file: str, tag: str, model: str) -> str:
        job_id = await self.api.create(file, tag, model) if self.created else ""
        self.reached.set()
        await self.release.wait()
        return job_id or await self.api.create(file, tag, model)


async def run_stuck_in_creation(folder: Path, spec: ModelSpec, *, created: bool) -> None:
    """A run that ends while its job is being created, leaving only what it had on disk."""
    stuck: list[Stuck] = []

    def apis(spec: ModelSpec) -> Any:
        stuck.append(Stuck(make_batch_api(spec), created=created))
        return stuck[0]

    async with engine_in(folder, spec, apis=apis, requests_per_job=4) as engine:
        task = asyncio.create_task(ask_all(engine, range(4)))
        while not stuck:
            await asyncio.sleep(0)
        await stuck[0].reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@only_openai
async def test_a_job_that_was_intended_but_never_created_is_sent_by_the_next_run(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    await run_stuck_in_creation(tmp_path, spec, created=False)
    assert server.sizes == []
    assert all(isinstance(value, Score) for value in values(await run(tmp_path, spec)))
    assert server.sizes == [4] and not server.paid_twice


async def test_a_job_that_was_created_but_not_noted_is_found_by_the_next_run(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    await run_stuck_in_creation(tmp_path, spec, created=True)
    assert server.sizes == [4]
    assert all(isinstance(value, Score) for value in values(await run(tmp_path, spec)))
    assert server.sizes == [4] and not server.paid_twice


@pytest.mark.parametrize("moment", ["creation", "polling"])
async def test_a_process_killed_by_the_kernel_pays_for_nothing_twice(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", KEY)
    async with serving(OpenAIServer(polls=10**9)) as server:
        arguments = ["-m", "tests.unit.batch_child", str(tmp_path), server.url, "4"]
        child = await asyncio.create_subprocess_exec(sys.executable, *arguments, cwd=ROOT)
        if moment == "creation":  # the job is made, and its process dies before it hears of it
            server.on_created = lambda: os.kill(child.pid, signal.SIGKILL)
        else:
            while server.polled < 2:
                await asyncio.sleep(0.01)
            child.kill()
        assert await child.wait() == -signal.SIGKILL
        server.jobs["job-0"]["polls"], server.polls = 1, 1
        server.on_created = lambda: None
        outcomes = await run(tmp_path, spec_of(server), range(5))
        assert all(isinstance(value, Score) for value in values(outcomes))
        assert sorted(server.sizes) == [1, 4] and not server.paid_twice
        assert list((tmp_path / "batches").iterdir()) == []


@only_openai
async def test_two_runs_at_once_send_each_request_once_and_both_get_all_replies(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    server.ending = lambda message, asked: "failed 500" if message.endswith("3") and not asked else "answered"
    first, second = await asyncio.gather(run(tmp_path, spec, range(8)), run(tmp_path, spec, range(4, 12)))
    assert all(isinstance(value, Score) for value in values([*first, *second]))
    assert values(first)[4:] == values(second)[:4]
    assert len(server.charged) == 12 and not server.paid_twice


@only_openai
async def test_a_job_that_another_process_is_just_creating_is_waited_for(
    server: BatchServer, spec: ModelSpec, tmp_path: Path
) -> None:
    stuck: list[Stuck] = []

    def apis(spec: ModelSpec) -> Any:
        stuck.append(Stuck(make_batch_api(spec), created=False))
        return stuck[0]

    first = asyncio.create_task(run(tmp_path, spec, apis=apis))
    while not stuck:
        await asyncio.sleep(0)
    await stuck[0].reached.wait()
    second = asyncio.create_task(run(tmp_path, spec))
    await asyncio.sleep(0.1)
    assert not second.done() and server.sizes == []
    stuck[0].release.set()
    assert values(await first) == values(await second)
    assert server.sizes == [4] and not server.paid_twice


@only_openai
async def test_replies_that_land_while_nobody_waits_for_them_serve_a_later_run_without_the_provider(
    server: BatchServer, spec: ModelSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stopped_run(tmp_path, server, spec)
    async with engine_in(tmp_path, spec, requests_per_job=1) as engine:
        await ask_all(engine, range(100, 101))
        while "ended" not in server.jobs["job-0"]:
            await asyncio.sleep(0.005)
        await ask_all(engine, range(101, 102))
    asked = server.polled, len(server.jobs)
    assert all(isinstance(value, Score) for value in values(await run(tmp_path, spec)))
    assert (server.polled, len(server.jobs)) == asked and not server.paid_twice


@only_openai
async def test_a_job_is_asked_after_with_the_key_that_submitted_it(
    server: BatchServer, spec: ModelSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stopped_run(tmp_path, server, spec)
    other = replace(spec, api_key_env="OTHER_KEY")
    monkeypatch.setenv("OTHER_KEY", KEY)
    monkeypatch.delenv("STUB_KEY")
    with pytest.raises(ModelUnavailable, match="STUB_KEY, which is not set"):
        await run(tmp_path, other)
    monkeypatch.setenv("STUB_KEY", KEY)
    assert all(isinstance(value, Score) for value in values(await run(tmp_path, other)))
    assert server.sizes == [4]
