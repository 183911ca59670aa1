"""Values of source rows as texts."""

from __future__ import annotations

from typing import Any

from tasks.foundation.sources.texts import one_line, unless_blank


def text_of(value: Any) -> str | None:
    """The value on one line; None for what is absent (null, blank, "N/A") or no single value."""
    value = unless_blank(value)
    if isinstance(value, str):
        return one_line(value) or None
    if value is None or isinstance(value, bool | dict | list):
        return None
    whole = isinstance(value, float) and value.is_integer()
    return one_line(str(int(value) if whole else value)) or None
