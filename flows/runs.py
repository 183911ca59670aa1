"""The flows that run several stages, one after another, each as a subflow of its own: the whole chain or a part of it,
and the evaluation of one more model on a benchmark that is there.

A stage that is up to date is passed over; a stage after one that made new rows runs because its inputs
differ. A retry starts at the top and finds what is done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from prefect import flow

from flows import builds, chain
from flows.chain.options import BuildOptions, EvaluateOptions, RebuildOptions, ReportOptions, RunOptions
from flows.chain.results import StageResult
from flows.chain.status import look_ahead
from flows.identity import settled_run
from flows.stage_flow import ending, log_what_is_said, results_of
from flows.stages import FLOWS, Ended
from tasks.foundation.errors import ConfigError
from tasks.foundation.store.layout import Layout

REBUILD, EVALUATE = RebuildOptions(), EvaluateOptions()
log = logging.getLogger(__name__)


@flow(flow_run_name="{options.build} rebuild", persist_result=False, log_prints=False)
async def rebuild(options: RebuildOptions = REBUILD) -> Ended:
    """Source files → a voted benchmark (personas to curation) → both evaluations (chatseeds to metrics)."""
    settled = await settled_run(options, "rebuild")
    stages = await asyncio.to_thread(chain.selected, settled)
    await asyncio.to_thread(look_ahead, settled, stages, settled.build)
    given = "".join(f" --set {each}" for each in settled.remembered)
    results = await _run_all(settled, stages, f"build {settled.build}, profile {settled.profile}{given}")
    if settled.report:
        await builds.report(ReportOptions(build=settled.build))
    if settled.check:
        await builds.check(BuildOptions(build=settled.build))
    return ending(results)


@flow(flow_run_name="{options.build} evaluate {options.target}", persist_result=False, log_prints=False)
async def evaluate(options: EvaluateOptions = EVALUATE) -> Ended:
    """Frozen items and seeds → one target's scores, beside those of the targets that are there."""
    if options.target is None:
        raise ConfigError("expected the alias of a model as `target`, found none")
    settled = await settled_run(options, f"evaluate {options.target}")
    if settled.benchmark is None:
        held = await asyncio.to_thread(chain.benchmark_of, Layout.default(), settled.build)
        settled = settled.model_copy(update={"benchmark": held})
    await asyncio.to_thread(look_ahead, settled, settled.stages(), settled.build)
    what = f"{settled.target} on build {settled.build}, profile {settled.profile}"
    return ending(await _run_all(settled, settled.stages(), what))


async def _run_all(options: RunOptions, stages: Sequence[str], what: str) -> list[StageResult]:
    """The results of these stages, run in order under the options; `what` is said in the log first."""
    log_what_is_said()
    log.info("%s", what)
    results: list[StageResult] = []
    for name in stages:
        for result in await results_of(FLOWS[name], options.of_stage(name)):
            log.info("%s", result.sentence())
            results.append(result)
    return results
