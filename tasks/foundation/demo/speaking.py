"""One side of a talk: what it sees before its turn (DEMO appendix E.5), and what it says of what its model wrote.

A model may head its lines with a name, go on in the other's name, or mark the end of the talk:

>>> extract_utterance("Anna: Fine, see you then. *ENDING*", "Anna", "Ben")
ExtractedUtterance(text='Fine, see you then.', ends=True)
>>> extract_utterance("I could come by.\\nBen: Good!\\nAnna: Great.", "Anna", "Ben")
ExtractedUtterance(text='I could come by.', ends=False)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tasks.foundation.texts.spoken import match_heading

KNOWS_BACKGROUND = 4
"""Familiarity from which on a side knows the other's background. Numbers are compared: 10 is not 1."""

_MARKER = re.compile(r"\*{1,2}ENDING\*{1,2}")
_LAST_WORD = re.compile(
    r"(?:\*{1,2}\s*(?:the\s+)?end(?:ing)?\s*\*{1,2}|\*{1,2}结束\*{1,2}|\[(?:ending|结束)\])\W*\Z", re.IGNORECASE
)
"""Other spellings count only at the very end: a happy *ending* within a sentence ends nothing."""


@dataclass(frozen=True, slots=True)
class Participant:
    name: str
    background: str
    goal: str


def show_side(one: Participant, two: Participant, speaker: int, familiarity: int) -> dict[str, str]:
    """What participant `speaker` (1 or 2) knows of both: its own background and goal, the other's goal never, the
    other's background from familiarity 4 on."""
    own, other = (one, two) if speaker == 1 else (two, one)
    return {
        "name": own.name,
        "background": own.background,
        "goal": own.goal,
        "partner": other.name,
        "partner_background": other.background if familiarity >= KNOWS_BACKGROUND else "",
    }


@dataclass(frozen=True, slots=True)
class ExtractedUtterance:
    """One utterance on one line (empty: nothing was said), and whether the side ends the talk with it."""

    text: str
    ends: bool


def extract_utterance(written: str, speaker: str, other: str) -> ExtractedUtterance:
    """What `speaker` says: without name prefixes, up to where the model goes on in the name of `other`."""
    own = _cut_to_own_lines(written, match_heading((speaker,)), match_heading((other,)))
    ends = bool(_MARKER.search(own) or _LAST_WORD.search(own))
    return ExtractedUtterance(" ".join(_LAST_WORD.sub(" ", _MARKER.sub(" ", own)).split()), ends)


def _cut_to_own_lines(written: str, own: re.Pattern[str], others: re.Pattern[str]) -> str:
    """The lines of the speaker; a first line headed by the other's name is the speaker's, wrongly headed."""
    kept: list[str] = []
    for line in written.strip().splitlines():
        if others.match(line) and any(kept):
            break
        kept.append(own.sub("", others.sub("", line, count=1), count=1).strip())
    return "\n".join(kept)
