"""One spelling for the sex or gender of a source persona: sources write it in many ways, one source in several."""

from __future__ import annotations

from typing import Any

from tasks.personas.texts import text_of

SPELLINGS = {
    "Male": ("male", "m", "man", "男", "男性"),
    "Female": ("female", "f", "woman", "女", "女性"),
    "Nonbinary": ("nonbinary", "non-binary", "non binary", "非二元"),
}
_KNOWN = {spelling: name for name, spellings in SPELLINGS.items() for spelling in spellings}


def sex_of(value: Any) -> str | None:
    """Male, Female or Nonbinary, whatever the case; any other word as it is written; None for what is absent.

    >>> [sex_of(value) for value in ("female", "MALE", "Non-Binary", "Genderfluid ", "")]
    ['Female', 'Male', 'Nonbinary', 'Genderfluid', None]
    """
    text = text_of(value)
    return None if text is None else _KNOWN.get(text.casefold(), text)
