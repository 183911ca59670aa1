"""Gemini, live and in batches, through Google's own SDK.

Traps met: the SDK's time limit is in milliseconds; over aiohttp it repeats a failed connection by
itself unless retry options are given; Retry-After comes as a `RetryInfo` in the body; thoughts are
counted beside the completion. The raw body is asked for and read here.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
from google import genai
from google.genai import errors, types

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.batch import ASK_SECONDS, TRANSFER_SECONDS, JobStatus, Refusal, Result, check_name
from tasks.foundation.llm.failures import Gone, ProviderFailure, classify_failure, error_text, read_retry_after
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.providers.bodies import as_fields, as_items, as_text, combine_usage, read_count
from tasks.foundation.llm.providers.wire import HttpProvider, http_client
from tasks.foundation.llm.redaction import brief
from tasks.foundation.llm.request import Message, ProviderCall, RawReply, Usage

API_VERSION = "v1beta"
"""Pinned: the SDK's own default moves; JSON schemas need this one."""

_LENGTH = {"MAX_TOKENS", "CONTINUATION"}
_FILTERED = {
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MODEL_ARMOR",
    "ESCALATION",
    "PUP_LIMITED_DISABLED",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
}
_BROKEN_OFF = {
    "OTHER",
    "MALFORMED_RESPONSE",
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "IMAGE_OTHER",
    "NO_IMAGE",
}
"""The model stopped in the midst of it: the text is not whole, so it counts as cut off and is asked for again."""

_RPC_STATUS = {
    "CANCELLED": 499,
    "UNKNOWN": 500,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DATA_LOSS": 500,
    "UNAUTHENTICATED": 401,
}
"""google.rpc.Code → the HTTP status it means, in the order of its numbers from 1 on. The body of an error names it; the
error of a single request in a batch carries its number."""

_STATES = {
    "JOB_STATE_SUCCEEDED": "completed",
    "JOB_STATE_PARTIALLY_SUCCEEDED": "completed",
    "JOB_STATE_EXPIRED": "expired",
    "JOB_STATE_CANCELLED": "cancelled",
    "JOB_STATE_FAILED": "failed",
}
"""A job's last words; every other word means that it still runs."""


