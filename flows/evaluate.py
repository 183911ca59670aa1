"""One more model on a benchmark that is there: the evaluation stages for one target, judging included."""

from __future__ import annotations

import asyncio
import json
from datetime import date
from typing import Literal

from prefect import flow
from pydantic import Field

from flows.options import RebuildOptions
from flows.preflight import look_ahead
from flows.results import StageResult
from flows.stages import FLOWS

DEMO_STAGES = ("awareness", "interaction")
EYT_STAGES = ("conversation",)
SCORING_STAGES = ("judging", "metrics")


class EvaluateOptions(RebuildOptions):
    """Options of an evaluation. `benchmark` leaves one half out; None: whatever the build holds items of."""

    target: str = Field(default="", description="alias of the model under test")
    benchmark: Literal["demo", "eyt"] | None = Field(default=None, description="only this benchmark")

    @property
    def overrides(self) -> tuple[str, ...]:
        """The target is the only one to run; the commits of other targets stay."""
        targets = json.dumps([self.target])
        return (*super().overrides, *(f"{stage}.targets={targets}" for stage in (*DEMO_STAGES, *EYT_STAGES)))

    def stages(self) -> tuple[str, ...]:
        """The stages to run, in order."""
        demo = () if self.benchmark == "eyt" else DEMO_STAGES
        eyt = () if self.benchmark == "demo" else EYT_STAGES
        return (*demo, *eyt, *SCORING_STAGES)


DEFAULTS = EvaluateOptions()


@flow(flow_run_name="{options.target} on {options.build}", persist_result=False, log_prints=False)
async def evaluate(options: EvaluateOptions = DEFAULTS) -> list[StageResult]:
    """Frozen items and seeds → one target's scores, beside those of the targets that are there."""
    build = options.build_on(date.today())
    await asyncio.to_thread(look_ahead, options, options.stages(), build)
    results: list[StageResult] = []
    for name in options.stages():
        stage_options = options.of(build=build, force=options.force)
        results += await FLOWS[name](stage_options.model_copy(update={"set": list(options.overrides)}))
    return results
