"""The whole chain, or a part of it: one stage after another, each as a subflow of its own.

A stage that is up to date is passed over; a stage after one that made new rows runs because its inputs
differ. A retry starts at the top and finds what is done.
"""

from __future__ import annotations

import asyncio
import logging

from prefect import flow

from flows import builds, chain
from flows.chain.preflight import look_ahead
from flows.ending import ending, results_of
from flows.identity import settled_run
from flows.options import BuildOptions, RebuildOptions, ReportOptions
from flows.results import StageResult
from flows.stage_flow import log_what_is_said
from flows.stages import FLOWS, Ended

DEFAULTS = RebuildOptions()
log = logging.getLogger(__name__)


@flow(flow_run_name="{options.build} rebuild", persist_result=False, log_prints=False)
async def rebuild(options: RebuildOptions = DEFAULTS) -> Ended:
    """Source files → a voted benchmark (personas to curation) → both evaluations (chatseeds to metrics)."""
    settled = await settled_run(options, "rebuild")
    stages = await asyncio.to_thread(chain.selected, settled)
    await asyncio.to_thread(look_ahead, settled, stages, settled.build)
    log_what_is_said()
    given = "".join(f" --set {each}" for each in settled.remembered)
    log.info("build %s, profile %s%s", settled.build, settled.profile, given)
    results: list[StageResult] = []
    for name in stages:
        for result in await results_of(FLOWS[name], settled.of(build=settled.build, force=settled.forces(name))):
            log.info("%s", result.sentence())
            results.append(result)
    if settled.report:
        await builds.report(ReportOptions(build=settled.build))
    if settled.check:
        await builds.check(BuildOptions(build=settled.build))
    return ending(results)
