"""Goals of scenes: without the names of the seed's speakers, and as the pairs that repeats are known by.

The scene will be played by others (DEMO section 3.2). The distiller is told to leave names out; what it leaves in is
mended here, without asking again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tasks.foundation.tables.types import Language


def _words(line: str) -> frozenset[str]:
    return frozenset(line.split())


_SELF = {"en": "this person", "zh": "自己"}
_OTHER = {"en": "the other person", "zh": "对方"}
_TITLES = _words(
    "mr mrs ms miss dr prof professor sir madam father mother uncle aunt officer judge captain coach the a an of and"
)
_ALSO_WORDS = _words(
    "april art august autumn bill chance chase dawn drew faith frank grace grant guy hope ivy jack joy june lily mark "
    "may miles olive pat ray rich rob rose ruby sandy sue summer sunny violet wade will"
)
"""Names that are common words when written small: only the capitalised form is a name."""
_LATIN = "[A-Za-zÀ-ɏ0-9]"


def without_names(goal: str, own: str, other: str, language: Language) -> str:
    """`goal` of the speaker `own` with neither speaker's name in it.

    Labels of one letter (A, B) are no names; a full name goes before its parts.

    >>> without_names("Convince Mr. Ruiz to lend Ana's bike", "Ana", "Mr. Ruiz", "en")
    "Convince the other person to lend this person's bike"
    """
    words = {part: said[language] for name, said in ((own, _SELF), (other, _OTHER)) for part in _parts(name)}
    if words:
        parts = sorted(words, key=lambda part: (-len(part), part))
        pattern = "|".join(f"({_pattern(part, whole=part in (own.strip(), other.strip()))})" for part in parts)
        goal = re.sub(pattern, lambda match: _said(words[parts[(match.lastindex or 1) - 1]], match), goal)
    return goal[:1].upper() + goal[1:] if language == "en" else goal


def _said(words: str, match: re.Match[str]) -> str:
    """The words that replace a name, with a capital where a sentence starts."""
    before = match.string[: match.start()].rstrip()
    return words[:1].upper() + words[1:] if not before or before[-1] in ".!?" else words


def _parts(name: str) -> Sequence[str]:
    """The whole name, then its words that are names themselves, longest first."""
    name = name.strip()
    if len(name) < 2:
        return ()
    words = [word.strip(".,'’\"()") for word in name.split()]
    names = {word for word in words if len(word) > 1 and word.lower() not in _TITLES and not word.isdigit()}
    return (name, *sorted(names - {name}, key=lambda word: (-len(word), word)))


def _pattern(name: str, *, whole: bool) -> str:
    """The name as a word of its own, with an article before it.

    In any case, but for a name that is a word as well ("Will") and for a part of a longer one (of "Bus Driver").
    """
    if not re.search(_LATIN, name):
        return re.escape(name)
    flag = "i" if whole and name.lower() not in _ALSO_WORDS else ""
    return rf"(?<!{_LATIN})(?{flag}:(?:(?:[Tt]he|[Aa]n?) )?{re.escape(name)})(?!{_LATIN})"


def join_goals(goal1: str, goal2: str, language: Language) -> str:
    """Both goals as one text; a full stop at the end of either makes no difference."""
    stop = "。" if language == "zh" else ". "
    return stop.join(goal.strip().rstrip(".。") for goal in (goal1, goal2))
