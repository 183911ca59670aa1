"""The whole chain, or a part of it: one stage after another, each as a subflow of its own.

A stage that is up to date is passed over; a stage after one that made new rows runs because its inputs
differ. A retry starts at the top and finds what is done.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import date

from prefect import flow

from flows import chain
from flows.options import RebuildOptions
from flows.preflight import look_ahead
from flows.results import StageResult
from flows.stage_flow import log_what_is_said
from flows.stages import FLOWS

DEFAULTS = RebuildOptions()
log = logging.getLogger(__name__)


@flow(flow_run_name="{options.todays_build}", persist_result=False, log_prints=False)
async def rebuild(options: RebuildOptions = DEFAULTS) -> list[StageResult]:
    """Source files → a voted benchmark (personas to curation) → both evaluations (chatseeds to metrics)."""
    build = options.build_on(date.today())
    settled = await asyncio.to_thread(chain.settled, options)
    stages = await asyncio.to_thread(chain.selected, settled)
    await asyncio.to_thread(look_ahead, settled, stages, build)
    log_what_is_said()
    given = "".join(f" --set {each}" for each in settled.remembered)
    log.info("build %s, profile %s%s", build, settled.profile, given)
    results: list[StageResult] = []
    for name in stages:
        for result in await FLOWS[name](settled.of(build=build, force=settled.forces(name))):
            log.info("%s", result.sentence())
            results.append(result)
    return results
