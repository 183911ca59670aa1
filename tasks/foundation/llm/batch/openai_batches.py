"""OpenAI's batch API: a JSONL file is uploaded, a job over it created, and its output files read.

One line in, one line out, in any order:

    {"custom_id": "ab12…", "method": "POST", "url": "/v1/chat/completions", "body": {…}}
    {"custom_id": "ab12…", "response": {"status_code": 200, "body": {…}}, "error": null}

Requests that failed are in a second file of the same form; those a job did not come to before it
expired are there with the error `batch_expired`.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import openai
from openai.types import Batch

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.batch.api import ASK_SECONDS, TRANSFER_SECONDS, JobStatus, Refusal, Result, named
from tasks.foundation.llm.failures import Gone, ProviderFailure
from tasks.foundation.llm.providers.openai_compatible import OpenAIProvider, body_of
from tasks.foundation.llm.request import ModelSpec, ProviderCall

TAG = "colloquy_tag"
"""The name of our mark in a job's metadata."""

PAGE = 100

_STATES = {"completed": "completed", "expired": "expired", "cancelled": "cancelled", "failed": "failed"}
"""A job's last words; every other word means that it still runs."""

_NEVER_RUN = {"batch_expired", "batch_cancelled"}


class OpenAIBatches:
    """The batch API of one OpenAI-compatible endpoint."""

    max_requests = 50_000
    max_bytes = 200_000_000

    def __init__(self, spec: ModelSpec) -> None:
        self._provider = OpenAIProvider(spec)
        self._client = self._provider.client

    def line(self, key: str, call: ProviderCall) -> bytes:
        request = {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": body_of(call)}
        return json.dumps(request, separators=(",", ":")).encode() + b"\n"

    async def upload(self, path: Path, tag: str) -> str:
        with self._provider.failures(TRANSFER_SECONDS), path.open("rb") as file:
            async with asyncio.timeout(TRANSFER_SECONDS):
                uploaded = await self._client.files.create(
                    file=(f"{tag}.jsonl", file), purpose="batch", timeout=TRANSFER_SECONDS
                )
            return named(uploaded.id, "file")

    async def create(self, file: str, tag: str, model: str) -> str:
        with self._provider.failures(ASK_SECONDS):
            async with asyncio.timeout(ASK_SECONDS):
                batch = await self._client.batches.create(
                    input_file_id=file,
                    endpoint="/v1/chat/completions",
                    completion_window="24h",
                    metadata={TAG: tag},
                    timeout=ASK_SECONDS,
                )
            return named(batch.id, "job")

    async def find(self, tag: str) -> str | None:
        with self._provider.failures(TRANSFER_SECONDS):
            async with asyncio.timeout(TRANSFER_SECONDS):
                async for batch in self._client.batches.list(limit=PAGE, timeout=ASK_SECONDS):
                    if (batch.metadata or {}).get(TAG) == tag:
                        return named(batch.id, "job")
        return None

    async def status(self, job_id: str) -> JobStatus:
        with self._provider.failures(ASK_SECONDS):
            async with asyncio.timeout(ASK_SECONDS):
                try:
                    batch = await self._client.batches.retrieve(job_id, timeout=ASK_SECONDS)
                except openai.NotFoundError:
                    raise Gone from None
            return self._status(batch)

    async def download(self, file: str, path: Path) -> None:
        with self._provider.failures(TRANSFER_SECONDS):
            async with asyncio.timeout(TRANSFER_SECONDS):
                try:
                    content = self._client.files.with_streaming_response.content(file, timeout=TRANSFER_SECONDS)
                    async with content as response:
                        await response.stream_to_file(path)
                except openai.NotFoundError:
                    raise Gone from None

    def read(self, line: bytes) -> Result:
        item = json.loads(line)
        key, response, error = item["custom_id"], item.get("response"), item.get("error")
        if error and error.get("code") in _NEVER_RUN:
            return Result(key, None)
        if error or not response:
            return Result(key, self._provider.failure(error or {"message": "neither a response nor an error"}))
        status, body = response["status_code"], response["body"]
        try:
            if status != 200:
                return Result(key, self._provider.failure(body.get("error") or body, status))
            return Result(key, self._provider.read_body(body))
        except (ProviderFailure, ModelUnavailable) as refusal:
            return Result(key, refusal)

    async def cancel(self, job_id: str) -> None:
        with self._provider.failures(ASK_SECONDS):
            await self._client.batches.cancel(job_id, timeout=ASK_SECONDS)

    async def close(self) -> None:
        await self._provider.close()

    def _status(self, batch: Batch) -> JobStatus:
        state: Any = _STATES.get(batch.status, "running")
        counts = batch.request_counts
        done = counts.completed + counts.failed if counts else None
        if state == "running":
            return JobStatus("running", done)
        ended = batch.completed_at or batch.expired_at or batch.cancelled_at or batch.failed_at
        return JobStatus(
            state,
            done,
            files=tuple(file for file in (batch.output_file_id, batch.error_file_id) if file),
            seconds=max(0.0, ended - batch.created_at) if ended else None,
            failure=self._refusal(batch) if state == "failed" else None,
        )

    def _refusal(self, batch: Batch) -> Refusal:
        """Why the job as a whole was refused; a full queue is the one reason that passes."""
        errors = (batch.errors and batch.errors.data) or []
        first = errors[0].to_dict() if errors else {"message": "the provider gives no reason"}
        queue_is_full = first.get("code") == "token_limit_exceeded"
        return self._provider.failure(first, 429 if queue_is_full else 400)
