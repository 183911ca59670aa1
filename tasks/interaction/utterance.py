"""What a side said although its reply was not as asked. Pure."""

from __future__ import annotations

import json
import re

from tasks.foundation.errors import ModelError
from tasks.foundation.llm.reply import said_in

_WRITTEN = r'(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'
_CUT_OFF = re.compile(rf'\{{\s*"content"\s*:\s*"(?P<said>{_WRITTEN})(?:\\u?[0-9a-fA-F]{{0,3}})?\Z')
"""A reply of `Speech` that ends within its text."""


def was_turned_down(error: ModelError) -> bool:
    """Whether the provider turned the request down without a word: a wrong parameter or account, no side's fault."""
    return error.kind == "refused" and not error.text


def recover_words(error: ModelError) -> str | None:
    """What a side said although its reply was not as asked: a refusal, plain words instead of JSON, or as much of its
    words as `max_tokens` let it say.

    None where nothing usable came: an empty, filtered or broken reply, or a context that is full.
    """
    words = said_in(error.text or "")
    if error.kind == "truncated" and (cut := _CUT_OFF.search(words)):
        return _unescape(cut["said"]) or None
    if error.kind not in ("refused", "unreadable", "truncated") or "{" in words:
        return None
    return words or None


def _unescape(written: str) -> str:
    """A JSON string's text, of which the end is missing."""
    try:
        return str(json.loads(f'"{written}"', strict=False))
    except ValueError:
        return ""
