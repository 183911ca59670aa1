"""The calls to one model at one endpoint: collected, sent in jobs, and answered from the store.

A call is in one of three places: collected here; in a job, be it of this process or of another;
answered. When a job ends without a reply to it, it is collected again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.batch import JobStatus, Refusal
from tasks.foundation.llm.batch.job_client import JobClient, Undecided
from tasks.foundation.llm.batch.job_store import Item, Job
from tasks.foundation.llm.failures import ProviderFailure
from tasks.foundation.llm.request import ProviderCall, RawReply

MOST_JOBS = 3
"""So many jobs may end without a reply to a request; then it has failed, and the engine's rule decides."""

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class PendingCall:
    """One call on its way."""

    key: str
    call: ProviderCall
    future: asyncio.Future[RawReply]
    line: bytes = b""
    """How it stands in a job's file, while it is in none."""
    callers: int = 0
    """How many still want its reply."""
    tag: str | None = None
    """The job it is in."""
    jobs: int = 0
    """How many jobs ended without a reply to it."""


class Collector:
    """Calls that are in no job yet. A job is cut when there are `per_job` of them, or when none has come for
    `quiet_seconds`."""

    def __init__(self, per_job: int, max_bytes: int, quiet_seconds: float) -> None:
        self.per_job = per_job
        self._max_bytes = max_bytes
        self._quiet_seconds = quiet_seconds
        self._calls: dict[str, PendingCall] = {}
        self._enough = asyncio.Event()
        self._last_arrival = 0.0

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, calls: Iterable[PendingCall]) -> None:
        for pending in calls:
            pending.tag = None
            self._calls[pending.key] = pending
        self._last_arrival = asyncio.get_running_loop().time()
        self._note_size()

    async def ready(self) -> None:
        """Returns when a job can be cut."""
        loop = asyncio.get_running_loop()
        while not self._enough.is_set() and (left := self._last_arrival + self._quiet_seconds - loop.time()) > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._enough.wait(), left)

    def cut(self) -> tuple[list[PendingCall], list[PendingCall]]:
        """The calls of the next job, first come first served and within its limits, and those nobody wants any more."""
        job: list[PendingCall] = []
        unwanted: list[PendingCall] = []
        size = 0
        for pending in self._calls.values():
            if pending.callers == 0:
                unwanted.append(pending)
                continue
            size += len(pending.line)
            if job and (len(job) == self.per_job or size > self._max_bytes):
                break
            job.append(pending)
        for pending in (*job, *unwanted):
            del self._calls[pending.key]
        self._note_size()
        return job, unwanted

    def _note_size(self) -> None:
        if len(self._calls) >= self.per_job:
            self._enough.set()
        else:
            self._enough.clear()


@dataclass(slots=True)
class Following:
    """A job that this process waits for. `done`: requests that the provider says it has worked on."""

    task: asyncio.Task[None]
    requests: int
    done: int = 0


