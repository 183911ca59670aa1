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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx2
import openai

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.failures import ProviderFailure, brief, failure_of, retry_after_of
from tasks.foundation.llm.models import api_key
from tasks.foundation.llm.pricing import OPENAI_URL
from tasks.foundation.llm.quota import quota_of
from tasks.foundation.llm.request import ModelSpec, ProviderCall, RawReply, Usage

_FINISH = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "refusal",
}
"""Vendors' words for how a reply ended → ours; every other word means that it stopped by itself."""

_STATUS_OF_ERROR = {
    "rate_limit": 429,
    "too_many_requests": 429,
    "overloaded": 503,
    "authentication": 401,
    "permission": 403,
    "invalid_request": 400,
    "timeout": 504,
}
"""For HTTP 200 with an error body that has no number: words of its type or code → the status it means."""


class OpenAIProvider:
    """Calls one endpoint with one key; `spec` gives both, each call's own model the rest."""

    def __init__(self, spec: ModelSpec) -> None:
        self._key = api_key(spec)
        self.client = openai.AsyncOpenAI(
            api_key=self._key,
            base_url=spec.base_url or OPENAI_URL,
            max_retries=0,
            http_client=_http_client(),
        )

    async def call(self, call: ProviderCall) -> RawReply:
        """One POST. The time limit covers the whole call, also a server that trickles or hangs."""
        started = time.monotonic()
        with self.failures(call.model.timeout_seconds):
            async with asyncio.timeout(call.model.timeout_seconds):
                response = await self.client.chat.completions.with_raw_response.create(
                    **parameters(call), timeout=call.model.timeout_seconds
                )
                body = response.text
        reply = self.read(body)
        return replace(
            reply,
            seed_sent=call.seed,
            latency_seconds=time.monotonic() - started,
            quota=quota_of(response.headers, time.time()),
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self.client.close()

    @contextmanager
    def failures(self, timeout_seconds: float) -> Iterator[None]:
        """Within it the SDK's exceptions become ours: ProviderFailure or ModelUnavailable."""
        try:
            yield
        except (openai.APITimeoutError, TimeoutError, httpx2.TimeoutException) as error:
            raise self._timeout_failure(error, timeout_seconds) from None
        except openai.APIStatusError as error:
            raise self._status_failure(error) from None
        except (openai.APIConnectionError, httpx2.HTTPError, OSError) as error:
            raise ProviderFailure("connection", self._brief(error.__cause__ or error)) from None
        except openai.OpenAIError as error:
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
        if body.get("error"):
            raise self.failure(body["error"])
        choice = (body.get("choices") or [None])[0]
        if not isinstance(choice, dict):
            raise ProviderFailure("server", f"the body has no choices: {self._brief(body)}")
        if choice.get("error"):
            raise self.failure(choice["error"])
        message = choice.get("message") or {}
        refusal = message.get("refusal")
        finish = "refusal" if refusal else _FINISH.get(str(choice.get("finish_reason")), "stop")
        return RawReply(
            text=refusal or _text_of(message.get("content")),
            usage=usage_of(body.get("usage")),
            finish_reason=finish,
            model_reported=body.get("model"),
        )

    def _timeout_failure(self, error: BaseException, seconds: float) -> ProviderFailure:
        """A refused connection comes out of the aiohttp transport as a timeout, and is none."""
        cause = error if isinstance(error, httpx2.ConnectTimeout) else error.__cause__
        if isinstance(cause, httpx2.ConnectTimeout):
            return ProviderFailure("connection", self._brief(cause))
        return ProviderFailure("timeout", f"no reply within {seconds:g} s")

    def _status_failure(self, error: openai.APIStatusError) -> ProviderFailure | ModelUnavailable:
        detail = f"{error.code or ''} {error.type or ''} {error.message}"
        headers = error.response.headers
        failure = failure_of(
            error.status_code,
            detail.strip(),
            retry_after_seconds=retry_after_of(headers),
            secrets=[self._key],
        )
        if isinstance(failure, ProviderFailure):
            failure.quota = quota_of(headers, time.time())
        return failure

    def failure(self, error: Any, status: int | None = None) -> ProviderFailure | ModelUnavailable:
        """The exception for an error in a body. Without a `status` (it came with HTTP 200) its numeric code
        counts, else the words of its type or code."""
        fields = error if isinstance(error, Mapping) else {"message": error}
        words = f"{fields.get('code') or ''} {fields.get('type') or ''}".lower()
        if status is None:
            number = re.search(r"\b[45]\d\d\b", words)
            named = (value for word, value in _STATUS_OF_ERROR.items() if word in words)
            status = int(number.group()) if number else next(named, 500)
        return failure_of(status, f"{words} {fields.get('message') or ''}".strip(), secrets=[self._key])

    def _brief(self, text: object) -> str:
        return brief(str(text) or type(text).__name__, [self._key])


def parameters(call: ProviderCall) -> dict[str, Any]:
    """The keyword arguments of the SDK's `create`; only what the model's entry says it takes."""
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
    if model.extra_body:
        sent["extra_body"] = dict(model.extra_body)
    return sent


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


def usage_of(usage: Any) -> Usage:
    """The tokens reported, reasoning within completion tokens also where a vendor counts it apart."""
    if not isinstance(usage, Mapping):
        return Usage()
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    reasoning = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", usage.get("prompt_cache_hit_tokens"))
    total = usage.get("total_tokens")
    if reasoning and prompt is not None and completion is not None and total == prompt + completion + reasoning:
        completion += reasoning
    return Usage(prompt, cached, completion, reasoning)


def _text_of(content: Any) -> str:
    """The text of a message: a string, or a list of parts of which the textual ones count."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _http_client() -> httpx2.AsyncClient:
    """The SDK's aiohttp transport where aiohttp is installed: it holds up at many calls in flight."""
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        return openai.DefaultAsyncHttpxClient()
    return openai.DefaultAioHttpClient()
