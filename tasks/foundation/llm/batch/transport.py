"""`BatchTransport`: a provider for the engine whose calls travel in batch jobs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tasks.foundation.errors import ConfigError
from tasks.foundation.llm.batch import BatchApi
from tasks.foundation.llm.batch.job_client import JobClient
from tasks.foundation.llm.batch.job_store import KEPT, Endpoint, Job, JobStore
from tasks.foundation.llm.batch.model_queue import Collector, ModelQueue
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.request import ProviderCall, RawReply

log = logging.getLogger(__name__)

STORE_NAME = "batches.sqlite"
FILES_NAME = "batches"


def check_batch(stage: str, aliases: Sequence[str], models: Mapping[str, ModelSpec]) -> None:
    """ConfigError naming the models of a stage with `mode: batch` that have no batch API."""
    if lacking := [alias for alias in dict.fromkeys(aliases) if not models[alias].batch]:
        raise ConfigError(_explain_no_batches(f"stage {stage}", lacking))


def make_batch_api(spec: ModelSpec) -> BatchApi:
    """A new client of the model's batch API. ModelUnavailable when the key is not set."""
    if spec.kind.batches is None:
        raise ConfigError(_explain_no_batches(spec.provider, [spec.alias]))
    api: BatchApi = spec.kind.load(spec.kind.batches)(spec)
    return api


def _explain_no_batches(where: str, aliases: Sequence[str]) -> str:
    return (
        f"mode: batch of {where}: expected models with a batch API, found {', '.join(map(repr, aliases))} without"
        " one. Set mode: live, choose other models, or say `batch: true` in their entry of configs/models.yaml"
        " where the endpoint has OpenAI's or Gemini's batch API."
    )


@dataclass(slots=True)
class BatchProgress:
    """How far the batch jobs of this process are: counts that a progress line may show."""

    jobs_open: int = 0
    gathering: int = 0
    """Requests not yet in a job."""
    in_jobs: int = 0
    """Requests whose job this process waits for."""
    done_in_jobs: int = 0
    """Of the requests in open jobs, those the provider says it has worked on."""
    completed: int = 0
    """Requests answered or failed so far."""
    watchers: list[Callable[[BatchProgress], None]] = field(default_factory=list)
    """Called after every change; they must be quick."""

    def changed(self) -> None:
        for watcher in self.watchers:
            watcher(self)

    def sentence(self) -> str:
        """`2 batch jobs open (3,400 of 10,000 requests done), 120 gathering, 5,000 completed`."""
        jobs = f"{self.jobs_open:,} batch job{'' if self.jobs_open == 1 else 's'} open"
        return (
            f"{jobs} ({self.done_in_jobs:,} of {self.in_jobs:,} requests done),"
            f" {self.gathering:,} gathering, {self.completed:,} completed"
        )


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
        apis: Callable[[ModelSpec], BatchApi] = make_batch_api,
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
        self._clients: dict[Endpoint, JobClient] = {}
        self._queues: dict[tuple[Endpoint, str], ModelQueue] = {}

    async def call(self, call: ProviderCall) -> RawReply:
        """The reply, after minutes or hours. Failures are those of a live call, for this call alone;
        ModelUnavailable also when a job is refused as a whole or cancelled at the provider."""
        return await self._find_queue(call.model).ask(call)

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
        for client in self._clients.values():
            await client.api.close()
        self._clients.clear()
        self._store.close()

    def _find_queue(self, spec: ModelSpec) -> ModelQueue:
        job = Job("", spec.provider, spec.base_url, spec.api_key_env, spec.api_version, spec.name)
        key = (job.endpoint, job.model)
        if key not in self._queues:
            api = self._client_for(job).api
            collector = Collector(min(self._requests_per_job, api.max_requests), api.max_bytes, self._gather_seconds)
            queue = self._queues[key] = ModelQueue(job, collector, self._client_for, self._update_progress)
            for left in self._store.open_jobs():
                if (left.endpoint, left.model) == key:
                    log.info("batch job %s with %s requests is still open; waiting for it.", left.name, left.requests)
                    queue.follow(left)
        return self._queues[key]

    def _client_for(self, job: Job) -> JobClient:
        if job.endpoint not in self._clients:
            api = self._make_api(job.spec())
            self._clients[job.endpoint] = JobClient(api, self._store, self._files, self._poll_seconds, self._sleep)
        return self._clients[job.endpoint]

    def _update_progress(self) -> None:
        queues, progress = self._queues.values(), self.progress
        jobs = [job for queue in queues for job in queue.following.values()]
        progress.jobs_open = len(jobs)
        progress.in_jobs = sum(job.requests for job in jobs)
        progress.done_in_jobs = sum(job.done for job in jobs)
        progress.gathering = sum(len(queue.collector) for queue in queues)
        progress.completed = sum(queue.completed for queue in queues)
        progress.changed()


def _remove_old(folder: Path) -> None:
    """Files that processes left which were killed while they read a job's output."""
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > KEPT.total_seconds():
                path.unlink()
