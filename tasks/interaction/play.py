"""Plays one episode: the sides speak by turns until one ends it, the turns are used up, or one fails.

Speaker 1 speaks on odd turns. Knows neither prompts nor models: `speak` gives a side's text or raises.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from tasks.foundation.errors import ModelError
from tasks.interaction.utterance import heard, turned_down, words_of

StopReason = Literal["ended", "max_turns", "fault"]


@dataclass(frozen=True, slots=True)
class Said:
    speaker: int
    text: str


@dataclass(frozen=True, slots=True)
class Played:
    """What was said, why it stopped and, after a fault, which side (1 or 2) was at fault."""

    turns: tuple[Said, ...]
    stop_reason: StopReason
    at_fault: int | None = None


Speak = Callable[[int, tuple[Said, ...]], Awaitable[str]]
"""The text of a side (1 or 2) after what was said so far; raises ModelError."""


async def play(names: tuple[str, str], max_turns: int, speak: Speak) -> Played:
    """The talk. A side's lasting failure ends and keeps it; what is no side's fault is raised.

    Text beside the end marker is the last utterance and a bare marker is none; a marker before anything
    was said is no talk, and a fault like an empty reply.
    """
    turns: tuple[Said, ...] = ()
    for turn in range(1, max_turns + 1):
        speaker = 1 if turn % 2 else 2
        words = await _words(speak, speaker, turns)
        utterance = heard(words, names[speaker - 1], names[2 - speaker]) if words else None
        if utterance is not None and utterance.text:
            turns = (*turns, Said(speaker, utterance.text))
        elif utterance is None or not (utterance.ends and turns):
            return Played(turns, "fault", speaker)
        if utterance.ends:
            return Played(turns, "ended")
    return Played(turns, "max_turns")


async def _words(speak: Speak, speaker: int, turns: tuple[Said, ...]) -> str | None:
    """What the side's model wrote; None where it failed for good."""
    try:
        return await speak(speaker, turns)
    except ModelError as error:
        if error.may_pass_later or turned_down(error):
            raise
        return words_of(error)
