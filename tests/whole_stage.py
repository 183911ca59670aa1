"""A stage from its opening to its commit without Prefect, all its shards at once."""

from __future__ import annotations

import asyncio

from tasks.foundation.run.context import Workspace
from tasks.foundation.run.shards import first_error
from tasks.foundation.run.stage_run import StageRun
from tasks.foundation.stage import Stage
from tasks.foundation.store.commits import Commit


async def run_whole(stage: Stage, workspace: Workspace, build: str = "b1", *, shards_at_once: int = 64) -> Commit:
    """The stage's commit; the workspace is closed, also after a failure."""
    places = asyncio.Semaphore(shards_at_once)
    with StageRun.open(stage, workspace, build, ends_chain=True) as run:

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
            workspace.close()
