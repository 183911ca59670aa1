"""One flow a stage, each deployable and runnable alone. See prefect.yaml and `colloquy run --only`."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from prefect import Flow, State, flow

from flows.options import RunOptions
from flows.results import StageResult
from flows.stage_flow import run_stage

DEFAULTS = RunOptions()

Ended = list[StageResult] | State[list[StageResult]]
StageFlow = Flow[[RunOptions], Coroutine[Any, Any, Ended]]


@flow(flow_run_name="{options.build} personas", persist_result=False, log_prints=False)
async def personas(options: RunOptions = DEFAULTS) -> Ended:
    """Source personas → a deduplicated, stratified pool and the characters designed from it."""
    return await run_stage("personas", options)


@flow(flow_run_name="{options.build} scenes", persist_result=False, log_prints=False)
async def scenes(options: RunOptions = DEFAULTS) -> Ended:
    """Seed dialogues → the goals and scenes distilled from them."""
    return await run_stage("scenes", options)


@flow(flow_run_name="{options.build} conflicts", persist_result=False, log_prints=False)
async def conflicts(options: RunOptions = DEFAULTS) -> Ended:
    """Scenes with two characters each → which of them could have that talk, and which go on."""
    return await run_stage("conflicts", options)


@flow(flow_run_name="{options.build} dialogues", persist_result=False, log_prints=False)
async def dialogues(options: RunOptions = DEFAULTS) -> Ended:
    """Selected pairings → dialogues with a label for each element of each utterance."""
    return await run_stage("dialogues", options)


@flow(flow_run_name="{options.build} voting", persist_result=False, log_prints=False)
async def voting(options: RunOptions = DEFAULTS) -> Ended:
    """Labels → reviews by two families of models, votes on what they dispute, verdicts."""
    return await run_stage("voting", options)


@flow(flow_run_name="{options.build} curation", persist_result=False, log_prints=False)
async def curation(options: RunOptions = DEFAULTS) -> Ended:
    """Verdicts → the benchmark: awareness items and interaction episodes."""
    return await run_stage("curation", options)


@flow(flow_run_name="{options.build} chatseeds", persist_result=False, log_prints=False)
async def chatseeds(options: RunOptions = DEFAULTS) -> Ended:
    """Pooled personas → the seeds of conversations: topic, feelings, intents, first words."""
    return await run_stage("chatseeds", options)


@flow(flow_run_name="{options.build} awareness", persist_result=False, log_prints=False)
async def awareness(options: RunOptions = DEFAULTS) -> Ended:
    """Awareness items → what each target reads out of the dialogues."""
    return await run_stage("awareness", options)


@flow(flow_run_name="{options.build} interaction", persist_result=False, log_prints=False)
async def interaction(options: RunOptions = DEFAULTS) -> Ended:
    """Interaction episodes → the dialogues that each target plays."""
    return await run_stage("interaction", options)


@flow(flow_run_name="{options.build} conversation", persist_result=False, log_prints=False)
async def conversation(options: RunOptions = DEFAULTS) -> Ended:
    """Chat seeds → conversations of a simulated user with each target."""
    return await run_stage("conversation", options)


@flow(flow_run_name="{options.build} judging", persist_result=False, log_prints=False)
async def judging(options: RunOptions = DEFAULTS) -> Ended:
    """Predictions, interactions and conversations → the scores of each judge."""
    return await run_stage("judging", options)


@flow(flow_run_name="{options.build} metrics", persist_result=False, log_prints=False)
async def metrics(options: RunOptions = DEFAULTS) -> Ended:
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
