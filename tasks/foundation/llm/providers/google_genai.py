"""Gemini through Google's own SDK.

Traps met: the SDK's time limit is in milliseconds; over aiohttp it repeats a failed connection by
itself unless retry options are given; Retry-After comes as a `RetryInfo` in the body; thoughts are
counted beside the completion. The raw body is asked for and read here.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import httpx
import httpx2
from google import genai
from google.genai import errors, types

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.failures import ProviderFailure, brief, failure_of, retry_after_of
from tasks.foundation.llm.models import api_key
from tasks.foundation.llm.request import Message, ModelSpec, ProviderCall, RawReply, Usage

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
}


class GoogleProvider:
    """Calls one Gemini endpoint with one key."""

    def __init__(self, spec: ModelSpec) -> None:
        self._key = api_key(spec)
        self.client = genai.Client(
            api_key=self._key,
            vertexai=False,
            http_options=types.HttpOptions(
                base_url=spec.base_url,
                api_version=spec.api_version or API_VERSION,
                retry_options=types.HttpRetryOptions(attempts=1),
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
        self.client.close()

    @contextmanager
    def failures(self, timeout_seconds: float) -> Iterator[None]:
        """Within it the SDK's exceptions become ours: ProviderFailure or ModelUnavailable."""
        try:
            yield
        except (TimeoutError, httpx.TimeoutException, httpx2.TimeoutException):
            raise ProviderFailure("timeout", f"no reply within {timeout_seconds:g} s") from None
        except errors.APIError as error:
            raise self._status_failure(error) from None
        except (aiohttp.ClientError, httpx.HTTPError, httpx2.HTTPError, OSError) as error:
            raise ProviderFailure("connection", self._brief(error)) from None
        except (errors.UnknownApiResponseError, ValueError) as error:
            raise ProviderFailure("server", self._brief(error)) from None

    def read(self, text: str) -> RawReply:
        """What a body says, be it a reply or an error, which is raised. Latency and seed are not in it."""
        try:
            body = json.loads(text)
            if not isinstance(body, dict):
                raise ValueError("no object")
        except ValueError:
            raise ProviderFailure("server", f"the body is not JSON: {self._brief(text[:200])}") from None
        return self.read_body(body)

    def read_body(self, body: Mapping[str, Any]) -> RawReply:
        """The same for a body that is parsed already."""
        if error := body.get("error"):
            raise self.failure(int(error.get("code") or 500), error, {})
        candidate = (body.get("candidates") or [None])[0]
        blocked = (body.get("promptFeedback") or {}).get("blockReason")
        if candidate is None and not blocked:
            raise ProviderFailure("server", f"the body has no candidates: {self._brief(body)}")
        finish = "content_filter" if candidate is None else finish_of(candidate.get("finishReason"))
        parts = ((candidate or {}).get("content") or {}).get("parts") or []
        return RawReply(
            text="".join(str(part.get("text") or "") for part in parts if not part.get("thought")),
            usage=usage_of(body.get("usageMetadata")),
            finish_reason=finish,
            model_reported=body.get("modelVersion"),
        )

    def _status_failure(self, error: errors.APIError) -> ProviderFailure | ModelUnavailable:
        details = error.details if isinstance(error.details, Mapping) else {}
        return self.failure(error.code, details.get("error", details), getattr(error.response, "headers", None) or {})

    def failure(
        self, status: int, error: Mapping[str, Any], headers: Mapping[str, str]
    ) -> ProviderFailure | ModelUnavailable:
        """The exception for an error body: `status`, `message` and `details` with reasons and delays."""
        reasons = " ".join(str(part.get("reason") or "") for part in error.get("details") or [])
        wait = retry_after_of(headers)
        return failure_of(
            status,
            f"{error.get('status') or ''} {reasons} {error.get('message') or ''}".strip(),
            retry_after_seconds=wait if wait is not None else _retry_delay(error),
            secrets=[self._key],
        )

    def _brief(self, text: object) -> str:
        return brief(str(text) or type(text).__name__, [self._key])


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
    """Gemini's finish reason in our words."""
    if reason in _LENGTH:
        return "length"
    return "content_filter" if reason in _FILTERED or str(reason).startswith("IMAGE_") else "stop"


def usage_of(usage: Any) -> Usage:
    """The tokens reported; thoughts are part of the completion, as OpenAI counts them."""
    if not isinstance(usage, Mapping):
        return Usage()
    visible, thoughts = usage.get("candidatesTokenCount"), usage.get("thoughtsTokenCount")
    completion = None if visible is None and thoughts is None else (visible or 0) + (thoughts or 0)
    return Usage(usage.get("promptTokenCount"), usage.get("cachedContentTokenCount"), completion, thoughts)


def _retry_delay(error: Mapping[str, Any]) -> float | None:
    """Seconds of the body's RetryInfo ("34s"), if it has one."""
    for part in error.get("details") or []:
        if found := re.fullmatch(r"(\d+(?:\.\d+)?)s", str(part.get("retryDelay") or "")):
            return float(found.group(1))
    return None
