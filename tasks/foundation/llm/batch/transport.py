"""`BatchTransport`: a provider for the engine whose calls travel in batch jobs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from tasks.foundation.llm.batch.api import BatchApi, api_for
from tasks.foundation.llm.batch.desk import JobDesk
from tasks.foundation.llm.batch.gathering import Gathering
from tasks.foundation.llm.batch.job_store import KEPT, JobStore
from tasks.foundation.llm.batch.jobs import Endpoint, Job
from tasks.foundation.llm.batch.model_queue import ModelQueue
from tasks.foundation.llm.batch.progress import BatchProgress
from tasks.foundation.llm.request import ModelSpec, ProviderCall, RawReply

log = logging.getLogger(__name__)

STORE_NAME = "batches.sqlite"
FILES_NAME = "batches"


class BatchTransport:
    """Answers calls to any models with a batch API. Belongs to one event loop; one serves a whole stage run.

    `folder` is that of the reply cache, which `is_cached` asks: answers that are in it need not be kept
    here. A job is cut when `requests_per_job` calls to a model have gathered or none has come for
    `gather_seconds`, and asked after every `poll_seconds`. Jobs of a run that died are taken up with the
    first call to their model.

    A reply's `latency_seconds` is the time from the creation of its job to the job's end, as the provider
    reports it (else by our clock): the same for all requests of a job.
    """

    def __init__(
        self,
        folder: Path,
        *,
        requests_per_job: int,
        gather_seconds: float,
        poll_seconds: float,
        is_cached: Callable[[str], bool],
        apis: Callable[[ModelSpec], BatchApi] = api_for,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.progress = BatchProgress()
        self._files = folder / FILES_NAME
        self._files.mkdir(parents=True, exist_ok=True)
        _remove_old(self._files)
        self._store = JobStore(folder / STORE_NAME)
        self._store.prune(is_cached, datetime.now(UTC))
        self._requests_per_job = requests_per_job
        self._gather_seconds = gather_seconds
        self._poll_seconds = poll_seconds
        self._make_api = apis
        self._sleep = sleep
        self._desks: dict[Endpoint, JobDesk] = {}
        self._queues: dict[tuple[Endpoint, str], ModelQueue] = {}

    async def call(self, call: ProviderCall) -> RawReply:
        """The reply, after minutes or hours. Failures are those of a live call, for this call alone;
        ModelUnavailable also when a job is refused as a whole or cancelled at the provider."""
        return await self._queue(call.model).ask(call)

    async def close(self) -> None:
        """Closes the clients. Jobs that have not ended go on at the provider, and a line of the log says so."""
        ways = [queue.under_way() for queue in self._queues.values()]
        jobs, requests = len(set().union(*(tags for tags, _ in ways))), sum(n for _, n in ways)
        for queue in self._queues.values():
            await queue.close()
        if jobs:
            log.warning(
                "%s batch job%s at the provider with %s requests of this run: there the work goes on. The same"
                " command takes the replies from there and sends nothing twice.",
                jobs,
                "" if jobs == 1 else "s",
                f"{requests:,}",
            )
        self._queues.clear()
        for desk in self._desks.values():
            await desk.api.close()
        self._desks.clear()
        self._store.close()

    def _queue(self, spec: ModelSpec) -> ModelQueue:
        job = Job("", spec.provider, spec.base_url, spec.api_key_env, spec.api_version, spec.name)
        key = (job.endpoint, job.model)
        if key not in self._queues:
            api = self._desk_for(job).api
            gathering = Gathering(min(self._requests_per_job, api.max_requests), api.max_bytes, self._gather_seconds)
            queue = self._queues[key] = ModelQueue(job, gathering, self._desk_for, self._count)
            for left in self._store.open_jobs():
                if (left.endpoint, left.model) == key:
                    log.info("batch job %s with %s requests is still open; waiting for it.", left.name, left.requests)
                    queue.follow(left)
        return self._queues[key]

    def _desk_for(self, job: Job) -> JobDesk:
        if job.endpoint not in self._desks:
            api = self._make_api(job.spec())
            self._desks[job.endpoint] = JobDesk(api, self._store, self._files, self._poll_seconds, self._sleep)
        return self._desks[job.endpoint]

    def _count(self) -> None:
        queues, progress = self._queues.values(), self.progress
        jobs = [job for queue in queues for job in queue.following.values()]
        progress.jobs_open = len(jobs)
        progress.in_jobs = sum(job.requests for job in jobs)
        progress.done_in_jobs = sum(job.done for job in jobs)
        progress.gathering = sum(len(queue.gathering) for queue in queues)
        progress.completed = sum(queue.completed for queue in queues)
        progress.changed()


def _remove_old(folder: Path) -> None:
    """Files that processes left which were killed while they read a job's output."""
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > KEPT.total_seconds():
                path.unlink()


async def cancel_open_jobs(folder: Path, apis: Callable[[ModelSpec], BatchApi] = api_for) -> list[Job]:
    """Asks the providers to cancel every job that has not ended, and returns those jobs.

    What they have answered by then is kept, and paid for; the next run sends the rest anew.
    """
    store = JobStore(folder / STORE_NAME)
    try:
        jobs = [job for job in store.open_jobs() if job.job_id is not None]
        for job in jobs:
            api = apis(job.spec())
            try:
                await api.cancel(job.job_id or "")
            finally:
                await api.close()
    finally:
        store.close()
    return jobs
