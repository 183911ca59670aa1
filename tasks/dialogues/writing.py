"""Writes a dialogue, as a whole or turn by turn (`dialogues.style`), and mends what can be mended.

Turn by turn, each side is asked for its next utterance with its own view: its own goal and background, the other's
background from familiarity 4 on, never the other's goal. It may end the talk from `min_turns` on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from tasks.dialogues.guards import GUARDS, Line, Mended, find_unfit, is_fit, mend
from tasks.dialogues.prompts import (
    REWRITE,
    SPEAK,
    WRITE,
    RewriteInputs,
    SpeakInputs,
    WriteInputs,
    WrittenDialogue,
    WrittenUtterance,
    describe_familiarity,
    make_dialogue_reply,
)
from tasks.dialogues.setup import DialogueSetup, choose_target
from tasks.foundation.demo.records import collect_facts, describe, describe_setting, write_transcript
from tasks.foundation.demo.speaking import (
    ExtractedUtterance,
    Participant,
    extract_utterance,
    show_side,
)
from tasks.foundation.errors import ModelError
from tasks.foundation.llm.prompts import Prompt
from tasks.foundation.settings.sections import DialoguesSection, TextLimitsSection
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.stage import Asker, StageContext
from tasks.foundation.texts.spoken import UNFIT, Voice, find_guards, mend_text

MERGED_TIMES = 3
"""An utterance so many times the limit after mending is no utterance; the dialogue is drawn again, never cut."""

DRAWS = 3
"""Different texts asked for before a pairing is given up; a writer that repeats itself may do better."""


_NAMED: dict[str, str] = {"repeat": "repeat_dropped", "empty": "empty_dropped"}
"""What a guard on one utterance is called in a dialogue."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A dialogue in its final form, before any label."""

    lines: tuple[Line, ...]
    stop_reason: Literal["ended", "max_turns"]
    guards: tuple[str, ...]


