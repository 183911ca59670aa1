"""What came back of a job, from its output files into the store, line by line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.batch.api import JobStatus, Result
from tasks.foundation.llm.batch.desk import JobDesk
from tasks.foundation.llm.batch.jobs import Job
from tasks.foundation.llm.failures import Gone, ProviderFailure
from tasks.foundation.llm.request import RawReply

_AT_ONCE = 500

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Landing:
    """Lines of a job's output by what became of them; `duplicate`, `unknown` and `unreadable` ones are not used."""

    answered: int = 0
    failed: int = 0
    duplicate: int = 0
    unknown: int = 0
    unreadable: int = 0
    seen: set[str] = field(default_factory=set)

    def sentence(self, requests: int) -> str:
        """`4,990 answered, 8 failed, 2 without a reply; not used: 1 duplicate line`."""
        missing = requests - self.answered - self.failed
        told = f"{self.answered:,} answered, {self.failed:,} failed, {missing:,} without a reply"
        odd = {"duplicate": self.duplicate, "unknown": self.unknown, "unreadable": self.unreadable}
        unused = ", ".join(f"{n:,} {kind} line{'' if n == 1 else 's'}" for kind, n in odd.items() if n)
        return f"{told}; not used: {unused}" if unused else told


async def land(desk: JobDesk, job: Job, status: JobStatus) -> Landing:
    """Everything the job's output files hold is in the store."""
    landing = Landing()
    known = await asyncio.to_thread(desk.store.keys_of, job.tag)
    for file in status.files:
        with desk.output_file(job.tag) as path:
            try:
                await desk.persist(f"output of batch job {job.name}", lambda: desk.api.download(file, path))  # noqa: B023
            except Gone:
                log.warning("batch job %s: the provider no longer has its output file %s.", job.name, file)
                continue
            await asyncio.to_thread(_land_file, desk, job, path, known, _seconds(job, status), landing)
    return landing


def _seconds(job: Job, status: JobStatus) -> float:
    """From the job's creation to its end; where the provider does not report them, from our intent to now."""
    if status.seconds is not None or job.created_at is None:
        return status.seconds or 0.0
    return (datetime.now(UTC) - datetime.fromisoformat(job.created_at)).total_seconds()


def _land_file(desk: JobDesk, job: Job, path: Path, known: set[str], seconds: float, landing: Landing) -> None:
    some: list[Result] = []
    for result in _results(desk, path, known, landing):
        if isinstance(result.outcome, RawReply):
            result = replace(result, outcome=replace(result.outcome, latency_seconds=seconds))
        some.append(result)
        if len(some) == _AT_ONCE:
            desk.store.land(job.tag, some)
            some.clear()
    desk.store.land(job.tag, some)


def _results(desk: JobDesk, path: Path, known: set[str], landing: Landing) -> Iterator[Result]:
    """The usable lines; of several with one key the first. All are counted."""
    with path.open("rb") as file:  # bytes: a reply may hold characters that end a line of text
        for line in file:
            if not line.strip():
                continue
            try:
                result = desk.api.read(line)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                landing.unreadable += 1
                continue
            if result.key not in known:
                landing.unknown += 1
            elif result.key in landing.seen:
                landing.duplicate += 1
            else:
                landing.seen.add(result.key)
                landing.answered += isinstance(result.outcome, RawReply)
                landing.failed += isinstance(result.outcome, ProviderFailure | ModelUnavailable)
                yield result
