"""What a simulated user turn must not be: nothing, another voice, the assistant's words, a repeat.

Only plain cases are caught. A user may well quote the assistant or say "as an AI, you …".

>>> trouble_in("How can I assist you today?", [], [])
'role'
>>> trouble_in("As an AI, you cannot know that.", [], []) is None
True
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

Trouble = Literal["empty", "role", "repeat"]

REPEAT_WIDTH = 16
"""From this width on (wide characters count 2) a turn is not said twice by chance; "Yes, please." may be."""

COPY_WIDTH = 40
"""From this width on a passage of an assistant's answer is not found in a user's turn by chance."""

COPIED_SHARE = 0.6
"""A turn of which this much is one passage of an answer is a copy; quoting a sentence is not."""

REPEATED_SHARE = 0.8
"""A turn of which this much is one passage of an earlier turn says nothing new."""

_OWN_NAME = re.compile(r"\A\s*(?:user|person|用户|此人)\s*[:：]\s*", re.IGNORECASE)
_OTHERS_NAME = re.compile(r"^\s*(?:assistant|ai|chatbot|助手|人工智能)\s*[:：]", re.IGNORECASE | re.MULTILINE)
_OTHERS_VOICE = re.compile(
    r"""
      \bas\ an?\ (?:ai|artificial\ intelligence|(?:large\ )?language\ model|virtual\ assistant)\b
        (?:\ (?:language\ )?(?:model|assistant))?\ ?,?\ (?:i|my)\b
    | \bi(?:\ am|'m)\ (?:just\ |only\ )?an?\ (?:ai|(?:large\ )?language\ model|virtual\ assistant)\b
    | \bhow\ (?:can|may|could)\ i\ (?:help|assist|support)\ you\b
    | \bi(?:\ am|'m)\ here\ to\ (?:help|assist|support)\ you\b
    | \bi(?:'ll|\ will)\ do\ my\ best\ to\ (?:help|assist|support)\ you\b
    | \A(?:the\ )?(?:user|person)\ (?:wants|would|is|needs|asks|says)\b | \A(?:用户|此人)(?:想|希望|需要|问|说)
    | \bis\ there\ anything\ else\ i\ can\ (?:help|assist|do)\b
    | \bfeel\ free\ to\ (?:ask|reach\ out)\b[^.!?]*\b(?:any|more|other|further)\ questions\b
    | 作为(?:一个|一名|一款)?(?:ai|人工智能|(?:大)?语言模型|智能助手)(?:助手|模型)?[,，]?我
    | 我(?:只)?是(?:一个|一名|一款)?(?:ai|人工智能|(?:大)?语言模型)
    | 有什么(?:我)?(?:可以|能)(?:帮|协助|为)(?:助)?(?:到)?[您你]
    | 很高兴(?:能)?为[您你]服务
    """,
    re.VERBOSE,
)


def clean_user_text(text: str) -> str:
    """What is said, without the speaker's own name in front."""
    return _OWN_NAME.sub("", text, count=1).strip()


def find_trouble(text: str, said_by_user: Iterable[str], said_by_assistant: Iterable[str]) -> Trouble | None:
    """What is wrong with `text` as the next turn of a user; None: nothing that can be seen."""
    if not any(character.isalnum() or unicodedata.category(character) == "So" for character in text):
        return "empty"
    plain = _folded(text)
    if _OTHERS_NAME.search(text) or _OTHERS_VOICE.search(plain):
        return "role"
    if any(_is_taken_from(answer, plain, COPIED_SHARE, COPY_WIDTH) for answer in map(_folded, said_by_assistant)):
        return "role"
    if any(_is_taken_from(turn, plain, REPEATED_SHARE, REPEAT_WIDTH) for turn in map(_folded, said_by_user)):
        return "repeat"
    return None


def _is_taken_from(source: str, plain: str, share: float, width: int) -> bool:
    """Whether one passage of `source`, at least `width` wide, makes up at least `share` of `plain`."""
    length = math.ceil(share * len(plain))
    passages = (plain[start : start + length] for start in range(len(plain) - length + 1))
    return _width(plain) >= width and any(
        passage in source and _width(passage) >= width * share for passage in passages
    )


@lru_cache(maxsize=2048)  # every turn is held against all that was said before it
def _folded(text: str) -> str:
    """NFKC, case folded, straight apostrophes, single spaces, nothing invisible."""
    if text.isascii():
        return " ".join(text.casefold().split())
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return " ".join("".join(x for x in text if unicodedata.category(x) != "Cf").split())


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