class GoogleProvider(HttpProvider):
    """Calls one Gemini endpoint with one key."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self._http = http_client()
        self._http.event_hooks = {"response": [_must_be_utf8]}
        self.client = genai.Client(
            api_key=self._key,
            vertexai=False,
            http_options=types.HttpOptions(
                base_url=spec.base_url,
                api_version=spec.api_version or API_VERSION,
                retry_options=types.HttpRetryOptions(attempts=1),
                httpx_async_client=self._http,
            ),
        )

    async def call(self, call: ProviderCall) -> RawReply:
        """One generateContent request. The time limit covers the whole call."""
        started = time.monotonic()
        async with self.asking(call.model.timeout_seconds):
            response = await self.client.aio.models.generate_content(
                model=call.model.name, contents=build_contents(call.messages), config=build_config(call)
            )
        sdk_response = response.sdk_http_response
        reply = self.read((sdk_response and sdk_response.body) or "")
        return replace(reply, seed_sent=call.seed, latency_seconds=time.monotonic() - started)

    async def close(self) -> None:
        """Closes the connections."""
        await self.client.aio.aclose()
        await self._http.aclose()
        self.client.close()

    def read_body(self, body: Mapping[str, Any]) -> RawReply:
        if error := body.get("error"):
            raise self.failure(_read_code(error), error, {})
        candidates = as_items(body.get("candidates"))
        if not candidates:
            if not as_fields(body.get("promptFeedback")).get("blockReason"):
                raise ProviderFailure("server", f"the body has no candidates: {brief(body, [self._key])}")
            candidates = [{"finishReason": "SAFETY"}]
        text = _read_parts(as_items(as_fields(candidates[0].get("content")).get("parts")))
        return RawReply(
            text=text,
            usage=read_usage(body.get("usageMetadata"), text),
            finish_reason=map_finish(candidates[0].get("finishReason")),
            model_reported=as_text(body.get("modelVersion")),
        )

    def status_failure(self, error: Exception) -> ProviderFailure | ModelUnavailable | None:
        if not isinstance(error, errors.APIError):
            return None
        details = as_fields(error.details)
        if isinstance(error.response, httpx2.Response) and 300 <= error.code < 400:
            return self.redirect_failure(error.response)
        headers = getattr(error.response, "headers", None) or {}
        return self.failure(error.code, details.get("error", details), headers)

    def failure(self, status: int, error: Any, headers: Mapping[str, str]) -> ProviderFailure | ModelUnavailable:
        """The exception for an error body: `status`, `message` and `details` with reasons and delays."""
        fields = as_fields(error)
        details = as_items(fields.get("details"))
        reasons = " ".join(str(part["reason"]) for part in details if "reason" in part)
        wait = read_retry_after(headers)
        return classify_failure(
            status,
            f"{reasons} {error_text(error)}".strip(),
            retry_after_seconds=wait if wait is not None else _read_retry_delay(details),
            secrets=[self._key],
        )


def _read_parts(parts: Iterable[Mapping[str, Any]]) -> str:
    """What the model says; where that is nothing, what it thought, marked as such."""
    written: dict[bool, str] = {False: "", True: ""}
    for part in parts:
        written[bool(part.get("thought"))] += as_text(part.get("text")) or ""
    thought, said = written[True], written[False]
    return f"<think>{thought}</think>" if thought.strip() and not said.strip() else said


async def _must_be_utf8(response: httpx2.Response) -> None:
    """The SDK would read a body of JSON with signs in place of what cannot be decoded."""
    if response.headers.get("content-type", "").partition(";")[0].strip() == "application/json":
        try:
            (await response.aread()).decode()
        except UnicodeDecodeError as error:
            raise ProviderFailure("server", f"the body is not UTF-8: {error.reason}") from None


def build_contents(messages: tuple[Message, ...]) -> list[types.Content]:
    """The turns; system messages go elsewhere and the assistant is called `model`."""
    return [
        types.Content(role="model" if part.role == "assistant" else "user", parts=[types.Part(text=part.content)])
        for part in messages
        if part.role != "system"
    ]


def build_config(call: ProviderCall) -> types.GenerateContentConfig:
    """Sampling, schema and time limit of one call; `extra_body` is merged into the request's body."""
    model = call.model
    system = "\n\n".join(part.content for part in call.messages if part.role == "system")
    wants_json = call.schema is not None and model.structured != "prompt"
    return types.GenerateContentConfig(
        system_instruction=system or None,
        temperature=call.temperature if model.sends_temperature else None,
        max_output_tokens=call.max_tokens,
        seed=call.seed,
        response_mime_type="application/json" if wants_json else None,
        response_json_schema=dict(call.schema) if call.schema and model.structured == "json_schema" else None,
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        should_return_http_response=True,
        http_options=types.HttpOptions(
            timeout=int(model.timeout_seconds * 1000), extra_body=dict(model.extra_body) or None
        ),
    )


def map_finish(reason: str | None) -> str:
    """Gemini's finish reason in our words; one that is not known yet means that it stopped by itself."""
    if reason in _LENGTH or reason in _BROKEN_OFF:
        return "length"
    return "content_filter" if reason in _FILTERED else "stop"


def read_usage(usage: Any, text: str) -> Usage:
    """The tokens reported beside `text`; thoughts are part of the completion, as OpenAI counts them."""
    visible, thoughts = read_count(usage, "candidatesTokenCount"), read_count(usage, "thoughtsTokenCount")
    return combine_usage(
        prompt=read_count(usage, "promptTokenCount"),
        completion=None if visible is None and thoughts is None else (visible or 0) + (thoughts or 0),
        total=read_count(usage, "totalTokenCount"),
        cached=read_count(usage, "cachedContentTokenCount"),
        reasoning=thoughts,
        with_text=bool(text),
    )


def _read_code(error: Any) -> int:
    """The HTTP status that an error within a body means: its code, else its name, else its words must tell (200)."""
    fields = as_fields(error)
    code = read_count(fields, "code")
    return code if code and 400 <= code < 600 else _RPC_STATUS.get(str(fields.get("status")), 200)


def _read_retry_delay(details: Iterable[Mapping[str, Any]]) -> float | None:
    """Seconds of the body's RetryInfo ("34s"), if it has one."""
    for part in details:
        if found := re.fullmatch(r"(\d+(?:\.\d+)?)s", str(part.get("retryDelay") or "")):
            return float(found.group(1))
    return None


