"""One flow a stage, each deployable and runnable alone: made from the stages' declarations, found here by their names
(`flows.stages:personas`). See prefect.yaml and `colloquy run --only`."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from prefect import Flow, State, flow

from flows import chain
from flows.chain.options import RunOptions
from flows.chain.results import StageResult
from flows.stage_flow import run_stage
from tasks.foundation.stage import Stage

DEFAULTS = RunOptions()

Ended = list[StageResult] | State[list[StageResult]]
StageFlow = Flow[[RunOptions], Coroutine[Any, Any, Ended]]


def make_flow(stage: Stage) -> StageFlow:
    """The flow of a stage, as a function of this module that has its name."""

    async def run(options: RunOptions = DEFAULTS) -> Ended:
        return await run_stage(stage.name, options)

    run.__name__ = run.__qualname__ = stage.name
    run.__doc__ = stage.doc
    return flow(flow_run_name=f"{{options.build}} {stage.name}", persist_result=False, log_prints=False)(run)


FLOWS: dict[str, StageFlow] = {stage.name: make_flow(stage) for stage in chain.chain()}

globals().update(FLOWS)
