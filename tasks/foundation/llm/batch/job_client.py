"""A job's life at its provider: submitted once or not at all, asked after until it ends, read into the store."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from tasks.foundation.errors import BuildBusy, FailureKind, ModelError, ModelUnavailable
from tasks.foundation.llm.batch import BatchApi, JobStatus, Refusal, Result
from tasks.foundation.llm.batch.job_store import Job, JobStore
from tasks.foundation.llm.failures import Gone, ProviderFailure
from tasks.foundation.llm.request import RawReply
from tasks.foundation.store.locks import lock

SUBMISSION_TRIES = 5
LONGEST_PAUSE_SECONDS = 600.0
RESULTS_AT_ONCE = 500

UNCLEAR: tuple[FailureKind, ...] = ("timeout", "connection", "server")
"""Failures of a creation after which the job may exist all the same."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class Undecided(ModelUnavailable):
    """Whether the job exists cannot be found out now; the next run looks again."""


@dataclass(slots=True)
class OutputCounts:
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
        used = f"{self.answered:,} answered, {self.failed:,} failed, {missing:,} without a reply"
        odd = {"duplicate": self.duplicate, "unknown": self.unknown, "unreadable": self.unreadable}
        unused = ", ".join(f"{n:,} {kind} line{'' if n == 1 else 's'}" for kind, n in odd.items() if n)
        return f"{used}; not used: {unused}" if unused else used


