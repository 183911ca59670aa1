"""Bodies of requests and responses: the parts of any, and OpenAI's chat completions, which llama.cpp speaks as well.

A response may have any shape: what is not as it should be counts as missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.foundation.llm.failures import ProviderFailure
from tasks.foundation.llm.redaction import brief, encodable
from tasks.foundation.llm.request import MOST_TOKENS, ProviderCall, Usage


def parse_object(text: str | bytes, secrets: list[str]) -> Mapping[str, Any]:
    """The JSON object that a body is. Raises ProviderFailure (`server`) for anything else: half a body, an
    error page, text that is not UTF-8."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, dict):
        return body
    shown = text.decode(errors="replace") if isinstance(text, bytes) else text
    raise ProviderFailure("server", f"the body is not a JSON object: {brief(shown, secrets) or 'empty'}")


def as_fields(value: Any) -> Mapping[str, Any]:
    """`value` if it is an object, else one without fields."""
    return value if isinstance(value, Mapping) else {}


def as_items(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; none where `value` is no list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def as_text(value: Any) -> str | None:
    """A text that any encoder takes; None for anything else."""
    return encodable(value) if isinstance(value, str) else None


def read_count(fields: Any, name: str) -> int | None:
    """A number of tokens as reported; None where it is not, or is no whole number from 0 to `MOST_TOKENS`."""
    value = as_fields(fields).get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def combine_usage(
    *,
    prompt: int | None,
    completion: int | None,
    total: int | None = None,
    cached: int | None = None,
    written: int | None = None,
    reasoning: int | None = None,
    with_text: bool,
) -> Usage:
    """The tokens of a call, from what its provider reports of them.

    A prompt of 0 tokens is none that was counted, nor is a reply `with_text` of 0. Where the total is more than both,
    the rest was thought; where it stands beside one alone, it tells the other. Reasoning that the completion cannot
    hold was counted apart from it, and a part of the prompt that is larger than it was not counted right; nor was a
    sum beyond `MOST_TOKENS`.
    """
    prompt = prompt or None
    completion = completion or (None if with_text else completion)
    if reasoning and completion is not None and reasoning > completion:
        completion += reasoning
    if total and prompt is not None and total > prompt + (completion or 0):
        completion = total - prompt
    elif total and prompt is None and completion is not None and total > completion:
        prompt = total - completion
    if completion is not None and completion > MOST_TOKENS:
        completion = None
    return Usage(prompt, _part_of(prompt, cached), completion, reasoning, _part_of(prompt, written))


def _part_of(prompt: int | None, part: int | None) -> int | None:
    return None if prompt is None or part is None or part > prompt else part


def request_body(call: ProviderCall) -> dict[str, Any]:
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
                held |= {"schema": _drop_lengths(call.schema), "strict": True}
            return {"type": "json_schema", "json_schema": held}
        case "json_object":
            return {"type": "json_object"}
        case "prompt":
            return None


def _drop_lengths(part: Any) -> Any:
    """A schema without the bounds on texts that strict modes refuse; the prompt's form tells them, and a reply is held
    to them when it is read."""
    if isinstance(part, list):
        return [_drop_lengths(item) for item in part]
    if not isinstance(part, Mapping):
        return part
    bounds = ("minLength", "maxLength") if part.get("type") == "string" else ()
    return {key: _drop_lengths(item) for key, item in part.items() if key not in bounds}


def read_usage(usage: Any, text: str) -> Usage:
    """The tokens reported beside `text`, whichever of the names in use a vendor gives them."""
    within = as_fields(as_fields(usage).get("prompt_tokens_details"))
    return combine_usage(
        prompt=read_count(usage, "prompt_tokens"),
        completion=read_count(usage, "completion_tokens"),
        total=read_count(usage, "total_tokens"),
        cached=_first_count((within, "cached_tokens"), *((usage, name) for name in _CACHED)),
        written=_first_count(*((within, name) for name in _WRITTEN), *((usage, name) for name in _WRITTEN)),
        reasoning=read_count(as_fields(usage).get("completion_tokens_details"), "reasoning_tokens"),
        with_text=bool(text),
    )


_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_WRITTEN = ("cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens")
"""Vendors' names for the part of the prompt that was read from their cache, and for what was written to it."""


def _first_count(*places: tuple[Any, str]) -> int | None:
    counts = (read_count(fields, name) for fields, name in places)
    return next((count for count in counts if count is not None), None)


def read_refusal(message: Mapping[str, Any]) -> str:
    """What the model said in refusing, in a field of its own or as a part of the content; empty: it did not."""
    if isinstance(refusal := message.get("refusal"), str) and refusal:
        return refusal
    return "".join(str(part.get("refusal") or "") for part in as_items(message.get("content")))


def read_text(message: Mapping[str, Any]) -> str:
    """What the model says: a string, or a list of parts of which those count that are text. Where that is nothing, what
    it thought, marked as such, so that a reply of thoughts alone is told from none."""
    content = message.get("content")
    parts = as_items(content)
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
    return inner if isinstance(inner, str) else "".join(_words(each) for each in as_items(inner))


def _first_text(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((text for name in names if isinstance(text := fields.get(name), str) and text.strip()), "")
