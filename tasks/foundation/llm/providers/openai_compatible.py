"""Any endpoint that speaks OpenAI's chat completions: OpenAI, Azure, vLLM, Ollama, a llama.cpp server,
and the compatible endpoints of Anthropic, DeepSeek and others.

The official SDK sends; its retries are off and its response models unused: the body is read here, so
that usage and text survive whatever is wrong with it, and HTTP 200 with an error in it is the error.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx2
import openai

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.failures import Border, ProviderFailure, brief, failure_of, retry_after_of, told
from tasks.foundation.llm.models import api_key
from tasks.foundation.llm.pricing import OPENAI_URL
from tasks.foundation.llm.providers.bodies import count_of, fields_of, items_of, object_in, text_of, usage_from
from tasks.foundation.llm.providers.wire import failure_on_the_way, http_client, redirected
from tasks.foundation.llm.quota import quota_of
from tasks.foundation.llm.redaction import encodable
from tasks.foundation.llm.request import ModelSpec, ProviderCall, RawReply, Usage

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


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class OpenAIProvider:
    """Calls one endpoint with one key; `spec` gives both, each call's own model the rest."""

    def __init__(self, spec: ModelSpec) -> None:
        self._key = api_key(spec)
        self._url = spec.base_url or OPENAI_URL
        self.client = openai.AsyncOpenAI(
            api_key=self._key,
            base_url=self._url,
            max_retries=0,
            http_client=http_client(),
        )

    async def call(self, call: ProviderCall) -> RawReply:
        """One POST. The time limit covers the whole call, also a server that trickles or hangs."""
        started = time.monotonic()
        body = _ENCODER.encode(body_of(call)).encode("utf-8")
        with self.failures(call.model.timeout_seconds):
            async with asyncio.timeout(call.model.timeout_seconds):
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
            quota=quota_of(response.headers, time.time()),
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self.client.close()

    def failures(self, timeout_seconds: float) -> Border:
        """Within it the SDK's exceptions become ours: ProviderFailure or ModelUnavailable."""
        return Border(lambda error: self._translated(error, timeout_seconds))

    def read(self, text: str | bytes) -> RawReply:
        """What a body says, be it a reply or an error, which is raised. Latency and seed are not in it."""
        return self.read_body(object_in(text, [self._key]))

    def read_body(self, body: Mapping[str, Any]) -> RawReply:
        """The same for a body that is parsed already."""
        if body.get("error"):
            raise self.failure(body["error"])
        choices = items_of(body.get("choices"))
        if not choices:
            raise ProviderFailure("server", f"the body has no choices: {self._brief(body)}")
        choice = choices[0]
        if choice.get("error"):
            raise self.failure(choice["error"])
        ended = str(choice.get("finish_reason")).lower()
        if ended in _BROKEN_OFF:
            raise ProviderFailure("server", f"the endpoint broke off the reply ({ended})")
        message = fields_of(choice.get("message"))
        refusal = _refusal_of(message)
        text = refusal or text_said(message)
        return RawReply(
            text=text,
            usage=usage_of(body.get("usage"), text),
            finish_reason="refusal" if refusal else _FINISH.get(ended, "stop"),
            model_reported=text_of(body.get("model")),
        )

    def _translated(self, error: Exception, seconds: float) -> ProviderFailure | ModelUnavailable:
        match error:
            case openai.APIStatusError():
                return self._status_failure(error)
            case openai.APIConnectionError():  # which is what the SDK makes of its client's exceptions
                return failure_on_the_way(error.__cause__ or error, self._url, seconds, [self._key])
        return failure_on_the_way(error, self._url, seconds, [self._key])

    def _status_failure(self, error: openai.APIStatusError) -> ProviderFailure | ModelUnavailable:
        headers = error.response.headers
        if 300 <= error.status_code < 400:
            return redirected(self._url, error.response, [self._key])
        failure = failure_of(
            error.status_code,
            told(error.body) or error.message,
            retry_after_seconds=retry_after_of(headers),
            secrets=[self._key],
        )
        if isinstance(failure, ProviderFailure):
            failure.quota = quota_of(headers, time.time())
        return failure

    def failure(self, error: Any, status: int | None = None) -> ProviderFailure | ModelUnavailable:
        """The exception for an error in a body. Without a `status` (it came with HTTP 200) its numeric code
        counts, else the words of its type or code, else its sentences."""
        if status is None:
            fields = fields_of(error)
            words = f"{fields.get('code') or ''} {fields.get('type') or ''}".lower().replace("-", "_")
            number = re.search(r"\b[45]\d\d\b", words)
            named = (value for word, value in _STATUS_OF_ERROR.items() if word in words)
            status = int(number.group()) if number else next(named, 200)
        return failure_of(status, told(error), secrets=[self._key])

    def _brief(self, text: object) -> str:
        return brief(str(text) or type(text).__name__, [self._key])