class ModelQueue:
    """Belongs to one event loop. `job` has the endpoint and model of all its jobs; `client_for` gives that of another
    endpoint's job; `changed` is called whenever the counts have changed."""

    def __init__(
        self, job: Job, collector: Collector, client_for: Callable[[Job], JobClient], changed: Callable[[], None]
    ) -> None:
        self.following: dict[str, Following] = {}
        self.collector = collector
        self.completed = 0
        self._job = job
        self._client = client_for(job)
        self._client_for = client_for
        self._changed = changed
        self._calls: dict[str, PendingCall] = {}
        self._sender: asyncio.Task[None] | None = None
        self._refusals = 0
        self._hold_seconds = 0.0

    async def ask(self, call: ProviderCall) -> RawReply:
        """The reply, whichever job brings it."""
        key = call.key()
        pending = self._calls.get(key) or self._enter(key, call)
        pending.callers += 1
        try:
            return replace(await asyncio.shield(pending.future), seed_sent=call.seed)
        finally:
            pending.callers -= 1

    def follow(self, job: Job, *, is_new: bool = False) -> None:
        """Waits for the job's end, if that is not being done already."""
        if job.tag not in self.following:
            task = asyncio.create_task(self._follow(job, is_new))
            self.following[job.tag] = Following(task, job.requests)
            self._changed()

    def under_way(self) -> tuple[set[str], int]:
        """Jobs with calls that somebody has waited for here, and the number of those calls."""
        tags = [pending.tag for pending in self._calls.values() if pending.tag is not None]
        return set(tags), len(tags)

    async def close(self) -> None:
        """Stops asking after the jobs; they go on at the provider."""
        tasks = [job.task for job in self.following.values()] + ([self._sender] if self._sender else [])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for pending in self._calls.values():
            pending.future.cancel()

    def _enter(self, key: str, call: ProviderCall) -> PendingCall:
        items = self._client.store.items([key])
        future: asyncio.Future[RawReply] = asyncio.get_running_loop().create_future()
        pending = self._calls[key] = PendingCall(key, call, future)
        try:
            self._place([pending], items)
        except BaseException:
            del self._calls[key]
            raise
        return pending

    def _place(self, calls: Iterable[PendingCall], items: Mapping[str, Item]) -> None:
        """Each to where the store says it is; those that are in no job are collected."""
        free = []
        for pending in calls:
            item = items.get(pending.key)
            job = self._client.store.job(item.tag) if item and item.is_waiting else None
            if item is not None and isinstance(item.outcome, RawReply):
                self._settle(pending, item.outcome)
            elif job is not None:
                pending.tag = job.tag
                self.follow(job)
            else:
                free.append(pending)
        self._collect(free)

    def _collect(self, calls: list[PendingCall]) -> None:
        if not calls:
            return
        for pending in calls:
            pending.line = self._client.api.line(pending.key, pending.call)
        self.collector.add(calls)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send_jobs())
        self._changed()

    async def _send_jobs(self) -> None:
        while self.collector:
            hold, self._hold_seconds = self._hold_seconds, 0.0
            await (self._client.sleep(hold) if hold else self.collector.ready())
            calls, unwanted = self.collector.cut()
            for pending in unwanted:
                del self._calls[pending.key]
            if calls:
                try:
                    await self._send(calls)
                except Exception as error:  # noqa: BLE001 - whatever it is, the callers must hear of it, not hang
                    self._fail(calls, error)

    async def _send(self, calls: list[PendingCall]) -> None:
        """The calls are in a job at the provider; those that another process has sent wait for its job."""
        store = self._client.store
        job = replace(self._job, tag=f"colloquy-{uuid.uuid4().hex}", requests=len(calls))
        with self._client.owning(job.tag):
            claimed = await asyncio.to_thread(store.claim, job, [pending.key for pending in calls])
            others = [pending for pending in calls if pending.key not in claimed]
            self._place(others, store.items([pending.key for pending in others]))
            if mine := [pending for pending in calls if pending.key in claimed]:
                await self._submit(job, mine)

    async def _submit(self, job: Job, calls: list[PendingCall]) -> None:
        client = self._client
        for pending in calls:
            pending.tag = job.tag
        try:
            await asyncio.to_thread(_write_lines, client.input_file(job.tag), calls)
            job_id = await client.submit(job.tag, job.model)
        except Undecided:
            raise
        except (ProviderFailure, ModelUnavailable) as refusal:
            client.store.drop(job.tag)
            self._handle_refusal(calls, refusal)
        else:
            client.store.mark_submitted(job.tag, job_id)
            log.info("batch job %s: %s requests to %s submitted.", job_id, f"{len(calls):,}", job.model)
            self.follow(replace(job, requests=len(calls)), is_new=True)

    async def _follow(self, job: Job, is_new: bool) -> None:
        def note(status: JobStatus) -> None:
            self.following[job.tag].done = status.done or 0
            self._changed()

        try:
            ended = await self._client_for(job).follow(job.tag, is_new=is_new, on_status=note)
            del self.following[job.tag]
            self._deliver(job.tag, ended)
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(self._calls_of(job.tag), error)
        finally:
            self.following.pop(job.tag, None)
            self._changed()

    def _calls_of(self, tag: str) -> list[PendingCall]:
        return [pending for pending in self._calls.values() if pending.tag == tag]

    def _deliver(self, tag: str, job: Job | None) -> None:
        """Replies and failures to those who wait for them; the others are collected again, or hear why not."""
        calls = self._calls_of(tag)
        items = self._client.store.items([pending.key for pending in calls])
        left = []
        for pending in calls:
            item = items.get(pending.key)
            if item is not None and item.tag == tag and item.outcome is not None:
                self._settle(pending, item.outcome)
            else:
                left.append(pending)
        if job is not None and job.failure is not None:
            self._handle_refusal(left, job.failure)
            return
        self._refusals = 0
        for pending in left:
            pending.jobs += job is not None
        self._fail(
            [pending for pending in left if pending.jobs == MOST_JOBS],
            ProviderFailure("timeout", f"{MOST_JOBS} batch jobs ended without a reply to this request"),
        )
        self._place([pending for pending in left if pending.jobs < MOST_JOBS], items)

    def _handle_refusal(self, calls: list[PendingCall], refusal: Refusal) -> None:
        """The provider has not taken a job, or has thrown it out.

        Where its queue is full the calls wait for room. With no other job of ours in the queue it is the job
        that is too large: the next ones are half as large.
        """
        if not calls:
            return
        provider_is_full = isinstance(refusal, ProviderFailure) and refusal.kind == "rate_limited"
        if not provider_is_full or (len(calls) == 1 and not self.following):
            self._fail(calls, refusal)
            return
        if not self.following:
            self.collector.per_job = len(calls) // 2
        self._hold_seconds = self._client.pause_seconds(self._refusals)
        self._refusals += 1
        log.warning(
            "the provider's queue for %s is full (%s). %s requests wait %.0f s and go on in jobs of at most %s;"
            " llm.batch.requests_per_job sets that number.",
            self._job.model,
            refusal,
            f"{len(calls):,}",
            self._hold_seconds,
            f"{self.collector.per_job:,}",
        )
        self._collect(calls)

    def _settle(self, pending: PendingCall, outcome: RawReply | BaseException) -> None:
        if self._calls.pop(pending.key, None) is None:
            return
        self.completed += 1
        if isinstance(outcome, RawReply):
            pending.future.set_result(outcome)
            return
        pending.future.set_exception(_copy_failure(outcome))
        if pending.callers == 0:
            pending.future.exception()  # nobody is left to hear of it

    def _fail(self, calls: Iterable[PendingCall], error: Exception) -> None:
        for pending in calls:
            self._settle(pending, error)


def _write_lines(path: Path, job: Iterable[PendingCall]) -> None:
    """The job's file; the lines are let go."""
    with path.open("wb") as file:
        for pending in job:
            file.write(pending.line)
            pending.line = b""


def _copy_failure(error: BaseException) -> BaseException:
    """A failure for one caller alone: the engine writes on it."""
    if isinstance(error, ProviderFailure):
        return ProviderFailure(error.kind, str(error))
    return ModelUnavailable(str(error)) if isinstance(error, ModelUnavailable) else error