async def write_dialogue(context: StageContext, setup: DialogueSetup, ask: Asker) -> Draft:
    """The dialogue in its final form; ModelError `invalid` where no draw can be mended into one."""
    writer = Writer(context, setup, ask)
    return await (writer.by_turns() if context.settings.dialogues.style == "turns" else writer.as_a_whole())


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes the dialogue of one pairing."""

    context: StageContext
    setup: DialogueSetup
    ask: Asker

    @property
    def section(self) -> DialoguesSection:
        return self.context.settings.dialogues

    @property
    def limits(self) -> TextLimitsSection:
        return self.context.settings.text_limits

    async def as_a_whole(self) -> Draft:
        """The first draw that is, or can be mended into, a dialogue."""
        section, setup = self.section, self.setup
        inputs = make_write_inputs(setup, section.min_turns, section.max_turns, choose_target(self.context, setup))
        reply = make_dialogue_reply(section.min_turns, section.max_turns)
        trouble, fired = "", set[str]()
        for sample in range(DRAWS):
            written: WrittenDialogue = await self._ask(WRITE, inputs, "write", sample, reply)
            lines = await self._rewrite([Line(turn.speaker, turn.text) for turn in written.turns], sample)
            joint = "" if setup.language == "zh" else " "
            mended = mend(lines, setup.names, joint, section.min_turns)
            unfit = find_unfit(mended.lines, make_voice(setup))
            fired |= {*mended.guards, *unfit}
            trouble = _find_trouble(mended, section.min_turns, self.limits)
            if not trouble and (not unfit or section.if_unfit == "keep"):
                return _make_draft(mended.lines, fired, ended=mended.ended or len(lines) < section.max_turns)
            trouble = trouble or f"guards that cannot be mended: {', '.join(unfit)}"
        raise ModelError(
            "invalid", f"in {DRAWS} draws the writer gave no usable dialogue; the last: {trouble}", attempts=DRAWS
        )

    async def by_turns(self) -> Draft:
        """Each utterance asked for of the side whose turn it is, until one ends the talk."""
        lines, fired, ended = list[Line](), set[str](), False
        while len(lines) < self.section.max_turns and not ended:
            said, guards = await self._speak(lines)
            fired |= guards
            ended = said.ends
            if said.text:
                lines.append(Line(_choose_speaker(lines), said.text))
        return _make_draft(lines, fired, ended=ended)

    async def _speak(self, lines: Sequence[Line]) -> tuple[ExtractedUtterance, set[str]]:
        """The first draw of the next utterance that can be used, and the guards that fired."""
        inputs = make_speak_inputs(self.setup, lines, self.section, choose_target(self.context, self.setup))
        fired, trouble = set[str](), ""
        for sample in range(DRAWS):
            written: WrittenUtterance = await self._ask(SPEAK, inputs, "speak", sample)
            said, guards, trouble = self._read(written.text, lines)
            fired |= guards
            if not trouble:
                return said, fired
        why = f"in {DRAWS} draws the writer gave no usable utterance {len(lines) + 1}; the last: {trouble}"
        raise ModelError("invalid", why, attempts=DRAWS)

    def _read(self, written: str, lines: Sequence[Line]) -> tuple[ExtractedUtterance, set[str], str]:
        """What a side says, the guards that fired, and what makes it unusable (empty: nothing)."""
        speaker = _choose_speaker(lines)
        names, before = self.setup.names, [line.text for line in lines]
        voice = make_voice(self.setup, SPEAK, speaker)
        found = extract_utterance(written, names[speaker - 1], names[2 - speaker])
        text, _ = mend_text(found.text, voice)
        ends = found.ends and len(lines) + bool(text) >= self.section.min_turns
        left = find_guards(text, voice, before) if text else ()
        guards = {_NAMED.get(guard, str(guard)) for guard in (*find_guards(written, voice, before), *left)}
        guards |= {"ending_marker"} if found.ends and not ends else set()
        said = ExtractedUtterance(text, ends)
        if not text:
            return said, guards if ends else {*guards, "empty_dropped"}, "" if ends else "nothing was said"
        unfit = [guard for guard in left if guard == "repeat" or (guard in UNFIT and self.section.if_unfit == "redraw")]
        too_long = "" if is_fit(text, self.limits) else f"an utterance of {len(text)} characters"
        return said, guards, ", ".join(unfit) or too_long

    async def _rewrite(self, lines: Sequence[Line], sample: int) -> list[Line]:
        """`lines` with those written again, each alone, that are without words or far too long. One that comes no
        better stays as it was, for the guards to judge."""
        found = list(lines)
        for place, line in enumerate(lines):
            if is_fit(line.text, self.limits):
                continue
            inputs = make_rewrite_inputs(self.setup, found, place)
            try:
                again: WrittenUtterance = await self._ask(REWRITE, inputs, "rewrite", sample)
            except ModelError as error:
                if error.may_pass_later:
                    raise
            else:
                found[place] = Line(line.speaker, again.text)
        return found

    async def _ask(
        self,
        prompt: Prompt[Any, Any],
        inputs: BaseModel,
        purpose: str,
        sample: int,
        reply: type[BaseModel] | None = None,
    ) -> Any:
        return await self.ask(
            prompt,
            inputs,
            language=self.setup.language,
            alias=self.section.writer,
            purpose=purpose,
            temperature=self.section.temperature,
            max_tokens=self.section.max_tokens,
            reply=reply,
            sample=sample,
        )


def _choose_speaker(lines: Sequence[Line]) -> int:
    return 1 + len(lines) % 2


def _make_draft(lines: Sequence[Line], fired: Collection[str], *, ended: bool) -> Draft:
    return Draft(tuple(lines), "ended" if ended else "max_turns", tuple(one for one in GUARDS if one in fired))


def make_voice(setup: DialogueSetup, prompt: Prompt[Any, Any] = WRITE, speaker: int | None = None) -> Voice:
    """As whom the writer speaks (None: as both): neither its goals nor a rule of its prompt is said word for word."""
    goals = (setup.scene.goal1, setup.scene.goal2)
    own = goals if speaker is None else (goals[speaker - 1],)
    return Voice(setup.language, setup.names, (*own, *prompt.sentences(setup.language)))


def make_rewrite_inputs(setup: DialogueSetup, lines: Sequence[Line], place: int) -> RewriteInputs:
    """What the writer sees of an utterance that is to be written again: the others, and itself where it has words."""
    one, two = describe_people(setup)
    shown = [(line.speaker, "…" if at == place else line.text) for at, line in enumerate(lines)]
    return RewriteInputs(
        participant1=one,
        participant2=two,
        goal1=setup.scene.goal1,
        goal2=setup.scene.goal2,
        dialogue=write_transcript(setup.names, shown, setup.language, numbered=True),
        turn=place + 1,
        name=setup.names[lines[place].speaker - 1],
        text=lines[place].text,
    )


def _find_trouble(mended: Mended, min_turns: int, limits: TextLimitsSection) -> str:
    if len(mended.lines) < min_turns:
        fired = ", ".join(mended.guards) or "none"
        return f"expected at least {min_turns} utterances, found {len(mended.lines)} after mending ({fired})"
    longest = max(len(line.text) for line in mended.lines)
    if longest > MERGED_TIMES * limits.utterance:
        return f"an utterance of {longest} characters where {limits.utterance} are allowed (text_limits.utterance)"
    return ""


def make_write_inputs(
    setup: DialogueSetup, min_turns: int, max_turns: int, target_turns: int | None = None
) -> WriteInputs:
    """What the writer sees of a pairing."""
    scene, conflict, language = setup.scene, setup.conflict, setup.language
    one, two = describe_people(setup)
    return WriteInputs(
        participant1=one,
        participant2=two,
        goal1=scene.goal1,
        goal2=scene.goal2,
        relationship=conflict.relationship or "",
        familiarity=describe_familiarity(conflict.familiarity or 0, language),
        talkway=taxonomy("talkway").show(conflict.talkway or "", language),
        setting=describe_setting(scene),
        min_turns=min_turns,
        max_turns=max_turns,
        target_turns=target_turns,
    )


def make_speak_inputs(
    setup: DialogueSetup, lines: Sequence[Line], section: DialoguesSection, target_turns: int | None
) -> SpeakInputs:
    """What the side sees whose turn it is."""
    scene, conflict, language = setup.scene, setup.conflict, setup.language
    goals = (scene.goal1, scene.goal2)
    one, two = (Participant(*each) for each in zip(setup.names, describe_people(setup), goals, strict=True))
    familiarity = conflict.familiarity or 0
    return SpeakInputs(
        **show_side(one, two, _choose_speaker(lines), familiarity),
        relationship=conflict.relationship or "",
        familiarity=describe_familiarity(familiarity, language),
        talkway=taxonomy("talkway").show(conflict.talkway or "", language),
        setting=describe_setting(scene),
        dialogue=write_transcript(setup.names, ((line.speaker, line.text) for line in lines), language),
        turn=len(lines) + 1,
        max_turns=section.max_turns,
        target_turns=target_turns,
        may_end=len(lines) + 1 >= section.min_turns,
    )


def describe_people(setup: DialogueSetup) -> tuple[str, str]:
    """Both participants in words, under the names they speak with."""
    people = zip((setup.character1, setup.character2), setup.names, strict=True)
    one, two = (describe({**collect_facts(person), "name": name}, setup.language) for person, name in people)
    return one, two
