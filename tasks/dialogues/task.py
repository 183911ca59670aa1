"""Writes the dialogues of the selected pairings and labels them (DEMO section 3.2, dialogue generation).

Reads conflicts (the selected ones), pairings, scenes and characters. Writes dialogues (with the labels
of the epilogue) and utterances (with theirs). A dialogue of T utterances takes one request to write,
⌈T / utterances_per_request⌉ to label and one for the epilogue. What of a reply cannot be used is asked for again alone:
an utterance without words or far too long, the labels of a turn.

A text that cannot be mended into a dialogue of at least `min_turns` utterances, or has words in it that no person says,
is drawn again, at most `DRAWS` times in all; then the pairing becomes a reject of kind `invalid`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tasks.dialogues.guards import GUARDS, Line, Mended, choose_speaker_names, find_unfit, is_fit, mend
from tasks.dialogues.prompts import (
    ANNOTATE,
    EPILOGUE,
    REWRITE,
    WRITE,
    AnalysisInputs,
    AnnotateInputs,
    Epilogue,
    RewriteInputs,
    UtteranceLabels,
    WriteInputs,
    WrittenDialogue,
    WrittenUtterance,
    describe_familiarity,
    describe_talkway,
    list_labels,
    make_dialogue_reply,
    make_labels_reply,
    name_turn_field,
    name_turns,
)
from tasks.foundation.demo.elements import canonical_emotion
from tasks.foundation.demo.records import collect_facts, describe, load_rows_by, scenes_and_characters, write_transcript
from tasks.foundation.errors import ModelError
from tasks.foundation.ids import content_id, seed_of
from tasks.foundation.settings.sections import DialoguesSection, TextLimitsSection
from tasks.foundation.stage import Asker, Prepared, Rows, Stage, StageContext
from tasks.foundation.tables.dialogues import Dialogue, Stance, Strategy, Utterance
from tasks.foundation.tables.personas import Character
from tasks.foundation.tables.scenes import Conflict, Pairing, Scene
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.spoken import Voice

MERGED_TIMES = 3
"""An utterance so many times the limit after mending is no utterance; the dialogue is drawn again, never cut."""

DRAWS = 3
"""Different texts asked for before a pairing is given up; a writer that repeats itself may do better."""
SPREAD = 8
"""Of the lengths asked for, the lower the wider. About the mean of DEMO (section 3.1), 18.3 utterances, from 10 to its
longest of 26, their standard deviation is 3.3: one in a hundred is that long."""


@dataclass(frozen=True, slots=True)
class DialogueSetup:
    """A selected pairing with all that a writer needs."""

    conflict: Conflict
    scene: Scene
    character1: Character
    character2: Character

    @property
    def dialogue_id(self) -> str:
        return content_id("dialogue", self.conflict.pairing_id)

    @property
    def language(self) -> Language:
        return self.scene.language

    @property
    def names(self) -> tuple[str, str]:
        return choose_speaker_names(self.character1.name, self.character2.name, self.language)


@dataclass(frozen=True, slots=True)
class Draft:
    """A dialogue in its final form, before any label."""

    mended: Mended
    stop_reason: str
    guards: tuple[str, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        return self.mended.lines


def prepare(context: StageContext) -> Prepared:
    """Every selected pairing is an item, in order of selection."""
    selected = context.read("conflicts", pl.col("selected"), ("pairing_id", "selection_rank")).sort("selection_rank")
    return Prepared(items=selected["pairing_id"].to_list())


def load_setups(context: StageContext, keys: Sequence[str]) -> Mapping[str, DialogueSetup]:
    pairings = load_rows_by(context.read, "pairings", Pairing, "pairing_id", keys)
    conflicts = load_rows_by(context.read, "conflicts", Conflict, "pairing_id", keys)
    scenes, characters = scenes_and_characters(context.read, pairings.values())
    return {
        key: DialogueSetup(
            conflicts[key],
            scenes[pairings[key].scene_id],
            characters[pairings[key].character1_id],
            characters[pairings[key].character2_id],
        )
        for key in keys
    }


async def work(context: StageContext, setup: DialogueSetup, ask: Asker) -> Rows:
    """Writes, labels the utterances in chunks, then takes the dialogue as a whole."""
    draft = await _write(context, setup, ask)
    section = context.settings.dialogues
    manner: dict[str, Any] = {
        "language": setup.language,
        "alias": section.writer,
        "temperature": section.analysis_temperature,
        "max_tokens": section.max_tokens,
    }
    seen = make_analysis_inputs(setup, draft).model_dump()

    async def annotate(turns: tuple[int, ...]) -> dict[int, UtteranceLabels]:
        inputs = AnnotateInputs(**seen, turns=name_turns(turns, setup.language))
        reply = await ask(ANNOTATE, inputs, purpose="annotate", reply=make_labels_reply(turns), **manner)
        return {turn: reply.parts[name_turn_field(turn)] for turn in turns if name_turn_field(turn) in reply.parts}

    labels: dict[int, UtteranceLabels] = {}
    for first, last in split_turns(len(draft.lines), section.utterances_per_request):
        labels |= await ask.in_parts(range(first, last + 1), annotate)
    if unlabelled := [turn for turn in range(1, len(draft.lines) + 1) if turn not in labels]:
        raise ModelError("invalid", f"the writer gave no labels that can be used for turns {unlabelled}")
    epilogue: Epilogue = await ask(EPILOGUE, AnalysisInputs(**seen), purpose="epilogue", **manner)
    dialogue = make_dialogue(setup, draft, epilogue, section.writer, choose_target(context, setup))
    utterances = [
        make_utterance(dialogue.dialogue_id, turn, line, labels[turn]) for turn, line in enumerate(draft.lines, start=1)
    ]
    return {"dialogues": [dialogue], "utterances": utterances}


def split_turns(turns: int, size: int) -> Iterator[tuple[int, int]]:
    """First and last turn of each chunk: 1–6, 7–12, 13–14 for 14 turns of 6."""
    for first in range(1, turns + 1, size):
        yield first, min(first + size - 1, turns)


async def _write(context: StageContext, setup: DialogueSetup, ask: Asker) -> Draft:
    """The first draw that is, or can be mended into, a dialogue; ModelError `invalid` when none is."""
    section = context.settings.dialogues
    inputs = make_write_inputs(setup, section.min_turns, section.max_turns, choose_target(context, setup))
    trouble, fired = "", set[str]()
    for sample in range(DRAWS):
        written: WrittenDialogue = await ask(
            WRITE,
            inputs,
            language=setup.language,
            alias=section.writer,
            purpose="write",
            temperature=section.temperature,
            max_tokens=section.max_tokens,
            reply=make_dialogue_reply(section.min_turns, section.max_turns),
            sample=sample,
        )
        lines = await _rewrite(context, setup, ask, [Line(turn.speaker, turn.text) for turn in written.turns], sample)
        joint = "" if setup.language == "zh" else " "
        mended = mend(lines, setup.names, joint, section.min_turns)
        unfit = find_unfit(mended.lines, make_voice(setup))
        fired |= {*mended.guards, *unfit}
        trouble = _find_trouble(mended, section.min_turns, context.settings.text_limits)
        if not trouble and (not unfit or section.if_unfit == "keep"):
            full = len(lines) >= section.max_turns and not mended.ended
            return Draft(mended, "max_turns" if full else "ended", tuple(one for one in GUARDS if one in fired))
        trouble = trouble or f"guards that cannot be mended: {', '.join(unfit)}"
    raise ModelError(
        "invalid", f"in {DRAWS} draws the writer gave no usable dialogue; the last: {trouble}", attempts=DRAWS
    )


def make_voice(setup: DialogueSetup) -> Voice:
    """As whom the writer speaks: neither goal nor rule of its prompt is said word for word."""
    told = (setup.scene.goal1, setup.scene.goal2, *WRITE.sentences(setup.language))
    return Voice(setup.language, setup.names, told)


async def _rewrite(
    context: StageContext, setup: DialogueSetup, ask: Asker, lines: Sequence[Line], sample: int
) -> list[Line]:
    """`lines` with those written again, each alone, that are without words or far too long. One that comes no better
    stays as it was, for the guards to judge."""
    section, found = context.settings.dialogues, list(lines)
    for place, line in enumerate(lines):
        if is_fit(line.text, context.settings.text_limits):
            continue
        try:
            again: WrittenUtterance = await ask(
                REWRITE,
                make_rewrite_inputs(setup, found, place),
                language=setup.language,
                alias=section.writer,
                purpose="rewrite",
                temperature=section.temperature,
                max_tokens=section.max_tokens,
                sample=sample,
            )
        except ModelError as error:
            if error.may_pass_later:
                raise
        else:
            found[place] = Line(line.speaker, again.text)
    return found


def make_rewrite_inputs(setup: DialogueSetup, lines: Sequence[Line], place: int) -> RewriteInputs:
    """What the writer sees of an utterance that is to be written again: the others, and itself where it has words."""
    people = zip((setup.character1, setup.character2), setup.names, strict=True)
    one, two = (describe({**collect_facts(person), "name": name}, setup.language) for person, name in people)
    shown = [(line.speaker, "…" if at == place else line.text) for at, line in enumerate(lines)]
    return RewriteInputs(
        participant1=one,
        participant2=two,
        goal1=setup.scene.goal1,
        goal2=setup.scene.goal2,
        dialogue=write_transcript(setup.names, shown, numbered=True),
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


def choose_target(context: StageContext, setup: DialogueSetup) -> int | None:
    """How many utterances the dialogue is asked for; None for any number within the bounds."""
    section = context.settings.dialogues
    if section.target_turns is None:
        return None
    seed = seed_of(context.settings.run.seed, "target turns", setup.dialogue_id)
    return draw_length(section.min_turns, section.max_turns, section.target_turns, seed)


def draw_length(shortest: int, longest: int, mean: float, seed: int) -> int:
    """A length from `shortest` to `longest` with this mean: beta-binomial, which is bounded at both ends, has any mean
    between them, and is as wide as `SPREAD` says."""
    rng = random.Random(seed)
    share = (mean - shortest) / (longest - shortest) if longest > shortest else 0.0
    chance = rng.betavariate(SPREAD * share, SPREAD * (1 - share)) if 0 < share < 1 else share
    return shortest + sum(rng.random() < chance for _ in range(longest - shortest))


def make_write_inputs(
    setup: DialogueSetup, min_turns: int, max_turns: int, target_turns: int | None = None
) -> WriteInputs:
    """What the writer sees of a pairing."""
    scene, conflict, language = setup.scene, setup.conflict, setup.language
    people = zip((setup.character1, setup.character2), setup.names, strict=True)
    one, two = (describe({**collect_facts(person), "name": name}, language) for person, name in people)
    return WriteInputs(
        participant1=one,
        participant2=two,
        goal1=scene.goal1,
        goal2=scene.goal2,
        relationship=conflict.relationship or "",
        familiarity=describe_familiarity(conflict.familiarity or 0, language),
        talkway=describe_talkway(conflict.talkway or "", language),
        setting=[scene.time, scene.location, scene.topic, scene.atmosphere],
        min_turns=min_turns,
        max_turns=max_turns,
        target_turns=target_turns,
    )


def make_analysis_inputs(setup: DialogueSetup, draft: Draft) -> AnalysisInputs:
    """What both analyses of a dialogue show."""
    turns = [(line.speaker, line.text) for line in draft.lines]
    return AnalysisInputs(
        sentiments=list_labels("sentiment", setup.language),
        emotions=list_labels("utterance_emotion", setup.language),
        goal1=setup.scene.goal1,
        goal2=setup.scene.goal2,
        dialogue=write_transcript(setup.names, turns, numbered=True),
    )


def make_dialogue(
    setup: DialogueSetup, draft: Draft, epilogue: Epilogue, writer: str, target_turns: int | None = None
) -> Dialogue:
    """The row of a dialogue."""
    return Dialogue(
        dialogue_id=setup.dialogue_id,
        pairing_id=setup.conflict.pairing_id,
        language=setup.scene.language,
        speaker1=setup.names[0],
        speaker2=setup.names[1],
        turn_count=len(draft.lines),
        target_turns=target_turns,
        workflow=epilogue.workflow,
        summary1=epilogue.summary1,
        summary2=epilogue.summary2,
        goal_completion=epilogue.goal_completion,
        goal_completion_reason=epilogue.reason,
        stop_reason="max_turns" if draft.stop_reason == "max_turns" else "ended",
        writer=writer,
        guards=list(draft.guards),
    )


def make_utterance(dialogue_id: str, turn: int, line: Line, labels: UtteranceLabels) -> Utterance:
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
    load_items=load_setups,
    work=work,
    worked=("dialogues", "utterances"),
    prompts=(WRITE, REWRITE, ANNOTATE, EPILOGUE),
    taxonomies=("familiarity", "talkway", "sentiment", "utterance_emotion", "attributes", "age_band"),
    roles=lambda settings: {"writer": [settings.dialogues.writer]},
)