def body_of(call: ProviderCall) -> dict[str, Any]:
    """The body of a request; only what the model's entry says it takes.

    It goes through the SDK's own `post`: `create` walks every value of the body along its types first, which takes
    half of the time of a request.
    """
    model = call.model
    sent: dict[str, Any] = {
        "model": model.name,
        "messages": [{"role": part.role, "content": part.content} for part in call.messages],
        model.max_tokens_field: call.max_tokens,
    }
    if model.sends_temperature:
        sent["temperature"] = call.temperature
    if call.seed is not None:
        sent["seed"] = call.seed
    if call.schema is not None and (format_ := response_format(call)) is not None:
        sent["response_format"] = format_
    return {**sent, **model.extra_body}


def response_format(call: ProviderCall) -> dict[str, Any] | None:
    """How the endpoint is asked for JSON; None where it is asked only in words."""
    match call.model.structured:
        case "json_schema":
            name = re.sub(r"[^A-Za-z0-9_-]", "_", call.schema_name)[:64] or "reply"
            held: dict[str, Any] = {"name": name, "schema": call.schema}
            if call.model.strict_schema:
                held["strict"] = True
            return {"type": "json_schema", "json_schema": held}
        case "json_object":
            return {"type": "json_object"}
        case "prompt":
            return None


def usage_of(usage: Any, text: str) -> Usage:
    """The tokens reported beside `text`, whichever of the names in use a vendor gives them."""
    within = fields_of(fields_of(usage).get("prompt_tokens_details"))
    return usage_from(
        prompt=count_of(usage, "prompt_tokens"),
        completion=count_of(usage, "completion_tokens"),
        total=count_of(usage, "total_tokens"),
        cached=_first_count((within, "cached_tokens"), *((usage, name) for name in _CACHED)),
        written=_first_count(*((within, name) for name in _WRITTEN), *((usage, name) for name in _WRITTEN)),
        reasoning=count_of(fields_of(usage).get("completion_tokens_details"), "reasoning_tokens"),
        with_text=bool(text),
    )


_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_WRITTEN = ("cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens")
"""Vendors' names for the part of the prompt that was read from their cache, and for what was written to it."""


def _first_count(*places: tuple[Any, str]) -> int | None:
    counts = (count_of(fields, name) for fields, name in places)
    return next((count for count in counts if count is not None), None)


def _refusal_of(message: Mapping[str, Any]) -> str:
    """What the model said in refusing, in a field of its own or as a part of the content; empty: it did not."""
    if isinstance(refusal := message.get("refusal"), str) and refusal:
        return refusal
    return "".join(str(part.get("refusal") or "") for part in items_of(message.get("content")))


def text_said(message: Mapping[str, Any]) -> str:
    """What the model says: a string, or a list of parts of which those count that are text. Where that is nothing, what
    it thought, marked as such, so that a reply of thoughts alone is told from none."""
    content = message.get("content")
    parts = items_of(content)
    said = content if isinstance(content, str) else "".join(_words(part) for part in parts if not _is_thought(part))
    if said.strip():
        return encodable(said)
    thought = "".join(_words(part) for part in parts if _is_thought(part)) or _first_text(message, _THOUGHTS)
    return encodable(f"<think>{thought}</think>" if thought.strip() else said)


_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""Vendors' names for the field of a message, and the type of a part, that holds what the model thought."""


def _is_thought(part: Mapping[str, Any]) -> bool:
    return any(name in str(part.get("type")) for name in ("reasoning", "thinking", "thought"))


def _words(part: Mapping[str, Any]) -> str:
    """The text of a part, be it a string or, as thoughts are with some vendors, a list of parts."""
    inner = part.get("text") or part.get("thinking") or part.get("summary") or ""
    return inner if isinstance(inner, str) else "".join(_words(each) for each in items_of(inner))


def _first_text(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((text for name in names if isinstance(text := fields.get(name), str) and text.strip()), "")
