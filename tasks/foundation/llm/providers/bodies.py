"""Parts of a response's body, which may have any shape: what is not as it should be counts as missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tasks.foundation.llm.failures import ProviderFailure, brief


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
    """A text; None for anything else."""
    return value if isinstance(value, str) else None


def count_of(fields: Any, name: str) -> int | None:
    """A number of tokens as reported; None where it is not, or is no whole number."""
    value = fields_of(fields).get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
