"""How a stage with `mode: batch` is run: enough rows at once to fill jobs, one transport for all its calls."""

from __future__ import annotations

from tasks.foundation.llm.batch.transport import BatchTransport, check_batch
from tasks.foundation.run.context import Workspace
from tasks.foundation.settings import Settings
from tasks.foundation.stage import Stage


def in_batches(settings: Settings, stage: str) -> bool:
    """Whether the stage's requests travel in batch jobs."""
    return getattr(getattr(settings, stage), "mode", "live") == "batch"


def check_mode(stage: Stage, workspace: Workspace, member: str | None = None) -> None:
    """ConfigError where a stage is to run in batches and a model of it has no batch API."""
    if in_batches(workspace.settings, stage.name):
        check_batch(stage.name, stage.aliases(workspace.settings, member), workspace.models)


def open_transport(workspace: Workspace) -> BatchTransport:
    """The stage run's transport, beside the reply cache; whoever opens it closes it after the engine."""
    batch = workspace.settings.llm.batch
    return BatchTransport(
        workspace.layout.cache,
        requests_per_job=batch.requests_per_job,
        gather_seconds=batch.gather_seconds,
        poll_seconds=batch.poll_seconds,
        is_cached=lambda key: workspace.cache.get(key) is not None,
    )


def rows_at_once(settings: Settings, rows: int, *, batched: bool) -> int:
    """`rows` (of a shard, or in flight) as set for live calls; in batch mode at least a job's worth.

    A row that waits for a job holds its place, so fewer rows would make small jobs, one after another.
    """
    return max(rows, settings.llm.batch.requests_per_job) if batched else rows
