"""When a conversation is over (EYT-Bench section 3.3 and Algorithm 1, lines 8 to 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tasks.conversation.labels import Progress

STOP_RULE = "achieved-twice/1"
"""Name and version of the rule below: part of every conversation's id, for another rule makes other scores."""

ACHIEVED_IN_A_ROW = 2


def find_stop_reason(
    progress: Sequence[Progress], answered: int, max_turns: int
) -> Literal["achieved", "max_turns"] | None:
    """Why the conversation ends with the latest user turn, which is then not answered; None: it goes on.

    `progress` is that of the user turns so far in order, the latest last; `answered` counts the target's
    answers. An achieved goal is named also where the budget of turns ends at the same moment.
    """
    latest = tuple(progress[-ACHIEVED_IN_A_ROW:])
    if latest == ("achieved",) * ACHIEVED_IN_A_ROW:
        return "achieved"
    return "max_turns" if answered >= max_turns else None
