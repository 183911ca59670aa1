"""Handing a job to the provider, so that it is there once or not at all."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from tasks.foundation.errors import FailureKind, ModelUnavailable
from tasks.foundation.llm.batch.desk import JobDesk
from tasks.foundation.llm.failures import ProviderFailure

TRIES = 5

UNCLEAR: tuple[FailureKind, ...] = ("timeout", "connection", "server")
"""Failures after which a job may exist all the same."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class Undecided(ModelUnavailable):
    """Whether the job exists cannot be told now; the next run looks again."""


async def submit(desk: JobDesk, tag: str, path: Path, model: str) -> str:
    """The new job's id. ProviderFailure or ModelUnavailable: there is certainly no job. Else Undecided."""
    file = await _try(desk, "upload", lambda: desk.api.upload(path, tag))

    async def create() -> str:
        try:
            return await desk.api.create(file, tag, model)
        except ProviderFailure as error:
            found = await seek(desk, tag) if error.kind in UNCLEAR else None
            if found is None:
                raise
            return found

    return await _try(desk, "creation", create)


async def seek(desk: JobDesk, tag: str) -> str | None:
    """The id of the job with this tag; None when two looks, a poll apart, have not found it."""
    for look in range(2):
        if look:
            await desk.sleep(desk.poll_seconds)
        try:
            found = await desk.persist(f"looking for batch job {tag}", lambda: desk.api.find(tag))
        except ModelUnavailable as error:
            raise Undecided(str(error)) from None
        if found is not None:
            return found
    return None


async def _try(desk: JobDesk, what: str, ask: Callable[[], Awaitable[T]]) -> T:
    failed = 0
    while True:
        try:
            return await ask()
        except ProviderFailure as error:
            failed += 1
            pause = desk.pause_seconds(failed - 1, error)
            if failed == TRIES or not _may_pass(error):
                raise
            log.info("%s of a batch job: %s. Trying again in %.0f s.", what, error, pause)
            await desk.sleep(pause)


def _may_pass(error: ProviderFailure) -> bool:
    """OpenAI at times does not know a file that it has just taken."""
    return error.may_pass_later or "cannot find file" in str(error).lower()
