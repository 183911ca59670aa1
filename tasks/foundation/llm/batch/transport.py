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
from tasks.foundation.llm.batch.bench import Bench
from tasks.foundation.llm.batch.gathering import Gathering
from tasks.foundation.llm.batch.job_store import KEPT, JobStore
from tasks.foundation.llm.batch.jobs import Endpoint, Job
from tasks.foundation.llm.batch.lane import Lane
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
        self._benches: dict[Endpoint, Bench] = {}
        self._lanes: dict[tuple[Endpoint, str], Lane] = {}

    async def call(self, call: ProviderCall) -> RawReply:
        """The reply, after minutes or hours. Failures are those of a live call, for this call alone;
        ModelUnavailable also when a job is refused as a whole or cancelled at the provider."""
        return await self._lane(call.model).ask(call)

    async def close(self) -> None:
        """Closes the clients. Jobs that have not ended go on at the provider, and a line of the log says so."""
        ways = [lane.under_way() for lane in self._lanes.values()]
        jobs, requests = len(set().union(*(tags for tags, _ in ways))), sum(n for _, n in ways)
        for lane in self._lanes.values():
            await lane.close()
        if jobs:
            log.warning(
                "%s batch job%s at the provider with %s requests of this run: there the work goes on. The same"
                " command takes the replies from there and sends nothing twice.",
                jobs,
                "" if jobs == 1 else "s",
                f"{requests:,}",
            )
        self._lanes.clear()
        for bench in self._benches.values():
            await bench.api.close()
        self._benches.clear()
        self._store.close()

    def _lane(self, spec: ModelSpec) -> Lane:
        job = Job("", spec.provider, spec.base_url, spec.api_key_env, spec.api_version, spec.name)
        key = (job.endpoint, job.model)
        if key not in self._lanes:
            api = self._bench_for(job).api
            gathering = Gathering(min(self._requests_per_job, api.max_requests), api.max_bytes, self._gather_seconds)
            lane = self._lanes[key] = Lane(job, gathering, self._bench_for, self._count)
            for left in self._store.open_jobs():
                if (left.endpoint, left.model) == key:
                    log.info("batch job %s with %s requests is still open; waiting for it.", left.name, left.requests)
                    lane.follow(left)
        return self._lanes[key]

    def _bench_for(self, job: Job) -> Bench:
        if job.endpoint not in self._benches:
            api = self._make_api(job.spec())
            self._benches[job.endpoint] = Bench(api, self._store, self._files, self._poll_seconds, self._sleep)
        return self._benches[job.endpoint]

    def _count(self) -> None:
        lanes, progress = self._lanes.values(), self.progress
        jobs = [job for lane in lanes for job in lane.following.values()]
        progress.jobs_open = len(jobs)
        progress.in_jobs = sum(job.requests for job in jobs)
        progress.done_in_jobs = sum(job.done for job in jobs)
        progress.gathering = sum(len(lane.gathering) for lane in lanes)
        progress.completed = sum(lane.completed for lane in lanes)
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
