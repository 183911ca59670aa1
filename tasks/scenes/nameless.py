"""Goals without the names of the seed's speakers: the scene will be played by others (DEMO section 3.2).

The distiller is told to leave names out; what it leaves in is mended here, without asking again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tasks.foundation.tables.types import Language

_SELF = {"en": "this person", "zh": "自己"}
_OTHER = {"en": "the other person", "zh": "对方"}
_TITLES = frozenset(
    ("mr", "mrs", "ms", "miss", "dr", "prof", "professor", "sir", "madam", "father", "mother", "uncle", "aunt")
    + ("officer", "judge", "captain", "coach", "the", "a", "an", "of", "and")
)
_ALSO_WORDS = frozenset(
    ("april", "art", "august", "autumn", "bill", "chance", "chase", "dawn", "drew", "faith", "frank", "grace", "grant")
    + ("guy", "hope", "ivy", "jack", "joy", "june", "lily", "mark", "may", "miles", "olive", "pat", "ray", "rich")
    + ("rob", "rose", "ruby", "sandy", "sue", "summer", "sunny", "violet", "wade", "will")
)
"""Names that are common words when written small: only the capitalised form is a name."""


def without_names(goal: str, own: str, other: str, language: Language) -> str:
    """`goal` of the speaker `own` with neither speaker's name in it.

    Labels of one letter (A, B) are no names. Full names are replaced before their parts.

    >>> without_names("Convince Mr. Ruiz to lend Ana's bike", "Ana", "Mr. Ruiz", "en")
    "Convince the other person to lend this person's bike"
    """
    for name, words in ((other, _OTHER[language]), (own, _SELF[language])):
        for part in _parts(name):
            goal = _pattern(part).sub(words, goal)
    return goal[:1].upper() + goal[1:] if language == "en" else goal


def _parts(name: str) -> Sequence[str]:
    """The whole name, then its words that are names themselves, longest first."""
    name = name.strip()
    if len(name) < 2:
        return ()
    words = [word.strip(".,'’\"()") for word in name.split()]
    names = {word for word in words if len(word) > 1 and word.lower() not in _TITLES and not word.isdigit()}
    return (name, *sorted(names - {name}, key=lambda word: (-len(word), word)))


def _pattern(name: str) -> re.Pattern[str]:
    """The name as a whole word, with an article before it; in any case unless it is a word as well."""
    if not re.search(r"[A-Za-zÀ-ɏ]", name):
        return re.compile(re.escape(name))
    flags = re.NOFLAG if name.lower() in _ALSO_WORDS else re.IGNORECASE
    return re.compile(rf"(?<![A-Za-zÀ-ɏ0-9])(?:(?:[Tt]he|[Aa]n?) )?{re.escape(name)}(?![A-Za-zÀ-ɏ0-9])", flags)
