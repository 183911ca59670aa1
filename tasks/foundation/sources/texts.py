"""Texts as they are kept: on one line, with single spaces, without control characters."""

from __future__ import annotations

import re

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
