"""Values that sources store as the text of a Python literal or of JSON. Nothing is ever evaluated."""

from __future__ import annotations

import ast
import contextlib
import json
from typing import Any

from tasks.personas.reading import BadRow

LONGEST = 1_000_000
"""Characters of a literal that are still parsed."""


def parse_literal(text: str, column: str) -> Any:
    """The value of a Python literal, read with `ast.literal_eval` only; BadRow when it is none."""
    if len(text) > LONGEST:
        raise BadRow(f"expected at most {LONGEST} characters in {column}, found {len(text)}")
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise BadRow(f"expected a Python literal in {column}, found {text[:80]!r}") from None


def parse_list(value: Any, column: str) -> tuple[str, ...]:
    """A list of texts, given as such or as the text of a literal; empty for what is absent."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    items = parse_literal(value, column) if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str | int | float) for item in items):
        raise BadRow(f"expected a list of texts in {column}, found {str(value)[:80]!r}")
    return tuple(text for item in items if (text := " ".join(str(item).split())))


def parse_object(value: Any, column: str) -> dict[str, Any]:
    """An object, given as such, as JSON or as a Python literal; BadRow for anything else."""
    found = _loaded(value) if isinstance(value, str) else value
    if not isinstance(found, dict) or not found:
        raise BadRow(f"expected a JSON object in {column}, found {str(value)[:80]!r}")
    return found


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        with contextlib.suppress(BadRow):
            return parse_literal(text, "")
        return None
