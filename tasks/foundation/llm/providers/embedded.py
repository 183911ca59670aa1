"""llama.cpp in this process: no key and no network.

One server per model file and process, loaded at the first call and shared by every engine; it batches
the requests of its slots and holds replies to a JSON schema by grammar. A call that is cancelled or
timed out lets go of its caller, but llama.cpp finishes the text it is writing.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tasks.foundation import weights
from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.failures import ProviderFailure, classify_failure, error_text
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.providers.bodies import (
    as_fields,
    as_items,
    read_count,
    read_text,
    read_usage,
    response_format,
)
from tasks.foundation.llm.redaction import brief
from tasks.foundation.llm.request import ProviderCall, RawReply

DEFAULT_CONTEXT_TOKENS = 4096
PROMPT_CACHE_MIB = 128
"""llama.cpp keeps prompts of finished requests in memory, by default up to 8 GiB."""

_OF_THE_REQUEST = re.compile(r"template|jinja|grammar|roles? must|messages?\b", re.IGNORECASE)
"""Where llama.cpp blames what it was asked for; any other fault in C++ is its own and may pass."""


@dataclass(slots=True)
class _LoadedModel:
    """A model in memory and the threads that may call it, one a slot."""

    server: Any
    threads: ThreadPoolExecutor


@dataclass(slots=True)
class _LoadedModels:
    """The models of this process. The lock is held while one loads, so that it is loaded once."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    loaded: dict[tuple[Path, int, int, int], _LoadedModel] = field(default_factory=dict)


_MODELS = _LoadedModels()


class EmbeddedProvider:
    """Answers from model files on this machine; the file is found by the name of each call's model."""

    def __init__(self, spec: ModelSpec) -> None:
        """All models of this process are loaded side by side, so one client serves them all."""

    async def call(self, call: ProviderCall) -> RawReply:
        """One completion. Raises ModelUnavailable when the weights have not been pulled."""
        started = time.monotonic()
        local = await asyncio.to_thread(load_model, call.model)
        answer = asyncio.get_running_loop().run_in_executor(local.threads, _complete, local.server, call)
        try:
            async with asyncio.timeout(call.model.timeout_seconds):
                body = await answer
        except TimeoutError:
            raise ProviderFailure("timeout", f"no reply within {call.model.timeout_seconds:g} s") from None
        return replace(read_reply(body, call.model), seed_sent=call.seed, latency_seconds=time.monotonic() - started)

    async def close(self) -> None:
        """Leaves the models loaded: the next stage of this process uses them again."""


def missing_weights(spec: ModelSpec) -> str | None:
    """Why the model's file cannot be used, with the command that gets it, or None."""
    return weights.missing(spec.name, spec.alias)


def read_reply(body: Any, spec: ModelSpec) -> RawReply:
    """What llama.cpp answered; an error in its words is raised, also one that is not wrapped in `error`."""
    fields = as_fields(body)
    choices = as_items(fields.get("choices"))
    if error := fields.get("error") or (None if choices else body):
        status = read_count(error, "code")
        raise classify_failure(status if status and 400 <= status < 600 else 500, error_text(error) or brief(error))
    if not choices:
        raise ProviderFailure("server", "llama.cpp gave an empty answer")
    text = read_text(as_fields(choices[0].get("message")))
    return RawReply(
        text=text,
        usage=read_usage(fields.get("usage"), text),
        finish_reason="length" if choices[0].get("finish_reason") == "length" else "stop",
        model_reported=spec.name,
    )


def load_model(spec: ModelSpec) -> _LoadedModel:
    """The model in memory, loaded if need be (0.5–4 s)."""
    path = weights.path_of(spec.name)
    context = spec.context_tokens or DEFAULT_CONTEXT_TOKENS
    key = (path, spec.slots, spec.threads, context)
    with _MODELS.lock:
        if key not in _MODELS.loaded:
            server = load_server(path, slots=spec.slots, threads=spec.threads, context_tokens=context)
            pool = ThreadPoolExecutor(spec.slots, thread_name_prefix=f"llama-{spec.alias}")
            _MODELS.loaded[key] = _LoadedModel(server, pool)
        return _MODELS.loaded[key]


def load_server(path: Path, *, slots: int, threads: int, context_tokens: int, http_key: str | None = None) -> Any:
    """A llama.cpp server with `context_tokens` for each slot, silent.

    It also listens on a loopback port; nobody can use that without `http_key` (by default a secret).
    """
    try:
        import xllamacpp
    except ImportError as error:
        raise ModelUnavailable(f"Embedded models need the package xllamacpp: {error}") from None
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = context_tokens * slots
    parameters.n_parallel = slots
    parameters.cpuparams.n_threads = threads
    parameters.cpuparams_batch.n_threads = threads
    parameters.cache_ram_mib = PROMPT_CACHE_MIB
    parameters.api_keys = [http_key or secrets.token_hex(16)]
    parameters.warmup = False
    parameters.ui = False
    parameters.verbosity = 0
    try:
        return xllamacpp.Server(parameters)
    except (RuntimeError, ValueError, OSError) as error:
        raise ModelUnavailable(f"llama.cpp cannot load {path}: {brief(error)}") from None


def _complete(server: Any, call: ProviderCall) -> dict[str, Any]:
    """Runs in one of the model's threads; llama.cpp lets go of the interpreter while it works."""
    request: dict[str, Any] = {
        "messages": [{"role": part.role, "content": part.content} for part in call.messages],
        "max_tokens": call.max_tokens,
        "temperature": call.temperature,
        **call.model.extra_body,
    }
    if call.seed is not None:
        request["seed"] = call.seed
    if call.schema is not None and call.model.structured == "json_schema":
        request |= build_grammar(call.schema) or {"response_format": response_format(call)}
    elif call.schema is not None and call.model.structured == "json_object":
        request["response_format"] = response_format(call)
    try:
        answer: dict[str, Any] = server.handle_chat_completions(request)
    except (ValueError, TypeError) as error:
        return _error(400, error)
    except (RuntimeError, MemoryError, OSError, SystemError) as error:
        return _error(400 if _OF_THE_REQUEST.search(str(error)) else 500, error)
    return answer


def _error(code: int, error: Exception) -> dict[str, Any]:
    return {"error": {"code": code, "type": "llama.cpp", "message": f"{type(error).__name__}: {error}"}}


def build_grammar(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The request field that holds a reply to `schema` on one line, or None where this build cannot.

    Given the choice, models this small fill half of their JSON with line breaks and tabs; without them
    the same reply takes half the tokens.
    """
    import xllamacpp

    prefix = "%llguidance {}\nstart: %json "
    if not xllamacpp.json_schema_to_grammar(dict(schema)).startswith(prefix):
        return None
    one_line = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
    return {"grammar": prefix + json.dumps({**schema, "x-guidance": one_line})}
