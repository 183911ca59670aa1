"""A job from its intent to the store: asked after until it ends, however the provider feels meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from tasks.foundation.errors import BuildBusy, ModelError, ModelUnavailable
from tasks.foundation.llm.batch.api import JobStatus, Refusal
from tasks.foundation.llm.batch.desk import JobDesk
from tasks.foundation.llm.batch.jobs import Job
from tasks.foundation.llm.batch.landing import land
from tasks.foundation.llm.batch.submitting import seek
from tasks.foundation.llm.failures import Gone

log = logging.getLogger(__name__)


async def follow(desk: JobDesk, tag: str, *, is_new: bool, on_status: Callable[[JobStatus], None]) -> Job | None:
    """The ended job, all it gave being in the store; None when it turns out that there never was one.

    `is_new`: this process has just submitted it. A job that is cancelled while it is followed ends with
    ModelUnavailable: somebody wants it to stop.
    """
    job = desk.store.job(tag)
    if job is not None and job.state == "intended":
        job = await _settle(desk, job)
    running = is_new
    while job is not None and job.state != "ended":
        if running:
            await desk.sleep(desk.poll_seconds)
            job = desk.store.job(tag) or job
            if job.state == "ended":  # another process has read it
                break
        status = await _status_of(desk, job)
        if status is not None and status.state == "running":
            running = True
            on_status(status)
            continue
        await _end(desk, job, status, running)
        job = desk.store.job(tag)
    return job


async def _settle(desk: JobDesk, job: Job) -> Job | None:
    """Whether an intended job exists at its provider. While its process lives, that one knows best."""
    while True:
        try:
            with desk.owning(job.tag):
                current = desk.store.job(job.tag)
                if current is None or current.state != "intended":
                    return current
                job_id = await seek(desk, job.tag)
                if job_id is None:
                    log.info("batch job %s was never submitted; its requests are sent anew.", job.tag)
                    desk.store.drop(job.tag)
                    return None
                log.info("batch job %s was submitted by a run that died; its replies are taken over.", job_id)
                desk.store.submitted(job.tag, job_id)
                return desk.store.job(job.tag)
        except BuildBusy:
            await desk.sleep(desk.poll_seconds)


async def _status_of(desk: JobDesk, job: Job) -> JobStatus | None:
    """None: the provider does not know the job."""
    job_id = job.job_id or ""
    try:
        return await desk.persist(f"batch job {job.name}", lambda: desk.api.status(job_id))
    except Gone:
        return None


async def _end(desk: JobDesk, job: Job, status: JobStatus | None, was_running: bool) -> None:
    if status is None:
        log.warning("batch job %s is unknown to the provider; its requests are sent anew.", job.name)
        await asyncio.to_thread(desk.store.end, job.tag, "gone")
        return
    landing = await land(desk, job, status)
    failure = _failure(job, status, was_running)
    await asyncio.to_thread(desk.store.end, job.tag, status.state, failure)
    level = logging.WARNING if failure else logging.INFO
    told = f" {failure}" if failure else ""
    log.log(level, "batch job %s %s: %s.%s", job.name, status.state, landing.sentence(job.requests), told)


def _failure(job: Job, status: JobStatus, was_running: bool) -> Refusal | None:
    """What the requests without a reply are told; None: they are sent anew."""
    if status.state == "cancelled" and was_running:
        return ModelUnavailable(
            f"Batch job {job.name} was cancelled at the provider. What it had answered is kept;"
            " the same command sends the rest again."
        )
    failure = status.failure
    if isinstance(failure, ModelError) and not failure.may_pass_later:
        return ModelUnavailable(f"The provider refuses batch job {job.name} as a whole. {failure}")
    return failure
