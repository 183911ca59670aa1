"""Writes the dialogues of the selected pairings and labels them (DEMO section 3.2, dialogue generation).

Reads conflicts (the selected ones), pairings, scenes and characters. Writes dialogues (with the labels
of the epilogue) and utterances (with theirs). A dialogue of T utterances takes one request to write,
⌈T / utterances_per_request⌉ to label and one for the epilogue.

A text that cannot be mended into a dialogue of at least `min_turns` utterances is drawn again, at most
`DRAWS` times in all; then the pairing becomes a reject of kind `invalid`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tasks.dialogues.guards import Line, Mended, mend, speaker_names, too_long
from tasks.dialogues.prompts import (
    ANNOTATE,
    EPILOGUE,
    WRITE,
    AnalysisInputs,
    AnnotateInputs,
    Epilogue,
    UtteranceLabels,
    WriteInputs,
    WrittenDialogue,
    familiarity_in_words,
    label_lines,
    labels_of_turns,
    talkway_in_words,
    turn_field,
    written_dialogue,
)
from tasks.foundation.demo.elements import canonical_emotion
from tasks.foundation.demo.records import describe, facts_of, rows_by, scenes_and_characters, transcript
from tasks.foundation.errors import ModelError
from tasks.foundation.ids import content_id
from tasks.foundation.settings.sections import DialoguesSection
from tasks.foundation.stage import Asker, Prepared, Rows, Stage, StageContext
from tasks.foundation.tables.dialogues import Dialogue, Stance, Strategy, Utterance
from tasks.foundation.tables.personas import Character
from tasks.foundation.tables.scenes import Conflict, Pairing, Scene

DRAWS = 3
"""Different texts asked for before a pairing is given up; a writer that repeats itself may do better."""


@dataclass(frozen=True, slots=True)
class Brief:
    """A selected pairing with all that a writer needs."""

    conflict: Conflict
    scene: Scene
    character1: Character
    character2: Character

    @property
    def language(self) -> str:
        return self.scene.language

    @property
    def names(self) -> tuple[str, str]:
        return speaker_names(self.character1.name, self.character2.name, self.language)


@dataclass(frozen=True, slots=True)
class Draft:
    """A dialogue in its final form, before any label."""

    mended: Mended
    stop_reason: str

    @property
    def lines(self) -> tuple[Line, ...]:
        return self.mended.lines


def prepare(context: StageContext) -> Prepared:
    """Every selected pairing is an item, in order of selection."""
    selected = context.read("conflicts", pl.col("selected"), ("pairing_id", "selection_rank")).sort("selection_rank")
    return Prepared(items=selected["pairing_id"].to_list())


def briefs(context: StageContext, keys: Sequence[str]) -> Mapping[str, Brief]:
    pairings = rows_by(context.read, "pairings", Pairing, "pairing_id", keys)
    conflicts = rows_by(context.read, "conflicts", Conflict, "pairing_id", keys)
    scenes, characters = scenes_and_characters(context.read, pairings.values())
    return {
        key: Brief(
            conflicts[key],
            scenes[pairings[key].scene_id],
            characters[pairings[key].character1_id],
            characters[pairings[key].character2_id],
        )
        for key in keys
    }


async def work(context: StageContext, brief: Brief, ask: Asker) -> Rows:
    """Writes, labels the utterances in chunks, then takes the dialogue as a whole."""
    draft = await _write(context, brief, ask)
    section = context.settings.dialogues
    manner: dict[str, Any] = {
        "language": brief.language,
        "alias": section.writer,
        "temperature": section.analysis_temperature,
        "max_tokens": section.max_tokens,
    }
    seen = analysis_inputs(brief, draft).model_dump()
    labels: dict[int, UtteranceLabels] = {}
    for first, last in chunks(len(draft.lines), section.utterances_per_request):
        inputs = AnnotateInputs(**seen, first=first, last=last)
        reply = await ask(ANNOTATE, inputs, purpose="annotate", reply=labels_of_turns(first, last), **manner)
        labels |= {turn: getattr(reply, turn_field(turn)) for turn in range(first, last + 1)}
    epilogue: Epilogue = await ask(EPILOGUE, AnalysisInputs(**seen), purpose="epilogue", **manner)
    dialogue = as_dialogue(brief, draft, epilogue, section.writer)
    utterances = [
        as_utterance(dialogue.dialogue_id, turn, line, labels[turn]) for turn, line in enumerate(draft.lines, start=1)
    ]
    return {"dialogues": [dialogue], "utterances": utterances}


def chunks(turns: int, size: int) -> Iterator[tuple[int, int]]:
    """First and last turn of each chunk: 1–6, 7–12, 13–14 for 14 turns of 6."""
    for first in range(1, turns + 1, size):
        yield first, min(first + size - 1, turns)


async def _write(context: StageContext, brief: Brief, ask: Asker) -> Draft:
    """The first draw that is, or can be mended into, a dialogue; ModelError `invalid` when none is."""
    section = context.settings.dialogues
    trouble = ""
    for sample in range(DRAWS):
        written: WrittenDialogue = await ask(
            WRITE,
            write_inputs(brief, section.min_turns, section.max_turns),
            language=brief.language,
            alias=section.writer,
            purpose="write",
            temperature=section.temperature,
            max_tokens=section.max_tokens,
            reply=written_dialogue(section.min_turns, section.max_turns),
            sample=sample,
        )
        lines = [Line(turn.speaker, turn.text) for turn in written.turns]
        joint = "" if brief.language == "zh" else " "
        mended = mend(lines, brief.names, joint, section.min_turns)
        trouble = _trouble(mended, section.min_turns)
        if not trouble:
            full = len(lines) >= section.max_turns and not mended.ended
            return Draft(mended, "max_turns" if full else "ended")
    raise ModelError(
        "invalid", f"in {DRAWS} draws the writer gave no usable dialogue; the last: {trouble}", attempts=DRAWS
    )


def _trouble(mended: Mended, min_turns: int) -> str:
    if len(mended.lines) < min_turns:
        fired = ", ".join(mended.guards) or "none"
        return f"expected at least {min_turns} utterances, found {len(mended.lines)} after mending ({fired})"
    if too_long(mended.lines):
        return f"an utterance of {max(len(line.text) for line in mended.lines)} characters"
    return ""


def write_inputs(brief: Brief, min_turns: int, max_turns: int) -> WriteInputs:
    """What the writer sees of a pairing."""
    scene, conflict, language = brief.scene, brief.conflict, brief.language
    people = zip((brief.character1, brief.character2), brief.names, strict=True)
    one, two = (describe({**facts_of(person), "name": name}, language) for person, name in people)
    return WriteInputs(
        participant1=one,
        participant2=two,
        goal1=scene.goal1,
        goal2=scene.goal2,
        relationship=conflict.relationship or "",
        familiarity=familiarity_in_words(conflict.familiarity or 0, language),
        talkway=talkway_in_words(conflict.talkway or "", language),
        setting=[scene.time, scene.location, scene.topic, scene.atmosphere],
        min_turns=min_turns,
        max_turns=max_turns,
    )


def analysis_inputs(brief: Brief, draft: Draft) -> AnalysisInputs:
    """What both analyses of a dialogue show."""
    turns = [(line.speaker, line.text) for line in draft.lines]
    return AnalysisInputs(
        sentiments=label_lines("sentiment", brief.language),
        emotions=label_lines("utterance_emotion", brief.language),
        goal1=brief.scene.goal1,
        goal2=brief.scene.goal2,
        dialogue=transcript(brief.names, turns, numbered=True),
    )


def as_dialogue(brief: Brief, draft: Draft, epilogue: Epilogue, writer: str) -> Dialogue:
    """The row of a dialogue."""
    return Dialogue(
        dialogue_id=content_id("dialogue", brief.conflict.pairing_id),
        pairing_id=brief.conflict.pairing_id,
        language=brief.scene.language,
        speaker1=brief.names[0],
        speaker2=brief.names[1],
        turn_count=len(draft.lines),
        workflow=epilogue.workflow,
        summary1=epilogue.summary1,
        summary2=epilogue.summary2,
        goal_completion=epilogue.goal_completion,
        goal_completion_reason=epilogue.reason,
        stop_reason="max_turns" if draft.stop_reason == "max_turns" else "ended",
        writer=writer,
        guards=list(draft.mended.guards),
    )


def as_utterance(dialogue_id: str, turn: int, line: Line, labels: UtteranceLabels) -> Utterance:
    """The row of one utterance with its labels."""
    return Utterance(
        dialogue_id=dialogue_id,
        turn_index=turn,
        speaker=line.speaker,
        text=line.text,
        intent=labels.intent,
        sentiment=labels.sentiment,
        emotion=canonical_emotion(labels.emotion),
        stance=[Stance(**stance.model_dump()) for stance in labels.stance],
        strategy=Strategy(**labels.strategy.model_dump()),
    )


STAGE = Stage(
    name="dialogues",
    doc="Selected pairings → dialogues with a label for each element of each utterance.",
    section=DialoguesSection,
    benchmark="demo",
    reads=("conflicts", "pairings", "scenes", "characters"),
    items_from={"": "conflicts"},
    prepare=prepare,
    briefs=briefs,
    work=work,
    worked=("dialogues", "utterances"),
    prompts=(WRITE, ANNOTATE, EPILOGUE),
    taxonomies=("familiarity", "talkway", "sentiment", "utterance_emotion", "attributes", "age_band"),
    roles=lambda settings: {"writer": [settings.dialogues.writer]},
)
