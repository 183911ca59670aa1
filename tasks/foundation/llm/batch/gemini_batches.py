"""Gemini's batch API: requests go in an uploaded JSONL file, replies come back in another.

    {"key": "ab12…", "request": {"contents": […], "generationConfig": {…}}}
    {"key": "ab12…", "response": {…}}     or     {"key": "ab12…", "error": {"code": 3, "message": "…"}}

Never inline: inline replies have come back in another order and without the metadata that would tell
whose they are. Neither can the SDK put a model's `extra_body` into inline requests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.genai import errors, types

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.batch.api import ASK_SECONDS, TRANSFER_SECONDS, JobStatus, Refusal, Result, named
from tasks.foundation.llm.failures import Gone, ProviderFailure
from tasks.foundation.llm.providers.google_genai import GoogleProvider, config_of, contents_of
from tasks.foundation.llm.request import ModelSpec, ProviderCall

PAGE = 100

_STATES = {
    "JOB_STATE_SUCCEEDED": "completed",
    "JOB_STATE_PARTIALLY_SUCCEEDED": "completed",
    "JOB_STATE_EXPIRED": "expired",
    "JOB_STATE_CANCELLED": "cancelled",
    "JOB_STATE_FAILED": "failed",
}
"""A job's last words; every other word means that it still runs."""

_HTTP_OF_RPC = {
    1: 499,
    2: 500,
    3: 400,
    4: 504,
    5: 404,
    6: 409,
    7: 403,
    8: 429,
    9: 400,
    10: 409,
    11: 400,
    12: 501,
    13: 500,
    14: 503,
    15: 500,
    16: 401,
}
"""Errors of single requests carry the numbers of google.rpc.Code, not those of HTTP."""


class GeminiBatches:
    """The batch API of one Gemini endpoint."""

    max_requests = 50_000
    max_bytes = 2_000_000_000

    def __init__(self, spec: ModelSpec) -> None:
        self._provider = GoogleProvider(spec)
        self._client = self._provider.client.aio

    def line(self, key: str, call: ProviderCall) -> bytes:
        return json.dumps({"key": key, "request": body_of(call)}, separators=(",", ":")).encode() + b"\n"

    async def upload(self, path: Path, tag: str) -> str:
        with self._provider.failures(TRANSFER_SECONDS):
            async with asyncio.timeout(TRANSFER_SECONDS):
                file = await self._client.files.upload(
                    file=str(path), config=types.UploadFileConfig(display_name=tag, mime_type="application/jsonl")
                )
            return named(file.name, "file")

    async def create(self, file: str, tag: str, model: str) -> str:
        with self._provider.failures(ASK_SECONDS):
            async with asyncio.timeout(ASK_SECONDS):
                job = await self._client.batches.create(
                    model=model, src=file, config=types.CreateBatchJobConfig(display_name=tag)
                )
            return named(job.name, "job")

    async def find(self, tag: str) -> str | None:
        with self._provider.failures(TRANSFER_SECONDS):
            async with asyncio.timeout(TRANSFER_SECONDS):
                jobs = await self._client.batches.list(config=types.ListBatchJobsConfig(page_size=PAGE))
                async for job in jobs:
                    if job.display_name == tag:
                        return named(job.name, "job")
        return None

    async def status(self, job_id: str) -> JobStatus:
        with self._provider.failures(ASK_SECONDS):
            async with asyncio.timeout(ASK_SECONDS):
                try:
                    job = await self._client.batches.get(name=job_id)
                except errors.ClientError as error:
                    if error.code == 404:
                        raise Gone from None
                    raise
                return await self._status(job_id, job)

    async def download(self, file: str, path: Path) -> None:
        with self._provider.failures(TRANSFER_SECONDS):
            async with asyncio.timeout(TRANSFER_SECONDS):
                try:
                    await self._client.files.download(file=file, destination=str(path))
                except errors.ClientError as error:
                    if error.code in (403, 404):  # both are said of a file that is no more
                        raise Gone from None
                    raise

    def read(self, line: bytes) -> Result:
        item = json.loads(line)
        key, response = item["key"], item.get("response")
        if response is None:
            return Result(key, self._failure_of(item.get("error") or item.get("status") or {}))
        try:
            return Result(key, self._provider.read_body(response))
        except (ProviderFailure, ModelUnavailable) as refusal:
            return Result(key, refusal)

    async def cancel(self, job_id: str) -> None:
        with self._provider.failures(ASK_SECONDS):
            await self._client.batches.cancel(name=job_id)

    async def close(self) -> None:
        await self._provider.close()

    async def _status(self, job_id: str, job: types.BatchJob) -> JobStatus:
        state: Any = _STATES.get(job.state.name if job.state else "", "running")
        if state == "running":
            return JobStatus("running")
        ended = job.end_time or job.update_time
        return JobStatus(
            state,
            files=(job.dest.file_name,) if job.dest and job.dest.file_name else (),
            seconds=(ended - job.create_time).total_seconds() if ended and job.create_time else None,
            failure=await self._refusal(job_id) if state == "failed" else None,
        )

    async def _refusal(self, job_id: str) -> Refusal:
        """Why the job failed as a whole. The SDK's job has no place for it, so the raw answer is read."""
        raw = await self._provider.client._api_client.async_request("get", job_id, {}, None)
        return self._failure_of(json.loads(raw.body or "{}").get("error") or {})

    def _failure_of(self, error: Mapping[str, Any]) -> Refusal:
        code = int(error.get("code") or 13)
        told = {"status": error.get("status"), "message": error.get("message") or "the provider gives no reason"}
        return self._provider.failure(_HTTP_OF_RPC.get(code, code), told, {})


def body_of(call: ProviderCall) -> dict[str, Any]:
    """What a live call would post (the SDK makes it itself there); `extra_body` is laid over it."""
    config = config_of(call)
    settings = {
        "temperature": config.temperature,
        "maxOutputTokens": config.max_output_tokens,
        "seed": config.seed,
        "responseMimeType": config.response_mime_type,
        "responseJsonSchema": config.response_json_schema,
    }
    body: dict[str, Any] = {
        "contents": [content.model_dump(mode="json", exclude_none=True) for content in contents_of(call.messages)],
        "generationConfig": {name: value for name, value in settings.items() if value is not None},
    }
    if config.system_instruction:
        body["systemInstruction"] = {"role": "user", "parts": [{"text": config.system_instruction}]}
    return _laid_over(body, call.model.extra_body)


def _laid_over(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(body)
    for name, value in extra.items():
        inner = merged.get(name)
        both = isinstance(inner, Mapping) and isinstance(value, Mapping)
        merged[name] = _laid_over(inner, value) if both else value  # type: ignore[arg-type]
    return merged
