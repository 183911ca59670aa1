"""One more model on a benchmark that is there: the evaluation stages for one target, judging included."""

from __future__ import annotations

import asyncio
import logging

from prefect import flow

from flows import chain
from flows.chain.preflight import look_ahead
from flows.ending import ending, results_of
from flows.identity import settled_run
from flows.options import EvaluateOptions
from flows.results import StageResult
from flows.stage_flow import log_what_is_said
from flows.stages import FLOWS, Ended
from tasks.foundation.errors import ConfigError
from tasks.foundation.store.layout import Layout

DEFAULTS = EvaluateOptions()
log = logging.getLogger(__name__)


@flow(flow_run_name="{options.build} evaluate {options.target}", persist_result=False, log_prints=False)
async def evaluate(options: EvaluateOptions = DEFAULTS) -> Ended:
    """Frozen items and seeds → one target's scores, beside those of the targets that are there."""
    if options.target is None:
        raise ConfigError("expected the alias of a model as `target`, found none")
    settled = await settled_run(options, f"evaluate {options.target}")
    build = settled.build
    if settled.benchmark is None:
        half = await asyncio.to_thread(chain.half_of, Layout.default(), build)
        settled = settled.model_copy(update={"benchmark": half})
    await asyncio.to_thread(look_ahead, settled, settled.stages(), build)
    log_what_is_said()
    log.info("%s on build %s, profile %s", settled.target, build, settled.profile)
    results: list[StageResult] = []
    for name in settled.stages():
        for result in await results_of(FLOWS[name], settled.of(build=build, force=settled.forces(name))):
            log.info("%s", result.sentence())
            results.append(result)
    return ending(results)
