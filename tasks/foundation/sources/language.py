"""The language of a source row: the one that the row or its source names, else that of what it says."""

from __future__ import annotations

from typing import Any

from tasks.foundation.sources.rows import Unwanted
from tasks.foundation.sources.texts import unless_unknown
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.languages import LANGUAGES, language_named, language_of, name_of

WHY = "language"
"""What rows in other languages are counted under."""
_EXPECTED = f"expected a language that there are prompts for ({' or '.join(LANGUAGES.values())})"


def row_language(text: str, *named: Any) -> Language:
    """The first language that is named, else that of `text`. Unwanted for one that no prompts are written in."""
    for value in filter(None, map(unless_unknown, named)):
        language = language_named(value)
        if language is None:
            raise Unwanted(WHY, f"{_EXPECTED}, found {str(value)[:40]!r}")
        return language
    found = language_of(text)
    for language in LANGUAGES:
        if language == found:
            return language
    what = f"a text in {name_of(found)}" if found else "a text without words"
    raise Unwanted(WHY, f"{_EXPECTED}, found {what}. The source's `language` says it where this is wrong")
