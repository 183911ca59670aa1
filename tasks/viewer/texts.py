"""Texts of models and datasets as they are shown: every character there, those that cannot be seen as signs.

>>> visible("a\\x00b\\u202ec")
'a␀b⟨U+202E⟩c'
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

_UNSEEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u2064\\u2066-\\u206f"
    "\\ufeff\\ufff9-\\ufffb\\ud800-\\udfff\\U000e0000-\\U000e007f]"
)
"""Control characters but for tab and line feed, those that turn or join the text around them, and lone surrogates."""

SHORT = 160
"""Characters of a text in a cell of a table."""


def visible(text: str) -> str:
    """The whole text, with a sign for each character that cannot be seen or that would turn others around."""
    return _UNSEEN.sub(_sign, text)


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"⟨U+{code:04X}⟩"


def brief(text: str, most: int = SHORT) -> str:
    """The text in one line, cut with an ellipsis where it is longer."""
    clean = " ".join(visible(text[: 4 * most]).split())
    return clean if len(clean) <= most and len(text) <= 4 * most else f"{clean[:most].rstrip()}…"


def write(value: Any) -> str:
    """A value of a table as text; null is nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00") + " UTC"
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else str(value)


def write_whole(value: Any, *, is_json: bool = False) -> str:
    """As `write`, with lists, structs and JSON laid out in lines."""
    if is_json and isinstance(value, str):
        value = parse(value)
    return (
        json.dumps(value, ensure_ascii=False, indent=2, default=str) if isinstance(value, list | dict) else write(value)
    )


def parse(text: str | None) -> Any:
    """The value of a JSON text; what is no JSON as it is."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return text
