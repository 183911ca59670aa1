"""What a simulated user turn must not be: what no person says (`texts.spoken`), the assistant's words, or a repeat.

Only plain cases are caught. A user may well quote the assistant or say "as an AI, you …".

>>> find_trouble("How can I assist you today?", Voice("en"), [], [])
('role', ('assistant_voice',))
>>> find_trouble("As an AI, you cannot know that.", Voice("en"), [], [])
(None, ())
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from tasks.foundation.texts.spoken import Voice, find_guards, fold, is_taken_from, mend_text

Trouble = Literal["empty", "role", "repeat", "language", "echo"]

COPY_WIDTH = 40
"""From this width on a passage of an assistant's answer is not found in a user's turn by chance."""

COPIED_SHARE = 0.6
"""A turn of which this much is one passage of an answer is a copy; quoting a sentence is not."""

USER_NAMES = ("user", "person", "用户", "此人")

_TROUBLE_OF: dict[str, Trouble] = {
    "empty": "empty",
    "assistant_voice": "role",
    "name_inside": "role",
    "refusal": "role",
    "ai_voice": "role",
    "wrong_language": "language",
    "prompt_echo": "echo",
    "repeat": "repeat",
}
"""In the order of weight: a repeat stands where nothing better comes."""

_OTHERS_NAME = re.compile(r"^\s*(?:assistant|ai|chatbot|助手|人工智能)\s*[:：]", re.IGNORECASE | re.MULTILINE)
_OTHERS_VOICE = re.compile(
    r"""
      \bhow\ (?:can|may|could)\ i\ (?:help|assist|support)\ you\b
    | \bi(?:\ am|'m)\ here\ to\ (?:help|assist|support)\ you\b
    | \bi(?:'ll|\ will)\ do\ my\ best\ to\ (?:help|assist|support)\ you\b
    | \A(?:the\ )?(?:user|person)\ (?:wants|would|is|needs|asks|says)\b | \A(?:用户|此人)(?:想|希望|需要|问|说)
    | \bis\ there\ anything\ else\ i\ can\ (?:help|assist|do)\b
    | \bfeel\ free\ to\ (?:ask|reach\ out)\b[^.!?]*\b(?:any|more|other|further)\ questions\b
    | 有什么(?:我)?(?:可以|能)(?:帮|协助|为)(?:助)?(?:到)?[您你]
    | 很高兴(?:能)?为[您你]服务
    """,
    re.VERBOSE,
)


def clean_user_text(text: str, voice: Voice) -> tuple[str, tuple[str, ...]]:
    """What is said, without stage directions and the speaker's own name in front, and which of them were there."""
    return mend_text(text.strip(), voice)


def find_trouble(
    text: str, voice: Voice, said_by_user: Sequence[str], said_by_assistant: Sequence[str]
) -> tuple[Trouble | None, tuple[str, ...]]:
    """What is wrong with `text` as the next turn of a user (None: nothing that can be seen), and all guards that
    fire."""
    guards: list[str] = list(find_guards(text, voice, said_by_user))
    if _sounds_like_the_assistant(text, said_by_assistant):
        guards.append("assistant_voice")
    return next((trouble for guard, trouble in _TROUBLE_OF.items() if guard in guards), None), tuple(guards)


def _sounds_like_the_assistant(text: str, said_by_assistant: Sequence[str]) -> bool:
    plain = fold(text)
    return bool(_OTHERS_NAME.search(text) or _OTHERS_VOICE.search(plain)) or any(
        is_taken_from(fold(answer), plain, COPIED_SHARE, COPY_WIDTH) for answer in said_by_assistant
    )
