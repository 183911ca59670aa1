"""What a side says, taken out of what its model wrote. Pure.

A model may head its lines with a name, go on in the other's name, or mark the end of the talk:

>>> extract_utterance("Anna: Fine, see you then. *ENDING*", "Anna", "Ben")
ExtractedUtterance(text='Fine, see you then.', ends=True)
>>> extract_utterance("I could come by.\\nBen: Good!\\nAnna: Great.", "Anna", "Ben")
ExtractedUtterance(text='I could come by.', ends=False)
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from tasks.foundation.errors import ModelError
from tasks.foundation.llm.reply import said_in

_WRITTEN = r'(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'
_CUT_OFF = re.compile(rf'\{{\s*"content"\s*:\s*"(?P<said>{_WRITTEN})(?:\\u?[0-9a-fA-F]{{0,3}})?\Z')
"""A reply of `Speech` that ends within its text."""

_MARKER = re.compile(r"\*{1,2}ENDING\*{1,2}")
_LAST_WORD = re.compile(
    r"(?:\*{1,2}\s*(?:the\s+)?end(?:ing)?\s*\*{1,2}|\*{1,2}结束\*{1,2}|\[(?:ending|结束)\])\W*\Z", re.IGNORECASE
)
"""Other spellings count only at the very end: a happy *ending* within a sentence ends nothing."""


@dataclass(frozen=True, slots=True)
class ExtractedUtterance:
    """One utterance on one line (empty: nothing was said), and whether the side ends the talk with it."""

    text: str
    ends: bool


def extract_utterance(written: str, speaker: str, other: str) -> ExtractedUtterance:
    """What `speaker` says: without name prefixes, up to where the model goes on in the name of `other`."""
    own = _cut_to_own_lines(written, _match_heading(speaker), _match_heading(other))
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


def _match_heading(name: str) -> re.Pattern[str]:
    """A line's start such as 'Anna Keller:', '**Anna**：' or '[Anna]:'."""
    forms = sorted({name, *name.split()[:1]} - {""}, key=lambda form: (-len(form), form))
    return re.compile(rf"^\W{{0,3}}(?:{'|'.join(map(re.escape, forms))})[\s*\])）】]*[:：][\s*]*", re.IGNORECASE)


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
