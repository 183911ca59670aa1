"""Texts as they are kept: on one line, single spaces, without control characters."""

from __future__ import annotations

import re
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Control characters that are no white space, NUL among them: models and databases trip over them."""


def one_line(text: str) -> str:
    """The text with every run of white space as one space, and without control characters.

    >>> one_line(" two\\n\\nlines\\x00 ")
    'two lines'
    """
    if text.isprintable() and text.strip() == text and "  " not in text:
        return text
    line = " ".join(text.split())
    return line if line.isprintable() else " ".join(_CONTROL.sub("", line).split())


def text_of(value: Any) -> str | None:
    """The value on one line; None for what is absent (null, blank) or no single value."""
    if isinstance(value, str):
        return one_line(value) or None
    if value is None or isinstance(value, bool | dict | list):
        return None
    whole = isinstance(value, float) and value.is_integer()
    return one_line(str(int(value) if whole else value)) or None
