"""The calls to one model at one endpoint: gathered, sent in jobs, and answered from the store.

A call is in one of three places: gathering here; in a job, be it of this process or of another;
answered. When a job ends without a reply to it, it gathers again.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.batch.api import JobStatus
from tasks.foundation.llm.batch.desk import JobDesk
from tasks.foundation.llm.batch.following import follow
from tasks.foundation.llm.batch.gathering import Gathering, Wait, write_lines
from tasks.foundation.llm.batch.jobs import Item, Job
from tasks.foundation.llm.batch.submitting import Undecided, submit
from tasks.foundation.llm.failures import ProviderFailure
from tasks.foundation.llm.request import ProviderCall, RawReply

LONGEST_LIFE = 3
"""So many jobs may end without a reply to a request; then it has failed, and the engine's rule decides."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Following:
    """A job that this process waits for. `done`: requests that the provider says it has worked on."""

    task: asyncio.Task[None]
    requests: int
    done: int = 0


class ModelQueue:
    """Belongs to one event loop. `job` has the endpoint and model of all its jobs; `desk_for` gives what another
    endpoint's job needs; `changed` is called whenever the counts have changed."""

    def __init__(
        self, job: Job, gathering: Gathering, desk_for: Callable[[Job], JobDesk], changed: Callable[[], None]
    ) -> None:
        self.following: dict[str, Following] = {}
        self.gathering = gathering
        self.completed = 0
        self._job = job
        self._desk = desk_for(job)
        self._desk_for = desk_for
        self._changed = changed
        self._waits: dict[str, Wait] = {}
        self._sender: asyncio.Task[None] | None = None
        self._refusals = 0
        self._hold_seconds = 0.0

    async def ask(self, call: ProviderCall) -> RawReply:
        """The reply, whichever job brings it."""
        key = call.key()
        wait = self._waits.get(key) or self._enter(key, call)
        wait.callers += 1
        try:
            return replace(await asyncio.shield(wait.future), seed_sent=call.seed)
        finally:
            wait.callers -= 1

    def follow(self, job: Job, *, is_new: bool = False) -> None:
        """Waits for the job's end, if that is not being done already."""
        if job.tag not in self.following:
            task = asyncio.create_task(self._follow(job, is_new))
            self.following[job.tag] = Following(task, job.requests)
            self._changed()

    def under_way(self) -> tuple[set[str], int]:
        """Jobs with calls that somebody has waited for here, and the number of those calls."""
        tags = [wait.tag for wait in self._waits.values() if wait.tag is not None]
        return set(tags), len(tags)

    async def close(self) -> None:
        """Stops asking after the jobs; they go on at the provider."""
        tasks = [job.task for job in self.following.values()] + ([self._sender] if self._sender else [])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for wait in self._waits.values():
            wait.future.cancel()

    def _enter(self, key: str, call: ProviderCall) -> Wait:
        items = self._desk.store.items([key])
        future: asyncio.Future[RawReply] = asyncio.get_running_loop().create_future()
        wait = self._waits[key] = Wait(key, call, future)
        try:
            self._place([wait], items)
        except BaseException:
            del self._waits[key]
            raise
        return wait

    def _place(self, waits: Iterable[Wait], items: Mapping[str, Item]) -> None:
        """Each to where the store says it is; those that are in no job gather."""
        free = []
        for wait in waits:
            item = items.get(wait.key)
            job = self._desk.store.job(item.tag) if item and item.waits else None
            if item is not None and isinstance(item.outcome, RawReply):
                self._settle(wait, item.outcome)
            elif job is not None:
                wait.tag = job.tag
                self.follow(job)
            else:
                free.append(wait)
        self._gather(free)

    def _gather(self, waits: list[Wait]) -> None:
        if not waits:
            return
        for wait in waits:
            wait.line = self._desk.api.line(wait.key, wait.call)
        self.gathering.add(waits)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send_jobs())
        self._changed()

    async def _send_jobs(self) -> None:
        while self.gathering:
            hold, self._hold_seconds = self._hold_seconds, 0.0
            await (self._desk.sleep(hold) if hold else self.gathering.ready())
            waits, unwanted = self.gathering.cut()
            for wait in unwanted:
                del self._waits[wait.key]
            if waits:
                try:
                    await self._send(waits)
                except Exception as error:  # noqa: BLE001 - whatever it is, the callers must hear of it, not hang
                    self._fail(waits, error)

    async def _send(self, waits: list[Wait]) -> None:
        """The calls are in a job at the provider; those that another process has sent wait for its job."""
        store = self._desk.store
        job = replace(self._job, tag=f"colloquy-{uuid.uuid4().hex}", requests=len(waits))
        with self._desk.owning(job.tag):
            claimed = await asyncio.to_thread(store.claim, job, [wait.key for wait in waits])
            others = [wait for wait in waits if wait.key not in claimed]
            self._place(others, store.items([wait.key for wait in others]))
            if mine := [wait for wait in waits if wait.key in claimed]:
                await self._submit(job, mine)

    async def _submit(self, job: Job, waits: list[Wait]) -> None:
        desk, path = self._desk, self._desk.input_file(job.tag)
        for wait in waits:
            wait.tag = job.tag
        try:
            await asyncio.to_thread(write_lines, path, waits)
            job_id = await submit(desk, job.tag, path, job.model)
        except Undecided:
            raise
        except (ProviderFailure, ModelUnavailable) as refusal:
            desk.store.drop(job.tag)
            self._refused(waits, refusal)
        else:
            desk.store.submitted(job.tag, job_id)
            log.info("batch job %s: %s requests to %s submitted.", job_id, f"{len(waits):,}", job.model)
            self.follow(replace(job, requests=len(waits)), is_new=True)

    async def _follow(self, job: Job, is_new: bool) -> None:
        def note(status: JobStatus) -> None:
            self.following[job.tag].done = status.done or 0
            self._changed()

        try:
            ended = await follow(self._desk_for(job), job.tag, is_new=is_new, on_status=note)
            del self.following[job.tag]
            self._deliver(job.tag, ended)
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(self._waiting_for(job.tag), error)
        finally:
            self.following.pop(job.tag, None)
            self._changed()

    def _waiting_for(self, tag: str) -> list[Wait]:
        return [wait for wait in self._waits.values() if wait.tag == tag]

    def _deliver(self, tag: str, job: Job | None) -> None:
        """Replies and failures to those who wait for them; the others gather again, or hear why not."""
        waits = self._waiting_for(tag)
        items = self._desk.store.items([wait.key for wait in waits])
        left = []
        for wait in waits:
            item = items.get(wait.key)
            if item is not None and item.tag == tag and item.outcome is not None:
                self._settle(wait, item.outcome)
            else:
                left.append(wait)
        if job is not None and job.failure is not None:
            self._refused(left, job.failure)
            return
        self._refusals = 0
        for wait in left:
            wait.jobs += job is not None
        self._fail(
            [wait for wait in left if wait.jobs == LONGEST_LIFE],
            ProviderFailure("timeout", f"{LONGEST_LIFE} batch jobs ended without a reply to this request"),
        )
        self._place([wait for wait in left if wait.jobs < LONGEST_LIFE], items)

    def _refused(self, waits: list[Wait], refusal: ProviderFailure | ModelUnavailable) -> None:
        """The provider has not taken a job, or has thrown it out.

        Where its queue is full the calls wait for room. With no other job of ours in the queue it is the job
        that is too large: the next ones are half as large.
        """
        if not waits:
            return
        provider_is_full = isinstance(refusal, ProviderFailure) and refusal.kind == "rate_limited"
        if not provider_is_full or (len(waits) == 1 and not self.following):
            self._fail(waits, refusal)
            return
        if not self.following:
            self.gathering.per_job = len(waits) // 2
        self._hold_seconds = self._desk.pause_seconds(self._refusals)
        self._refusals += 1
        log.warning(
            "the provider's queue for %s is full (%s). %s requests wait %.0f s and go on in jobs of at most %s;"
            " llm.batch.requests_per_job sets that number.",
            self._job.model,
            refusal,
            f"{len(waits):,}",
            self._hold_seconds,
            f"{self.gathering.per_job:,}",
        )
        self._gather(waits)

    def _settle(self, wait: Wait, outcome: RawReply | BaseException) -> None:
        if self._waits.pop(wait.key, None) is None:
            return
        self.completed += 1
        if isinstance(outcome, RawReply):
            wait.future.set_result(outcome)
            return
        wait.future.set_exception(_own(outcome))
        if wait.callers == 0:
            wait.future.exception()  # nobody is left to hear of it

    def _fail(self, waits: Iterable[Wait], error: Exception) -> None:
        for wait in waits:
            self._settle(wait, error)


def _own(error: BaseException) -> BaseException:
    """A failure for one caller alone: the engine writes on it."""
    if isinstance(error, ProviderFailure):
        return ProviderFailure(error.kind, str(error))
    return ModelUnavailable(str(error)) if isinstance(error, ModelUnavailable) else error
