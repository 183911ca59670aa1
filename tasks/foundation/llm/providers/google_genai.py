"""Gemini through Google's own SDK.

Traps met: the SDK's time limit is in milliseconds; over aiohttp it repeats a failed connection by
itself unless retry options are given; Retry-After comes as a `RetryInfo` in the body; thoughts are
counted beside the completion. The raw body is asked for and read here.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import httpx2
from google import genai
from google.genai import errors, types

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.failures import Border, ProviderFailure, brief, failure_of, retry_after_of, told
from tasks.foundation.llm.models import api_key
from tasks.foundation.llm.providers.bodies import count_of, fields_of, items_of, object_in, text_of, usage_from
from tasks.foundation.llm.providers.wire import failure_on_the_way, http_client, redirected
from tasks.foundation.llm.request import Message, ModelSpec, ProviderCall, RawReply, Usage

GOOGLE_URL = "https://generativelanguage.googleapis.com"
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

_STATUS_OF_RPC = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
"""For an error without a number: the name of its status → the HTTP status."""


class GoogleProvider:
    """Calls one Gemini endpoint with one key."""

    def __init__(self, spec: ModelSpec) -> None:
        self._key = api_key(spec)
        self._url = spec.base_url or GOOGLE_URL
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
        with self.failures(call.model.timeout_seconds):
            async with asyncio.timeout(call.model.timeout_seconds):
                response = await self.client.aio.models.generate_content(
                    model=call.model.name, contents=contents_of(call.messages), config=config_of(call)
                )
        sdk_response = response.sdk_http_response
        reply = self.read((sdk_response and sdk_response.body) or "")
        return replace(reply, seed_sent=call.seed, latency_seconds=time.monotonic() - started)

    async def close(self) -> None:
        """Closes the connections."""
        await self.client.aio.aclose()
        await self._http.aclose()
        self.client.close()

    def failures(self, timeout_seconds: float) -> Border:
        """Within it the SDK's exceptions become ours: ProviderFailure or ModelUnavailable."""
        return Border(lambda error: self._translated(error, timeout_seconds))

    def read(self, text: str) -> RawReply:
        """What a body says, be it a reply or an error, which is raised. Latency and seed are not in it."""
        return self.read_body(object_in(text, [self._key]))

    def read_body(self, body: Mapping[str, Any]) -> RawReply:
        """The same for a body that is parsed already."""
        if error := body.get("error"):
            raise self.failure(_status_of(error), error, {})
        candidates = items_of(body.get("candidates"))
        if not candidates:
            if not fields_of(body.get("promptFeedback")).get("blockReason"):
                raise ProviderFailure("server", f"the body has no candidates: {self._brief(body)}")
            candidates = [{"finishReason": "SAFETY"}]
        text = _text_of(items_of(fields_of(candidates[0].get("content")).get("parts")))
        return RawReply(
            text=text,
            usage=usage_of(body.get("usageMetadata"), text),
            finish_reason=finish_of(candidates[0].get("finishReason")),
            model_reported=text_of(body.get("modelVersion")),
        )

    def _translated(self, error: Exception, seconds: float) -> ProviderFailure | ModelUnavailable:
        if isinstance(error, errors.APIError):
            return self._status_failure(error)
        return failure_on_the_way(error, self._url, seconds, [self._key])

    def _status_failure(self, error: errors.APIError) -> ProviderFailure | ModelUnavailable:
        details = fields_of(error.details)
        if isinstance(error.response, httpx2.Response) and 300 <= error.code < 400:
            return redirected(self._url, error.response, [self._key])
        headers = getattr(error.response, "headers", None) or {}
        return self.failure(error.code, details.get("error", details), headers)

    def failure(self, status: int, error: Any, headers: Mapping[str, str]) -> ProviderFailure | ModelUnavailable:
        """The exception for an error body: `status`, `message` and `details` with reasons and delays."""
        fields = fields_of(error)
        details = items_of(fields.get("details"))
        reasons = " ".join(str(part["reason"]) for part in details if "reason" in part)
        wait = retry_after_of(headers)
        return failure_of(
            status,
            f"{reasons} {told(error)}".strip(),
            retry_after_seconds=wait if wait is not None else _retry_delay(details),
            secrets=[self._key],
        )

    def _brief(self, text: object) -> str:
        return brief(str(text) or type(text).__name__, [self._key])


def _text_of(parts: Iterable[Mapping[str, Any]]) -> str:
    """What the model says; where that is nothing, what it thought, marked as such."""
    written: dict[bool, str] = {False: "", True: ""}
    for part in parts:
        written[bool(part.get("thought"))] += text_of(part.get("text")) or ""
    thought, said = written[True], written[False]
    return f"<think>{thought}</think>" if thought.strip() and not said.strip() else said


async def _must_be_utf8(response: httpx2.Response) -> None:
    """The SDK would read a body of JSON with signs in place of what cannot be decoded."""
    if response.headers.get("content-type", "").partition(";")[0].strip() == "application/json":
        try:
            (await response.aread()).decode()
        except UnicodeDecodeError as error:
            raise ProviderFailure("server", f"the body is not UTF-8: {error.reason}") from None


def contents_of(messages: tuple[Message, ...]) -> list[types.Content]:
    """The turns; system messages go elsewhere and the assistant is called `model`."""
    return [
        types.Content(role="model" if part.role == "assistant" else "user", parts=[types.Part(text=part.content)])
        for part in messages
        if part.role != "system"
    ]


def config_of(call: ProviderCall) -> types.GenerateContentConfig:
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


def finish_of(reason: str | None) -> str:
    """Gemini's finish reason in our words; one that is not known yet means that it stopped by itself."""
    if reason in _LENGTH or reason in _BROKEN_OFF:
        return "length"
    return "content_filter" if reason in _FILTERED else "stop"


def usage_of(usage: Any, text: str) -> Usage:
    """The tokens reported beside `text`; thoughts are part of the completion, as OpenAI counts them."""
    visible, thoughts = count_of(usage, "candidatesTokenCount"), count_of(usage, "thoughtsTokenCount")
    return usage_from(
        prompt=count_of(usage, "promptTokenCount"),
        completion=None if visible is None and thoughts is None else (visible or 0) + (thoughts or 0),
        total=count_of(usage, "totalTokenCount"),
        cached=count_of(usage, "cachedContentTokenCount"),
        reasoning=thoughts,
        with_text=bool(text),
    )


def _status_of(error: Any) -> int:
    """The HTTP status that an error within a body means: its code, else its name, else its words must tell (200)."""
    fields = fields_of(error)
    code = count_of(fields, "code")
    return code if code and 400 <= code < 600 else _STATUS_OF_RPC.get(str(fields.get("status")), 200)


def _retry_delay(details: Iterable[Mapping[str, Any]]) -> float | None:
    """Seconds of the body's RetryInfo ("34s"), if it has one."""
    for part in details:
        if found := re.fullmatch(r"(\d+(?:\.\d+)?)s", str(part.get("retryDelay") or "")):
            return float(found.group(1))
    return None
