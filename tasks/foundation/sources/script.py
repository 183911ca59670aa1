"""Which of the two languages a text is in, by its script."""

from __future__ import annotations

import re

from tasks.foundation.tables.types import Language

HAN = "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Ranges of Han characters, for a regular expression's character class."""

_HAN = re.compile(f"[{HAN}]")
_LATIN_WORD = re.compile(r"[A-Za-zÀ-ɏ]+")


def language_of(text: str) -> Language:
    """`zh` when the text has more Han characters than Latin words, else `en` (also for an empty text)."""
    if text.isascii() or not _HAN.search(text):
        return "en"
    return "zh" if len(_HAN.findall(text)) > len(_LATIN_WORD.findall(text)) else "en"