class GeminiBatches:
    """The batch API of one Gemini endpoint: requests go in an uploaded JSONL file, replies come back in another.

        {"key": "ab12…", "request": {"contents": […], "generationConfig": {…}}}
        {"key": "ab12…", "response": {…}}     or     {"key": "ab12…", "error": {"code": 3, "message": "…"}}

    Never inline: inline replies have come back in another order and without the metadata that would tell
    whose they are. Neither can the SDK put a model's `extra_body` into inline requests.
    """

    max_requests = 50_000
    max_bytes = 2_000_000_000

    def __init__(self, spec: ModelSpec) -> None:
        self._live = GoogleProvider(spec)
        self._client = self._live.client.aio

    def line(self, key: str, call: ProviderCall) -> bytes:
        return json.dumps({"key": key, "request": batch_body(call)}, separators=(",", ":")).encode() + b"\n"

    async def upload(self, path: Path, tag: str) -> str:
        async with self._live.asking(TRANSFER_SECONDS):
            file = await self._client.files.upload(
                file=str(path), config=types.UploadFileConfig(display_name=tag, mime_type="application/jsonl")
            )
            return check_name(file.name, "file")

    async def create(self, file: str, tag: str, model: str) -> str:
        async with self._live.asking(ASK_SECONDS):
            job = await self._client.batches.create(
                model=model, src=file, config=types.CreateBatchJobConfig(display_name=tag)
            )
            return check_name(job.name, "job")

    async def find(self, tag: str) -> str | None:
        async with self._live.asking(TRANSFER_SECONDS):
            jobs = await self._client.batches.list(config=types.ListBatchJobsConfig(page_size=100))
            async for job in jobs:
                if job.display_name == tag:
                    return check_name(job.name, "job")
        return None

    async def status(self, job_id: str) -> JobStatus:
        async with self._live.asking(ASK_SECONDS):
            try:
                job = await self._client.batches.get(name=job_id)
            except errors.ClientError as error:
                if error.code == 404:
                    raise Gone from None
                raise
            return await self._read_status(job_id, job)

    async def download(self, file: str, path: Path) -> None:
        async with self._live.asking(TRANSFER_SECONDS):
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
            return Result(key, self._read_failure(item.get("error") or item.get("status") or {}))
        return Result.read(key, lambda: self._live.read_body(response))

    async def close(self) -> None:
        await self._live.close()

    async def _read_status(self, job_id: str, job: types.BatchJob) -> JobStatus:
        state: Any = _STATES.get(job.state.name if job.state else "", "running")
        if state == "running":
            return JobStatus("running")
        ended = job.end_time or job.update_time
        return JobStatus(
            state,
            files=(job.dest.file_name,) if job.dest and job.dest.file_name else (),
            seconds=(ended - job.create_time).total_seconds() if ended and job.create_time else None,
            failure=await self._read_refusal(job_id) if state == "failed" else None,
        )

    async def _read_refusal(self, job_id: str) -> Refusal:
        """Why the job failed as a whole. The SDK's job has no place for it, so the raw answer is read."""
        raw = await self._live.client._api_client.async_request("get", job_id, {}, None)
        return self._read_failure(json.loads(raw.body or "{}").get("error") or {})

    def _read_failure(self, error: Mapping[str, Any]) -> Refusal:
        code = int(error.get("code") or 13)
        status = list(_RPC_STATUS.values())[code - 1] if 1 <= code <= len(_RPC_STATUS) else code
        said = {"status": error.get("status"), "message": error.get("message") or "the provider gives no reason"}
        return self._live.failure(status, said, {})


def batch_body(call: ProviderCall) -> dict[str, Any]:
    """What a live call would post (the SDK makes it itself there); `extra_body` is laid over it."""
    config = build_config(call)
    settings = {
        "temperature": config.temperature,
        "maxOutputTokens": config.max_output_tokens,
        "seed": config.seed,
        "responseMimeType": config.response_mime_type,
        "responseJsonSchema": config.response_json_schema,
    }
    body: dict[str, Any] = {
        "contents": [content.model_dump(mode="json", exclude_none=True) for content in build_contents(call.messages)],
        "generationConfig": {name: value for name, value in settings.items() if value is not None},
    }
    if config.system_instruction:
        body["systemInstruction"] = {"role": "user", "parts": [{"text": config.system_instruction}]}
    return _merge(body, call.model.extra_body)


def _merge(body: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(body)
    for name, value in extra.items():
        inner = merged.get(name)
        both = isinstance(inner, Mapping) and isinstance(value, Mapping)
        merged[name] = _merge(inner, value) if both else value  # type: ignore[arg-type]
    return merged
