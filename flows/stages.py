"""One flow a stage, each deployable and runnable alone. See prefect.yaml and `colloquy run --only`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from prefect import flow

from flows.options import RunOptions
from flows.results import StageResult
from flows.stage_flow import run_stage

DEFAULTS = RunOptions()
RUN_NAME = "{options.build}"

StageFlow = Callable[[RunOptions], Awaitable[list[StageResult]]]


@flow(flow_run_name=RUN_NAME, persist_result=False, log_prints=False)
async def personas(options: RunOptions = DEFAULTS) -> list[StageResult]:
    """Source personas → a deduplicated, stratified pool and the characters designed from it."""
    return await run_stage("personas", options)


@flow(flow_run_name=RUN_NAME, persist_result=False, log_prints=False)
async def scenes(options: RunOptions = DEFAULTS) -> list[StageResult]:
    """Seed dialogues → the goals and scenes distilled from them."""
    return await run_stage("scenes", options)


@flow(flow_run_name=RUN_NAME, persist_result=False, log_prints=False)
async def conflicts(options: RunOptions = DEFAULTS) -> list[StageResult]:
    """Scenes with two characters each → which of them could have that talk, and which go on."""
    return await run_stage("conflicts", options)


@flow(flow_run_name=RUN_NAME, persist_result=False, log_prints=False)
async def dialogues(options: RunOptions = DEFAULTS) -> list[StageResult]:
    """Selected pairings → dialogues with a label for each element of each utterance."""
    return await run_stage("dialogues", options)


@flow(flow_run_name=RUN_NAME, persist_result=False, log_prints=False)
async def voting(options: RunOptions = DEFAULTS) -> list[StageResult]:
    """Labels → reviews by two families of models, votes on what they dispute, verdicts."""
    return await run_stage("voting", options)


@flow(flow_run_name=RUN_NAME, persist_result=False, log_prints=False)
async def curation(options: RunOptions = DEFAULTS) -> list[StageResult]:
    """Verdicts → the benchmark: awareness items and interaction episodes."""
    return await run_stage("curation", options)


FLOWS: dict[str, StageFlow] = {
    "personas": personas,
    "scenes": scenes,
    "conflicts": conflicts,
    "dialogues": dialogues,
    "voting": voting,
    "curation": curation,
}
