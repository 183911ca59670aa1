"""Values of source rows: texts on one line, without control characters; what is no value at all; and the language.

A row's language is the one that the row or its source names, else that of what it says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tasks.foundation.sources.rows import Unwanted
from tasks.foundation.tables.languages import LANGUAGES, language_named, name_of
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.languages import language_of

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Control characters that are no white space, NUL among them: models and databases trip over them."""

_NOTHING = ("", "n/a", "#n/a")
_SAYS_NOTHING = (
    *_NOTHING,
    *("na", "nan", "none", "null", "nil", "unknown", "undisclosed", "unspecified", "not given", "not specified"),
    *("not available", "not known", "prefer not to say", "-", "--", "–", "—", "?", "？", "未知", "不详", "无", "保密"),
)
"""What people write where they know nothing."""


def one_line(text: str) -> str:
    """The text with every run of white space as one space, and without control characters.

    >>> one_line(" two\\n\\nlines\\x00 ")
    'two lines'
    """
    if text.isprintable() and text.strip() == text and "  " not in text:
        return text
    line = " ".join(text.split())
    return line if line.isprintable() else " ".join(_CONTROL.sub("", line).split())


def unless_blank(value: Any) -> Any:
    """The value of a cell; None for a blank one and for "N/A", which are no value in any column."""
    return None if isinstance(value, str) and value.strip().casefold() in _NOTHING else value


def unless_unknown(value: Any) -> Any:
    """As `unless_blank`, for columns of few words: None, too, for "unknown", "none", "-" and the like."""
    return None if isinstance(value, str) and value.strip().casefold() in _SAYS_NOTHING else value


WHY = "language"
"""What rows in other languages are counted under."""
_EXPECTED = f"expected a language that there are prompts for ({' or '.join(LANGUAGES.values())})"


def refuse_other(language: Language, languages: Sequence[Language]) -> None:
    """Unwanted for a row in a language that the build leaves out."""
    if language not in languages:
        raise Unwanted(WHY, f"expected a language of run.languages ({', '.join(languages)}), found {language}")


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
