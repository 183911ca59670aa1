"""What Prefect's UI shows of a stage: a progress bar while it runs, then a table and a link to the reports."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from prefect.artifacts import (
    acreate_link_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)

from flows.chain.checks import CheckResult
from flows.chain.results import StageResult
from flows.server.environment import noted
from tasks.foundation.llm.limits.gate import gates_of_process
from tasks.foundation.llm.redaction import brief
from tasks.foundation.run.progress import Progress
from tasks.foundation.run.stage_run import StageRun
from tasks.foundation.store.commits import Commit

REFRESH_SECONDS = 2.0
REPORTS = "http://127.0.0.1:4201"
"""Where `colloquy serve` shows the reports unless it is text another port."""

GIVE_UP_SECONDS = 5.0
"""For a line of progress: the next one tells more, and a stage does not stay open for it."""

log = logging.getLogger(__name__)
T = TypeVar("T")


@asynccontextmanager
async def post_progress(run: StageRun) -> AsyncIterator[None]:
    """A progress artifact of the stage's run (without a key: nobody looks for it later), kept current until the block
    ends.

    What Prefect cannot show is logged: it is no reason for a stage to fail.
    """
    artifact = await _posted(_soon(acreate_progress_artifact(0.0, None, _line(run.progress))))
    refreshing = asyncio.create_task(_refresh(artifact, run.progress))
    try:
        yield
    finally:
        refreshing.cancel()
        with suppress(asyncio.CancelledError):
            await refreshing
        await _update(artifact, run.progress)


async def post_result(result: StageResult, commit: Commit) -> None:
    """A table artifact: where the stage's rows ended and what they took. One key a stage: the artifacts of its builds
    stand in one row after another."""
    await _posted(
        acreate_table_artifact(table=[_row(result)], key=_key(result.stage), description=_description(result, commit))
    )


async def post_report(build: str, path: Path) -> None:
    """A link that a browser opens."""
    text = f"Report of build **{build}**, written to `{path}`; its page is there while `colloquy serve` is up."
    await _posted(
        acreate_link_artifact(report_url(build), link_text=f"report of {build}", key=_key("report"), description=text)
    )


async def post_checks(build: str, outcomes: Sequence[CheckResult]) -> None:
    """A table artifact: the checks that found rows, with the first of them."""
    table = [
        {"check": outcome.name, "rows": outcome.rows, "for example": str(outcome.examples[0])}
        for outcome in outcomes
        if outcome.rows
    ]
    text = f"{len(outcomes) - len(table)} of {len(outcomes)} checks of build **{build}** found nothing."
    await _posted(acreate_table_artifact(table=table, key=_key("check"), description=text))


def report_url(build: str) -> str:
    """Where the report of a build is, or will be, while `colloquy serve` is up."""
    return f"{noted('reports') or REPORTS}/{build}/index.html"


async def _update(artifact: UUID | None, progress: Progress) -> None:
    if artifact is not None:
        await _posted(_soon(aupdate_progress_artifact(artifact, _percent(progress), _line(progress))))


async def _soon(sending: Awaitable[T]) -> T:
    """What Prefect answers; TimeoutError when it takes long: its client would try for minutes."""
    try:
        async with asyncio.timeout(GIVE_UP_SECONDS):
            return await sending
    except TimeoutError:
        raise TimeoutError(f"no answer within {GIVE_UP_SECONDS:.0f} s") from None


async def _posted(sending: Awaitable[Any]) -> UUID | None:
    """The id of what was sent; None where Prefect did not take it."""
    try:
        found = await sending
    except Exception as error:  # noqa: BLE001 - whatever Prefect's trouble, the stage's work goes on
        log.warning("Prefect does not show the progress of this stage at the moment: %s", brief(error))
        return None
    return found if isinstance(found, UUID) else None


async def _refresh(artifact: UUID | None, progress: Progress) -> None:
    shown = ""
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        waiting = "; ".join(gates_of_process().describe())
        if waiting != progress.waiting:
            progress.waiting = waiting
            progress.changed()
        if (line := _line(progress)) != shown:
            shown = line
            await _update(artifact, progress)


def _row(result: StageResult) -> dict[str, Any]:
    return {
        "stage": result.stage,
        "build": result.build,
        "done": result.decision,
        "revision": result.revision,
        "rows in": result.n_in,
        "produced": result.n_produced,
        "filtered": result.n_filtered,
        "failed": result.n_failed,
        "calls": result.calls,
        "from cache": result.from_cache,
        "tokens": result.tokens,
        "cost (USD)": result.cost_usd if result.cost_usd is not None else "unknown",
        "seconds": result.seconds,
    }


def _description(result: StageResult, commit: Commit) -> str:
    paragraphs = [
        f"**{result.stage}** of build **{result.build}**: {result.n_in} rows in = {result.n_produced} produced "
        f"+ {result.n_filtered} filtered + {result.n_failed} failed.",
        "Partial: some rows failed in a way that may pass; the next run tries just those." if result.partial else "",
        "\n".join(_reasons("filtered", commit) + _reasons("failed", commit)),
        f"[Report of the build]({report_url(result.build)}), once it is written.",
    ]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _reasons(kind: str, commit: Commit) -> list[str]:
    counts = getattr(commit.accounting, kind)
    return [f"- {kind}, {reason}: {count}" for reason, count in sorted(counts.items())]


def _line(progress: Progress) -> str:
    waiting = f". Waiting: {progress.waiting}" if progress.waiting else ""
    return f"{progress.stage}: {progress.phase}, {progress.counts()}{waiting}"


def _percent(progress: Progress) -> float:
    if progress.phase == "committed":
        return 100.0
    return 100.0 * progress.rows_done / progress.rows_total if progress.rows_total else 0.0


def _key(what: str) -> str:
    """An artifact key: lower-case letters, digits and dashes.

    >>> _key("conversation@GPT-4o")
    'colloquy-conversation-gpt-4o'
    """
    return "colloquy-" + re.sub(r"[^a-z0-9]+", "-", what.lower()).strip("-")
