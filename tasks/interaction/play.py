"""Plays one episode: the sides speak by turns until one ends it, the turns are used up, or one fails.

Speaker 1 speaks on odd turns. Knows neither prompts nor models: `speak` gives a side's text or raises.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from tasks.foundation.demo.speaking import extract_utterance
from tasks.foundation.errors import ModelError
from tasks.interaction.utterance import recover_words, was_turned_down

StopReason = Literal["ended", "max_turns", "fault"]


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """`written`: all that the side's model wrote."""

    speaker: int
    text: str
    written: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class PlayedEpisode:
    """What was said, why it stopped and, after a fault, which side (1 or 2) was at fault."""

    turns: tuple[SpokenTurn, ...]
    stop_reason: StopReason
    at_fault: int | None = None


Speak = Callable[[int, tuple[SpokenTurn, ...]], Awaitable[str]]
"""The text of a side (1 or 2) after what was said so far; raises ModelError."""


async def play(names: tuple[str, str], max_turns: int, speak: Speak) -> PlayedEpisode:
    """The talk. A side's lasting failure ends and keeps it; what is no side's fault is raised.

    Text beside the end marker is the last utterance and a bare marker is none; a marker before anything
    was said is no talk, and a fault like an empty reply.
    """
    turns: tuple[SpokenTurn, ...] = ()
    for turn in range(1, max_turns + 1):
        speaker = 1 if turn % 2 else 2
        words = await _ask_for_words(speak, speaker, turns)
        utterance = extract_utterance(words, names[speaker - 1], names[2 - speaker]) if words else None
        if utterance is not None and utterance.text:
            turns = (*turns, SpokenTurn(speaker, utterance.text, words or ""))
        elif utterance is None or not (utterance.ends and turns):
            return PlayedEpisode(turns, "fault", speaker)
        if utterance.ends:
            return PlayedEpisode(turns, "ended")
    return PlayedEpisode(turns, "max_turns")


async def _ask_for_words(speak: Speak, speaker: int, turns: tuple[SpokenTurn, ...]) -> str | None:
    """What the side's model wrote; None where it failed for good."""
    try:
        return await speak(speaker, turns)
    except ModelError as error:
        if error.may_pass_later or was_turned_down(error):
            raise
        return recover_words(error)
