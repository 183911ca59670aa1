"""How one stage runs under Prefect: open it, prepare, one task a shard, commit, say what came out.

Our commits decide what is done, so Prefect caches and stores nothing: a retry of a failed run starts at the
top and passes over finished shards. Tasks get plain values; the open stage run is looked up in this process.

A run ends well, or `Partial`, where rows were lost. Where a repetition may bring them, that is of Prefect's type
Failed: it stands among the failures, and the retries of a deployment redo just those rows. Where it would not, it is of
type Completed: nothing is left to do.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from prefect import State, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import StateType
from prefect.events import emit_event

from flows import chain
from flows.chain.options import RunOptions
from flows.chain.results import OBSERVERS, StageResult, result_of
from flows.identity import settled_run, signature
from flows.prefect_artifacts import post_progress, post_result
from flows.server.environment import OUR_LOGGERS, spare_loopback
from flows.shared_limits import PrefectLimits
from tasks.foundation.errors import ConfigError, StoreError
from tasks.foundation.llm.limits.gate import gates_of_process
from tasks.foundation.run.context import Workspace
from tasks.foundation.run.shards import first_error
from tasks.foundation.run.stage_run import StageRun
from tasks.foundation.store.commits import Commit, read_commit
from tasks.foundation.store.locks import signing

T = TypeVar("T")

PARTIAL = "Partial"
EVENT = "colloquy.stage.partial"

_OPEN: dict[tuple[str, str], StageRun] = {}
"""Stage runs of this process by build and name: what its tasks work on."""


def open_stages() -> int:
    """How many stages this process has open: their locks held, their answers perhaps under way."""
    return len(_OPEN)


async def run_stage(name: str, options: RunOptions) -> list[StageResult] | State[list[StageResult]]:
    """Bring one stage of a build up to date; one result, or one a member where the stage fans out, and `Partial` where
    it lost rows.

    Raises a ColloquyError that says what is wrong and what to do.
    """
    options = await settled_run(options, name)
    build = options.build
    log_what_is_said()
    spare_loopback()  # of a worker that was started by hand
    workspace = await _off_loop(lambda: chain.open_workspace(options))
    if name not in chain.evaluation() and chain.is_released(workspace.layout, build):
        raise ConfigError(f"build {build} holds a released benchmark, which is not made again; {name} would")
    try:
        members = chain.stage(name).members(workspace.settings)
        return ending([await _run_member(name, member, build, workspace, options.force) for member in members])
    finally:
        workspace.close()


def log_what_is_said() -> None:
    """Prefect's settings name our loggers, so that their lines go to the log of a run; the level is ours to set."""
    for name in OUR_LOGGERS:
        logging.getLogger(name).setLevel(logging.INFO)


async def _run_member(name: str, member: str | None, build: str, workspace: Workspace, force: bool) -> StageResult:
    started = time.monotonic()
    stage, last = chain.stage(name), chain.ends_chain(name)
    with signing(signature()):
        run = await _off_loop(lambda: StageRun.open(stage, workspace, build, member, force=force, ends_chain=last))
    if workspace.settings.llm.share_limits:
        gates_of_process().share(PrefectLimits())
    with _opened(run):
        await _bring_up_to_date(run)
    commit = _commit_of(run)
    result = result_of(commit, run.decision, run.progress, time.monotonic() - started)
    for observer in OBSERVERS:
        observer.finished(result)
    announce(result)
    await post_result(result, commit)
    return result


async def _bring_up_to_date(run: StageRun) -> None:
    if run.up_to_date:
        return
    try:
        async with post_progress(run):
            await prepare(run.build, run.name)
            _set_imports_aside()
            shards: Sequence[int] = run.shards
            while shards:
                await _work_on_all(run, shards)
                shards = () if run.closed else await draw_on(run.build, run.name)
            await commit(run.build, run.name)
    finally:
        await run.close()


@cache
def _set_imports_aside() -> None:
    """Once a process, when a stage has imported what it needs: looking for garbage in all that takes a tenth of the
    time of a request, and there is none."""
    gc.collect()
    gc.freeze()


@task(task_run_name="prepare", cache_policy=NO_CACHE, persist_result=False)
async def prepare(build: str, name: str) -> int:
    """The stage's first step and its shard plan; returns the number of shards."""
    run = _run_of(build, name)
    await _off_loop(run.prepare)
    return len(run.shards)


