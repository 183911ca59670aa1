"""Parts of a response's body, which may have any shape: what is not as it should be counts as missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tasks.foundation.llm.failures import ProviderFailure, brief
from tasks.foundation.llm.redaction import encodable
from tasks.foundation.llm.request import MOST_TOKENS, Usage


def object_in(text: str | bytes, secrets: list[str]) -> Mapping[str, Any]:
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


def fields_of(value: Any) -> Mapping[str, Any]:
    """`value` if it is an object, else one without fields."""
    return value if isinstance(value, Mapping) else {}


def items_of(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; none where `value` is no list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def text_of(value: Any) -> str | None:
    """A text that any encoder takes; None for anything else."""
    return encodable(value) if isinstance(value, str) else None


def count_of(fields: Any, name: str) -> int | None:
    """A number of tokens as reported; None where it is not, or is no whole number from 0 to `MOST_TOKENS`."""
    value = fields_of(fields).get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def usage_from(
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
