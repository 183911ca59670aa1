"""Any endpoint that speaks OpenAI's chat completions: OpenAI, Azure, vLLM, Ollama, a llama.cpp server,
and the compatible endpoints of Anthropic, DeepSeek and others; and OpenAI's batch API.

The official SDK sends; its retries are off and its response models unused: the body is read here, so
that usage and text survive whatever is wrong with it, and HTTP 200 with an error in it is the error.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import openai
import orjson
from openai.types import Batch

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.batch import ASK_SECONDS, TRANSFER_SECONDS, JobStatus, Refusal, Result, check_name
from tasks.foundation.llm.failures import Gone, ProviderFailure, classify_failure, error_text, read_retry_after
from tasks.foundation.llm.limits.rates import read_quota
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.providers.bodies import (
    as_fields,
    as_items,
    as_text,
    read_refusal,
    read_text,
    read_usage,
    request_body,
)
from tasks.foundation.llm.providers.wire import HttpProvider, http_client
from tasks.foundation.llm.redaction import brief
from tasks.foundation.llm.request import ProviderCall, RawReply

_FINISH = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "repetition_truncation": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "sensitive": "content_filter",
    "refusal": "refusal",
}
"""Vendors' words for how a reply ended → ours; other words than these two lists' mean that it stopped by itself."""

_BROKEN_OFF = {"error", "network_error", "abort", "insufficient_system_resource"}
"""The endpoint gave up; what it had written so far is no reply."""

_STATUS_OF_ERROR = {
    "rate_limit": 429,
    "too_many_requests": 429,
    "throttl": 429,
    "overloaded": 503,
    "unavailable": 503,
    "authentication": 401,
    "permission": 403,
    "invalid_request": 400,
    "timeout": 504,
}
"""For HTTP 200 with an error body that has no number: words of its type or code → the status it means."""

_TAG = "colloquy_tag"
"""The name of our mark in a job's metadata."""

_PAGE = 100

_STATES = {"completed": "completed", "expired": "expired", "cancelled": "cancelled", "failed": "failed"}
"""A job's last words; every other word means that it still runs."""

_NEVER_RUN = {"batch_expired", "batch_cancelled"}