@dataclass(frozen=True, slots=True)
class JobClient:
    """Submits and follows the jobs of one endpoint. `folder` holds files on their way; `sleep` is asyncio's, except in
    tests."""

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

    def pause_seconds(self, failed: int, error: Exception | None = None) -> float:
        """After so many failures in a row: doubled each time, and never less than the provider asks for."""
        asked = getattr(error, "retry_after_seconds", None) or 0.0
        longest = max(LONGEST_PAUSE_SECONDS, self.poll_seconds)
        return max(asked, min(longest, self.poll_seconds * 2.0 ** min(failed, 20)))

    async def submit(self, tag: str, model: str) -> str:
        """The id of the new job over the input file. ProviderFailure or ModelUnavailable: there is certainly no job.
        Else Undecided."""
        file = await self._persist(
            "upload of a batch job", lambda: self.api.upload(self.input_file(tag), tag), SUBMISSION_TRIES
        )

        async def create() -> str:
            try:
                return await self.api.create(file, tag, model)
            except ProviderFailure as error:
                found = await self._find(tag) if error.kind in UNCLEAR else None
                if found is None:
                    raise
                return found

        return await self._persist("creation of a batch job", create, SUBMISSION_TRIES)

    async def follow(self, tag: str, *, is_new: bool, on_status: Callable[[JobStatus], None]) -> Job | None:
        """The ended job, all it gave being in the store; None when it turns out that there never was one.

        `is_new`: this process has just submitted it. A job that is cancelled while it is followed ends with
        ModelUnavailable: somebody wants it to stop.
        """
        job = self.store.job(tag)
        if job is not None and job.state == "intended":
            job = await self._look_for(job)
        running = is_new
        while job is not None and job.state != "ended":
            if running:
                await self.sleep(self.poll_seconds)
                job = self.store.job(tag) or job
                if job.state == "ended":  # another process has read it
                    break
            status = await self._ask_status(job)
            if status is not None and status.state == "running":
                running = True
                on_status(status)
                continue
            await self._end(job, status, running)
            job = self.store.job(tag)
        return job

    async def import_output(self, job: Job, status: JobStatus) -> OutputCounts:
        """Everything the job's output files hold is in the store."""
        counts = OutputCounts()
        known = await asyncio.to_thread(self.store.keys_of, job.tag)
        for file in status.files:
            # a file of this reader's own: another process may be reading the same output
            path = self.folder / f"{job.tag}.{uuid.uuid4().hex}.output.jsonl"
            try:
                output = f"output of batch job {job.name}"
                await self._persist(output, lambda: self.api.download(file, path))  # noqa: B023 - awaited at once
                await asyncio.to_thread(self._import_file, job, path, known, _measure_seconds(job, status), counts)
            except Gone:
                log.warning("batch job %s: the provider no longer has its output file %s.", job.name, file)
            finally:
                path.unlink(missing_ok=True)
        return counts

    async def _find(self, tag: str) -> str | None:
        """The id of the job with this tag; None when two looks, a poll apart, have not found it."""
        for look in range(2):
            if look:
                await self.sleep(self.poll_seconds)
            try:
                found = await self._persist(f"looking for batch job {tag}", lambda: self.api.find(tag))
            except ModelUnavailable as error:
                raise Undecided(str(error)) from None
            if found is not None:
                return found
        return None

    async def _look_for(self, job: Job) -> Job | None:
        """The intended job as its provider knows it; None: there is none. While the process that submits it lives,
        that one knows best."""
        while True:
            try:
                with self.owning(job.tag):
                    current = self.store.job(job.tag)
                    if current is None or current.state != "intended":
                        return current
                    job_id = await self._find(job.tag)
                    if job_id is None:
                        log.info("batch job %s was never submitted; its requests are sent anew.", job.tag)
                        self.store.drop(job.tag)
                        return None
                    log.info("batch job %s was submitted by a run that died; its replies are taken over.", job_id)
                    self.store.mark_submitted(job.tag, job_id)
                    return self.store.job(job.tag)
            except BuildBusy:
                await self.sleep(self.poll_seconds)

    async def _ask_status(self, job: Job) -> JobStatus | None:
        """None: the provider does not know the job."""
        try:
            return await self._persist(f"batch job {job.name}", lambda: self.api.status(job.job_id or ""))
        except Gone:
            return None

    async def _end(self, job: Job, status: JobStatus | None, was_running: bool) -> None:
        if status is None:
            log.warning("batch job %s is unknown to the provider; its requests are sent anew.", job.name)
            await asyncio.to_thread(self.store.end, job.tag, "gone")
            return
        counts = await self.import_output(job, status)
        failure = _explain_missing(job, status, was_running)
        await asyncio.to_thread(self.store.end, job.tag, status.state, failure)
        level = logging.WARNING if failure else logging.INFO
        why = f" {failure}" if failure else ""
        log.log(level, "batch job %s %s: %s.%s", job.name, status.state, counts.sentence(job.requests), why)

    def _import_file(self, job: Job, path: Path, known: set[str], seconds: float, counts: OutputCounts) -> None:
        results: list[Result] = []
        for result in self._read_results(path, known, counts):
            if isinstance(result.outcome, RawReply):
                result = replace(result, outcome=replace(result.outcome, latency_seconds=seconds))
            results.append(result)
            if len(results) == RESULTS_AT_ONCE:
                self.store.keep(job.tag, results)
                results.clear()
        self.store.keep(job.tag, results)

    def _read_results(self, path: Path, known: set[str], counts: OutputCounts) -> Iterator[Result]:
        """The usable lines; of several with one key the first. All are counted."""
        with path.open("rb") as file:  # bytes: a reply may hold characters that end a line of text
            for line in file:
                if not line.strip():
                    continue
                try:
                    result = self.api.read(line)
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                    counts.unreadable += 1
                    continue
                if result.key not in known:
                    counts.unknown += 1
                elif result.key in counts.seen:
                    counts.duplicate += 1
                else:
                    counts.seen.add(result.key)
                    counts.answered += isinstance(result.outcome, RawReply)
                    counts.failed += isinstance(result.outcome, Refusal)
                    yield result

    async def _persist(self, what: str, ask: Callable[[], Awaitable[T]], tries: int | None = None) -> T:
        """The answer to a question about a job, asked again after failures that may pass.

        After so many `tries` the failure is raised. Without a limit, for a job that goes on whether or not the provider
        can be asked now, only a question that the provider rejects is given up: ModelUnavailable.
        """
        failed = 0
        while True:
            try:
                return await ask()
            except ProviderFailure as error:
                if failed + 1 == tries or not _may_pass(error):
                    raise error if tries else ModelUnavailable(f"{what}: {error}") from None
                pause = self.pause_seconds(failed, error)
                log.warning("%s: %s. Asking again in %.0f s; nothing is lost.", what, error, pause)
                await self.sleep(pause)
            failed += 1


def _may_pass(error: ProviderFailure) -> bool:
    """OpenAI at times does not know a file that it has just taken."""
    return error.may_pass_later or "cannot find file" in str(error).lower()


def _measure_seconds(job: Job, status: JobStatus) -> float:
    """From the job's creation to its end; where the provider does not report them, from our intent to now."""
    if status.seconds is not None or job.created_at is None:
        return status.seconds or 0.0
    return (datetime.now(UTC) - datetime.fromisoformat(job.created_at)).total_seconds()


def _explain_missing(job: Job, status: JobStatus, was_running: bool) -> Refusal | None:
    """Why the requests without a reply have none; None: they are sent anew."""
    if status.state == "cancelled" and was_running:
        return ModelUnavailable(
            f"Batch job {job.name} was cancelled at the provider. What it had answered is kept;"
            " the same command sends the rest again."
        )
    failure = status.failure
    if isinstance(failure, ModelError) and not failure.may_pass_later:
        return ModelUnavailable(f"The provider refuses batch job {job.name} as a whole. {failure}")
    return failure
