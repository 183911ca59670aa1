"""One flow a stage, each deployable and runnable alone. See prefect.yaml and `colloquy run --only`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from prefect import flow

from flows.options import RunOptions
from flows.results import StageResult
from flows.stage_flow import run_stage

DEFAULTS = RunOptions()
RUN_NAME = "{options.todays_build}"

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


@flow(flow_run_name=RUN_NAME, persist_result=False, log_prints=False)
async def chatseeds(options: RunOptions = DEFAULTS) -> list[StageResult]:
    """Pooled personas → the seeds of conversations: topic, feelings, intents, first words."""
    return await run_stage("chatseeds", options)


@flow(flow_run_name=RUN_NAME, persist_result=False, log_prints=False)
async def awareness(options: RunOptions = DEFAULTS) -> list[StageResult]:
    """Awareness items → what each target reads out of the dialogues."""
    return await run_stage("awareness", options)


@flow(flow_run_name=RUN_NAME, persist_result=False, log_prints=False)
async def interaction(options: RunOptions = DEFAULTS) -> list[StageResult]:
    """Interaction episodes → the dialogues that each target plays."""
    return await run_stage("interaction", options)


@flow(flow_run_name=RUN_NAME, persist_result=False, log_prints=False)
async def conversation(options: RunOptions = DEFAULTS) -> list[StageResult]:
    """Chat seeds → conversations of a simulated user with each target."""
    return await run_stage("conversation", options)


@flow(flow_run_name=RUN_NAME, persist_result=False, log_prints=False)
async def judging(options: RunOptions = DEFAULTS) -> list[StageResult]:
    """Predictions, interactions and conversations → the scores of each judge."""
    return await run_stage("judging", options)


@flow(flow_run_name=RUN_NAME, persist_result=False, log_prints=False)
async def metrics(options: RunOptions = DEFAULTS) -> list[StageResult]:
    """Everything above → metrics, comparisons and agreement, each with n and interval."""
    return await run_stage("metrics", options)


FLOWS: dict[str, StageFlow] = {
    "personas": personas,
    "scenes": scenes,
    "conflicts": conflicts,
    "dialogues": dialogues,
    "voting": voting,
    "curation": curation,
    "chatseeds": chatseeds,
    "awareness": awareness,
    "interaction": interaction,
    "conversation": conversation,
    "judging": judging,
    "metrics": metrics,
}