class OpenAIProvider(HttpProvider):
    """Calls one endpoint with one key; `spec` gives both, each call's own model the rest."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self.client = openai.AsyncOpenAI(
            api_key=self._key,
            base_url=self._url,
            max_retries=0,
            http_client=http_client(),
        )

    async def call(self, call: ProviderCall) -> RawReply:
        """One POST. The time limit covers the whole call, also a server that trickles or hangs."""
        started = time.monotonic()
        body = orjson.dumps(request_body(call), option=orjson.OPT_NON_STR_KEYS)
        async with self.asking(call.model.timeout_seconds):
            response = await self.client.post(
                "/chat/completions",
                cast_to=httpx2.Response,
                content=body,
                options={"timeout": call.model.timeout_seconds, "headers": {"Content-Type": "application/json"}},
            )
        reply = self.read(response.content)  # bytes: a body that is not UTF-8 is to be noticed
        return replace(
            reply,
            seed_sent=call.seed,
            latency_seconds=time.monotonic() - started,
            quota=read_quota(response.headers, time.time()),
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self.client.close()

    def read_body(self, body: Mapping[str, Any]) -> RawReply:
        if body.get("error"):
            raise self.failure(body["error"])
        choices = as_items(body.get("choices"))
        if not choices:
            raise ProviderFailure("server", f"the body has no choices: {brief(body, [self._key])}")
        choice = choices[0]
        if choice.get("error"):
            raise self.failure(choice["error"])
        ended = str(choice.get("finish_reason")).lower()
        if ended in _BROKEN_OFF:
            raise ProviderFailure("server", f"the endpoint broke off the reply ({ended})")
        message = as_fields(choice.get("message"))
        refusal = read_refusal(message)
        text = refusal or read_text(message)
        return RawReply(
            text=text,
            usage=read_usage(body.get("usage"), text),
            finish_reason="refusal" if refusal else _FINISH.get(ended, "stop"),
            model_reported=as_text(body.get("model")),
        )

    def status_failure(self, error: Exception) -> ProviderFailure | ModelUnavailable | None:
        if not isinstance(error, openai.APIStatusError):
            return None
        headers = error.response.headers
        if 300 <= error.status_code < 400:
            return self.redirect_failure(error.response)
        failure = classify_failure(
            error.status_code,
            error_text(error.body) or error.message,
            retry_after_seconds=read_retry_after(headers),
            secrets=[self._key],
        )
        if isinstance(failure, ProviderFailure):
            failure.quota = read_quota(headers, time.time())
        return failure

    def failure(self, error: Any, status: int | None = None) -> ProviderFailure | ModelUnavailable:
        """The exception for an error in a body. Without a `status` (it came with HTTP 200) its numeric code
        counts, else the words of its type or code, else its sentences."""
        if status is None:
            fields = as_fields(error)
            words = f"{fields.get('code') or ''} {fields.get('type') or ''}".lower().replace("-", "_")
            number = re.search(r"\b[45]\d\d\b", words)
            named = (value for word, value in _STATUS_OF_ERROR.items() if word in words)
            status = int(number.group()) if number else next(named, 200)
        return classify_failure(status, error_text(error), secrets=[self._key])


class OpenAIBatches:
    """The batch API of one OpenAI-compatible endpoint: a JSONL file is uploaded, a job over it created, and its output
    files read. One line in, one line out, in any order:

        {"custom_id": "ab12…", "method": "POST", "url": "/v1/chat/completions", "body": {…}}
        {"custom_id": "ab12…", "response": {"status_code": 200, "body": {…}}, "error": null}

    Requests that failed are in a second file of the same form; those a job did not come to before it
    expired are there with the error `batch_expired`.
    """

    max_requests = 50_000
    max_bytes = 200_000_000

    def __init__(self, spec: ModelSpec) -> None:
        self._live = OpenAIProvider(spec)
        self._client = self._live.client

    def line(self, key: str, call: ProviderCall) -> bytes:
        request = {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": request_body(call)}
        return json.dumps(request, separators=(",", ":")).encode() + b"\n"

    async def upload(self, path: Path, tag: str) -> str:
        with path.open("rb") as file:
            async with self._live.asking(TRANSFER_SECONDS):
                uploaded = await self._client.files.create(
                    file=(f"{tag}.jsonl", file), purpose="batch", timeout=TRANSFER_SECONDS
                )
                return check_name(uploaded.id, "file")

    async def create(self, file: str, tag: str, model: str) -> str:
        async with self._live.asking(ASK_SECONDS):
            batch = await self._client.batches.create(
                input_file_id=file,
                endpoint="/v1/chat/completions",
                completion_window="24h",
                metadata={_TAG: tag},
                timeout=ASK_SECONDS,
            )
            return check_name(batch.id, "job")

    async def find(self, tag: str) -> str | None:
        async with self._live.asking(TRANSFER_SECONDS):
            async for batch in self._client.batches.list(limit=_PAGE, timeout=ASK_SECONDS):
                if (batch.metadata or {}).get(_TAG) == tag:
                    return check_name(batch.id, "job")
        return None

    async def status(self, job_id: str) -> JobStatus:
        async with self._live.asking(ASK_SECONDS):
            try:
                batch = await self._client.batches.retrieve(job_id, timeout=ASK_SECONDS)
            except openai.NotFoundError:
                raise Gone from None
            return self._read_status(batch)

    async def download(self, file: str, path: Path) -> None:
        async with self._live.asking(TRANSFER_SECONDS):
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
            return Result(key, self._live.failure(error or {"message": "neither a response nor an error"}))
        status, body = response["status_code"], response["body"]
        if status != 200:
            return Result(key, self._live.failure(body.get("error") or body, status))
        return Result.read(key, lambda: self._live.read_body(body))

    async def close(self) -> None:
        await self._live.close()

    def _read_status(self, batch: Batch) -> JobStatus:
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
            failure=self._read_refusal(batch) if state == "failed" else None,
        )

    def _read_refusal(self, batch: Batch) -> Refusal:
        """Why the job as a whole was refused; a full queue is the one reason that passes."""
        errors = (batch.errors and batch.errors.data) or []
        first = errors[0].to_dict() if errors else {"message": "the provider gives no reason"}
        queue_is_full = first.get("code") == "token_limit_exceeded"
        return self._live.failure(first, 429 if queue_is_full else 400)