@task(task_run_name="shard {shard:05d}", cache_policy=NO_CACHE, persist_result=False)
async def work(build: str, name: str, shard: int) -> dict[str, int]:
    """The rows of one shard; returns how many there are, produced and failed."""
    return await _run_of(build, name).work(shard)


@task(task_run_name="draw on", cache_policy=NO_CACHE, persist_result=False)
async def draw_on(build: str, name: str) -> list[int]:
    """The stage's next round, of a stage that has rounds; returns its shards, none where there are enough items."""
    return list(await _off_loop(_run_of(build, name).draw_on))


@task(task_run_name="commit", cache_policy=NO_CACHE, persist_result=False)
async def commit(build: str, name: str) -> dict[str, int]:
    """The stage's last step, and the rename that makes its rows visible; returns the rows of each table."""
    made = await _off_loop(_run_of(build, name).commit)
    return {table: made.rows(table) for table in made.tables}


async def _work_on_all(run: StageRun, shards: Sequence[int]) -> None:
    """Every shard of a round, `run.concurrent_shards` at a time; the first failure stops the others."""
    places = asyncio.Semaphore(run.workspace.settings.run.concurrent_shards)

    async def in_turn(shard: int) -> None:
        async with places:
            await work(run.build, run.name, shard)

    try:
        async with asyncio.TaskGroup() as group:
            for shard in shards:
                group.create_task(in_turn(shard))
    except BaseExceptionGroup as several:
        raise first_error(several) from None


@contextmanager
def _opened(run: StageRun) -> Iterator[None]:
    """The run is found by its tasks, seen by the observers, and frees its lock at the end."""
    key = (run.build, run.name)
    run.progress.watchers.extend(observer.changed for observer in OBSERVERS)
    with run:
        _OPEN[key] = run
        try:
            yield
        finally:
            del _OPEN[key]


def _commit_of(run: StageRun) -> Commit:
    found = read_commit(run.workspace.layout, run.build, run.name)
    assert found is not None, "a stage that has run has a commit"
    return found


def _run_of(build: str, name: str) -> StageRun:
    try:
        return _OPEN[build, name]
    except KeyError:
        raise StoreError(
            f"stage {name} of build {build} is not open in this process: its tasks run only within its flow"
        ) from None


async def _off_loop(function: Callable[[], T]) -> T:
    """The function's result, from a thread. When cancelled it waits for the function's end before it says so:
    the lock must be held for as long as anything is written."""
    job = asyncio.create_task(asyncio.to_thread(function))
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        await asyncio.wait([job])
        raise


def ending(results: Sequence[StageResult]) -> list[StageResult] | State[list[StageResult]]:
    """What a flow returns: its results, or the state `Partial` with them where rows failed."""
    lost = [result for result in results if result.n_failed]
    if not lost:
        return list(results)
    redone = any(result.partial for result in lost)
    told = "; ".join(losses(result) for result in lost)
    get_run_logger().warning("Partial: %s", told)
    return State(
        type=StateType.FAILED if redone else StateType.COMPLETED,
        name=PARTIAL,
        message=f"{told}." + (" A retry redoes the rows whose failure may pass." if redone else ""),
        data=list(results),
    )


def losses(result: StageResult) -> str:
    """`voting: 4 of 32 rows failed, some in a way that may pass`."""
    why = "some in a way that may pass" if result.partial else "for good"
    return f"{result.stage}: {result.n_failed:,} of {result.n_in:,} rows failed, {why}"


def announce(result: StageResult) -> None:
    """An event for automations, where a stage has lost rows."""
    if result.n_failed:
        emit_event(
            EVENT,
            resource={
                "prefect.resource.id": f"colloquy.stage.{result.build}.{result.stage}",
                "prefect.resource.name": f"{result.stage} of {result.build}",
                "colloquy.build": result.build,
                "colloquy.stage": result.stage,
                "colloquy.may-pass": str(result.partial).lower(),
            },
            payload={"n_in": result.n_in, "n_failed": result.n_failed, "may_pass": result.partial},
        )


async def results_of(flow: Callable[..., Any], options: Any) -> list[StageResult]:
    """What a flow brings, also where rows were lost. Raises what it raises."""
    state: State[Any] = await flow(options, return_state=True)
    found = await state.aresult(raise_on_failure=False)
    if isinstance(found, BaseException):
        raise found
    results: list[StageResult] = found
    return results
