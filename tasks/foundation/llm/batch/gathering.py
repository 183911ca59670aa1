"""Calls that are in no job yet, and the rule by which they are cut into jobs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tasks.foundation.llm.request import ProviderCall, RawReply


@dataclass(slots=True, eq=False)
class Wait:
    """One call on its way. `line`: how it stands in a job's file, while it gathers; `callers`: how many still want
    its reply; `tag`: the job it is in; `jobs`: how many jobs ended without a reply to it."""

    key: str
    call: ProviderCall
    future: asyncio.Future[RawReply]
    line: bytes = b""
    callers: int = 0
    tag: str | None = None
    jobs: int = 0


class Gathering:
    """A job is cut when there are `per_job` calls, or when none has come for `quiet_seconds`."""

    def __init__(self, per_job: int, max_bytes: int, quiet_seconds: float) -> None:
        self.per_job = per_job
        self._max_bytes = max_bytes
        self._quiet_seconds = quiet_seconds
        self._waits: dict[str, Wait] = {}
        self._enough = asyncio.Event()
        self._last_arrival = 0.0

    def __len__(self) -> int:
        return len(self._waits)

    def add(self, waits: Iterable[Wait]) -> None:
        for wait in waits:
            wait.tag = None
            self._waits[wait.key] = wait
        self._last_arrival = asyncio.get_running_loop().time()
        self._note_size()

    async def ready(self) -> None:
        """Returns when a job can be cut."""
        loop = asyncio.get_running_loop()
        while not self._enough.is_set() and (left := self._last_arrival + self._quiet_seconds - loop.time()) > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._enough.wait(), left)

    def cut(self) -> tuple[list[Wait], list[Wait]]:
        """The calls of the next job, first come first served and within its limits, and those nobody wants any more."""
        job: list[Wait] = []
        unwanted: list[Wait] = []
        size = 0
        for wait in self._waits.values():
            if wait.callers == 0:
                unwanted.append(wait)
                continue
            size += len(wait.line)
            if job and (len(job) == self.per_job or size > self._max_bytes):
                break
            job.append(wait)
        for wait in (*job, *unwanted):
            del self._waits[wait.key]
        self._note_size()
        return job, unwanted

    def _note_size(self) -> None:
        if len(self._waits) >= self.per_job:
            self._enough.set()
        else:
            self._enough.clear()


def write_lines(path: Path, job: Iterable[Wait]) -> None:
    """The job's file; the lines are let go."""
    with path.open("wb") as file:
        for wait in job:
            file.write(wait.line)
            wait.line = b""
