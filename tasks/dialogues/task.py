"""Writes the dialogues of the selected pairings and labels them (DEMO section 3.2, dialogue generation).

Reads conflicts (the selected ones), pairings, scenes and characters. Writes dialogues (with the labels
of the epilogue) and utterances (with theirs). A dialogue of T utterances takes one request to write (turn by turn: T),
⌈T / utterances_per_request⌉ to label and one for the epilogue. What of a reply cannot be used is asked for again alone:
an utterance without words or far too long, the labels of a turn.

A text that cannot be mended into a dialogue of at least `min_turns` utterances, or has words in it that no person says,
is drawn again, at most `DRAWS` times in all; then the pairing becomes a reject of kind `invalid`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from tasks.dialogues.guards import Line
from tasks.dialogues.prompts import (
    ANNOTATE,
    EPILOGUE,
    REWRITE,
    SPEAK,
    WRITE,
    AnalysisInputs,
    AnnotateInputs,
    Epilogue,
    UtteranceLabels,
    make_labels_reply,
    name_turn_field,
    name_turns,
)
from tasks.dialogues.setup import DialogueSetup, choose_target
from tasks.dialogues.writing import Draft, write_dialogue
from tasks.foundation.demo.elements import canonical_emotion
from tasks.foundation.demo.records import WORD_SETS, load_rows_by, scenes_and_characters, write_transcript
from tasks.foundation.errors import ModelError
from tasks.foundation.settings.sections import DialoguesSection
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.stage import Asker, Prepared, Rows, Stage, StageContext
from tasks.foundation.tables.dialogues import Dialogue, Stance, Strategy, Utterance
from tasks.foundation.tables.scenes import Conflict, Pairing


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
    draft = await write_dialogue(context, setup, ask)
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


def make_analysis_inputs(setup: DialogueSetup, draft: Draft) -> AnalysisInputs:
    """What both analyses of a dialogue show."""
    turns = [(line.speaker, line.text) for line in draft.lines]
    return AnalysisInputs(
        sentiments=taxonomy("sentiment").describe(setup.language),
        emotions=taxonomy("utterance_emotion").describe(setup.language),
        goal1=setup.scene.goal1,
        goal2=setup.scene.goal2,
        dialogue=write_transcript(setup.names, turns, setup.language, numbered=True),
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
        stop_reason=draft.stop_reason,
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
    prompts=(WRITE, REWRITE, SPEAK, ANNOTATE, EPILOGUE),
    taxonomies=(*WORD_SETS, "familiarity", "talkway", "sentiment", "utterance_emotion"),
    roles=lambda settings: {"writer": [settings.dialogues.writer]},
)
