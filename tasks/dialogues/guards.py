"""What a writer got wrong in form and what can be mended without inventing anything. Pure.

Every guard that fires is named in `dialogues.guards`: those of `texts.spoken`, and

* `ending_marker`   an end marker such as *ENDING* taken out; text beside it is kept
* `relabelled`      the speaker set right: the utterance was headed by the other participant's name; or the
                    labels were all alike, or so mixed up that joining would leave too few utterances
* `empty_dropped`   utterances without text dropped
* `repeat_dropped`  an utterance that repeats the one before it, or a longer one said before, dropped
* `opener_dropped`  utterances of participant 2 before participant 1 has spoken dropped
* `merged`          two utterances of one speaker in a row joined into one

Stage directions and names in front are taken out, too. What nobody can take out (`spoken.UNFIT`) is drawn again, and
named as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tasks.foundation.demo.elements import comparison_key
from tasks.foundation.settings.sections import TextLimitsSection
from tasks.foundation.texts.replies import KEPT_SHARE
from tasks.foundation.texts.spoken import (
    REPEAT_WIDTH,
    UNFIT,
    Voice,
    find_guards,
    list_name_forms,
    match_heading,
    take_out_stage_directions,
    width,
)

GUARDS = (
    "ending_marker",
    "stage_direction",
    "name_prefix",
    "relabelled",
    "empty_dropped",
    "repeat_dropped",
    "opener_dropped",
    "merged",
    *UNFIT,
)
"""In the order in which they are named in a row."""

_ENDING = re.compile(r"\*+\s*(?:(?:THE\s+)?END(?:ING)?|结束)\s*\*+|\[(?:END(?:ING)?|结束)\]", re.IGNORECASE)
_ROLE = r"(?:participant|speaker|person|参与者|说话人)\s*(?P<role>[12])"


@dataclass(frozen=True, slots=True)
class Line:
    """One utterance as far as it is known: participant 1 or 2, and what is said."""

    speaker: int
    text: str


@dataclass(frozen=True, slots=True)
class Mended:
    """Utterances that alternate from participant 1, the guards that fired in the order above, and
    whether the writer marked the end after the last utterance."""

    lines: tuple[Line, ...]
    guards: tuple[str, ...]
    ended: bool


def mend(lines: Sequence[Line], names: tuple[str, str], joint: str = " ", at_least: int = 0) -> Mended:
    """`lines` in the form a dialogue must have; repeats until no guard fires. `joint` joins merged texts.

    Where joining would leave fewer than `at_least` utterances of as many or more, the speakers are set to
    take turns instead. Every line of the result has text; there may be too few of them, even none.
    """
    ended = _marks_end(lines)
    fired: set[str] = set()
    current = [replace(line, text=_single_spaced(line.text)) for line in lines]
    while True:
        mended, now = _pass(current, names, joint, at_least)
        if not now:
            return Mended(tuple(mended), tuple(guard for guard in GUARDS if guard in fired), ended)
        fired |= now
        current = mended


def find_unfit(lines: Sequence[Line], voice: Voice) -> tuple[str, ...]:
    """The guards that fire on `lines` and cannot be mended."""
    fired = {guard for line in lines for guard in find_guards(line.text, voice)}
    return tuple(guard for guard in UNFIT if guard in fired)


def is_fit(text: str, limits: TextLimitsSection) -> bool:
    """Whether an utterance has words and is not far over its limit."""
    return bool(text.strip()) and len(text) <= KEPT_SHARE * limits.utterance


def choose_speaker_names(name1: str, name2: str, language: str) -> tuple[str, str]:
    """The names of the participants; numbered where both have the same."""
    if comparison_key(name1) != comparison_key(name2):
        return (name1, name2)
    return (f"{name1}（1）", f"{name2}（2）") if language == "zh" else (f"{name1} (1)", f"{name2} (2)")


def _pass(lines: list[Line], names: tuple[str, str], joint: str, at_least: int) -> tuple[list[Line], set[str]]:
    """`lines` after every guard once, and the guards that changed something."""
    prefix = match_heading(names, _ROLE)
    steps: tuple[tuple[str, Callable[[list[Line]], list[Line]]], ...] = (
        ("ending_marker", lambda now: [replace(line, text=_without_marker(line.text)) for line in now]),
        ("stage_direction", lambda now: [replace(line, text=take_out_stage_directions(line.text)) for line in now]),
        ("relabelled", lambda now: [replace(line, speaker=_meant(line, prefix, names)) for line in now]),
        ("name_prefix", lambda now: [replace(line, text=_without_prefix(line.text, prefix)) for line in now]),
        ("empty_dropped", lambda now: [line for line in now if line.text]),
        ("repeat_dropped", _without_repeats),
        ("relabelled", lambda now: _by_turns_if_mixed_up(now, at_least)),
        ("opener_dropped", _from_participant1),
        ("merged", lambda now: _merged(now, joint)),
    )
    fired: set[str] = set()
    for guard, step in steps:
        after = step(lines)
        if after != lines:
            fired.add(guard)
        lines = after
    return lines, fired


def _marks_end(lines: Sequence[Line]) -> bool:
    """Whether an end marker stands after the last text."""
    for line in reversed(lines):
        if _ENDING.search(line.text):
            return not line.text[[*_ENDING.finditer(line.text)][-1].end() :].strip()
        if line.text.strip():
            return False
    return False


def _single_spaced(text: str) -> str:
    return " ".join(text.split())


def _without_marker(text: str) -> str:
    return _single_spaced(_ENDING.sub(" ", text)) if _ENDING.search(text) else text


def _without_prefix(text: str, prefix: re.Pattern[str]) -> str:
    match = prefix.match(text)
    return text[match.end() :] if match else text


def _meant(line: Line, prefix: re.Pattern[str], names: tuple[str, str]) -> int:
    """The speaker that a heading name says; the line's own where there is none or it fits both."""
    match = prefix.match(line.text)
    if match is None:
        return line.speaker
    meant = {int(match["role"])} if match["role"] else _named(match["name"], names)
    return meant.pop() if len(meant) == 1 else line.speaker


def _named(prefix: str, names: tuple[str, str]) -> set[int]:
    """The participants that a prefix can mean."""
    wanted = prefix.casefold()
    return {
        number
        for number, name in enumerate(names, start=1)
        if wanted in {short.casefold() for short in list_name_forms(name)}
    }


def _without_repeats(lines: Sequence[Line]) -> list[Line]:
    kept: list[Line] = []
    said: set[str] = set()
    previous = None
    for line in lines:
        key = comparison_key(line.text)
        if key != previous and not (key in said and width(line.text) >= REPEAT_WIDTH):
            kept.append(line)
            said.add(key)
            previous = key
    return kept


def _by_turns_if_mixed_up(lines: Sequence[Line], at_least: int) -> list[Line]:
    alike = len(lines) > 1 and len({line.speaker for line in lines}) == 1
    too_few = len(_merged(_from_participant1(lines), "")) < at_least <= len(lines)
    if not (alike or too_few):
        return list(lines)
    return [Line(1 + place % 2, line.text) for place, line in enumerate(lines)]


def _from_participant1(lines: Sequence[Line]) -> list[Line]:
    first = next((place for place, line in enumerate(lines) if line.speaker == 1), len(lines))
    return list(lines[first:])


def _merged(lines: Sequence[Line], joint: str) -> list[Line]:
    merged: list[Line] = []
    for line in lines:
        if merged and merged[-1].speaker == line.speaker:
            merged[-1] = Line(line.speaker, f"{merged[-1].text}{joint}{line.text}")
        else:
            merged.append(line)
    return merged
