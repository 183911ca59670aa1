"""What submitting and following a job both need: the API, the store, a folder, and patience."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.batch.api import BatchApi
from tasks.foundation.llm.batch.job_store import JobStore
from tasks.foundation.llm.failures import ProviderFailure
from tasks.foundation.store.locks import lock

LONGEST_PAUSE_SECONDS = 600.0

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JobDesk:
    """For the jobs of one endpoint. `sleep` is asyncio's, except in tests."""

    api: BatchApi
    store: JobStore
    folder: Path
    poll_seconds: float
    sleep: Callable[[float], Awaitable[None]]

    @contextmanager
    def owning(self, tag: str) -> Iterator[None]:
        """For the process that submits a job, or finds out whether a dead one has: BuildBusy while another does.

        The kernel ends it with the process. Afterwards nothing of the submission is left in the folder.
        """
        path = self.folder / f"{tag}.lock"
        with lock(path, f"batch job {tag}", 0):
            try:
                yield
            finally:
                self.input_file(tag).unlink(missing_ok=True)
                path.unlink(missing_ok=True)

    def input_file(self, tag: str) -> Path:
        """What is uploaded for a job."""
        return self.folder / f"{tag}.input.jsonl"

    @contextmanager
    def output_file(self, tag: str) -> Iterator[Path]:
        """A file for this reader of a job's output alone: another process may be reading it as well."""
        path = self.folder / f"{tag}.{uuid.uuid4().hex}.output.jsonl"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def pause_seconds(self, failed: int, error: Exception | None = None) -> float:
        """After so many failures in a row: doubled each time, and never less than the provider asks for."""
        asked = getattr(error, "retry_after_seconds", None) or 0.0
        longest = max(LONGEST_PAUSE_SECONDS, self.poll_seconds)
        return max(asked, min(longest, self.poll_seconds * 2.0 ** min(failed, 20)))

    async def persist(self, what: str, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer to a question about a job that goes on whether or not the provider can be asked now.

        Asks until there is one. A question that the provider rejects raises ModelUnavailable.
        """
        failed = 0
        while True:
            try:
                return await ask()
            except ProviderFailure as error:
                if not error.may_pass_later:
                    raise ModelUnavailable(f"{what}: {error}") from None
                pause = self.pause_seconds(failed, error)
                log.warning("%s: %s. Asking again in %.0f s; nothing is lost.", what, error, pause)
                await self.sleep(pause)
            failed += 1
