"""Stages from their opening to their commit without Prefect; `python -m tests.whole_stage run …` is the whole chain."""

from __future__ import annotations

import asyncio
import sys
from itertools import pairwise

from tasks.foundation.run.context import Workspace
from tasks.foundation.run.shards import first_error
from tasks.foundation.run.stage_run import StageRun
from tasks.foundation.stage import Stage
from tasks.foundation.store.commits import Commit


async def run_whole(stage: Stage, workspace: Workspace, build: str = "b1", *, shards_at_once: int = 64) -> Commit:
    """The stage's commit; the workspace is closed, also after a failure."""
    try:
        with StageRun.open(stage, workspace, build, ends_chain=True) as run:
            return await bring_up_to_date(run, shards_at_once)
    finally:
        workspace.close()


async def bring_up_to_date(run: StageRun, shards_at_once: int) -> Commit:
    """The three steps, as a flow does them."""
    places = asyncio.Semaphore(shards_at_once)

    async def in_turn(shard: int) -> None:
        async with places:
            await run.work(shard)

    try:
        run.prepare()
        shards = run.shards
        while shards:
            async with asyncio.TaskGroup() as group:
                for shard in shards:
                    group.create_task(in_turn(shard))
            shards = run.draw_on()
        return run.commit()
    except BaseExceptionGroup as several:
        raise first_error(several) from None
    finally:
        await run.close()


async def run_chain(arguments: list[str]) -> None:
    """What of the chain is not up to date, of arguments as `colloquy run` has them: --profile, --build, --set."""
    from flows import chain
    from flows.chain.options import RunOptions

    given = list(pairwise(arguments))
    (profile,) = [value for name, value in given if name == "--profile"]
    settings = [value for name, value in given if name == "--set"]
    build = next((value for name, value in given if name == "--build"), "main")
    workspace = chain.open_workspace(RunOptions(profile=profile, set=settings))
    benchmark = workspace.settings.run.benchmark
    for stage in (stage for stage in map(chain.stage, chain.names()) if stage.serves(benchmark)):
        for member in stage.members(workspace.settings):
            last = chain.ends_chain(stage.name)
            with StageRun.open(stage, workspace, build, member, ends_chain=last) as run:
                if not run.up_to_date:
                    await bring_up_to_date(run, workspace.settings.run.concurrent_shards)
    workspace.close()


if __name__ == "__main__":
    asyncio.run(run_chain(sys.argv[1:]))
