"""The verified labels of one dialogue in the shapes of DEMO's test cases (appendix E). Pure.

Rejected labels are left out. Keys are our column names; fixed labels are those of the dialogue's language, as in the
original. One goal item: {"goal": {"goal1": …, "goal2": …, "goal_completion": 7, "reason": …}}.
"""

from __future__ import annotations

from typing import Any

from tasks.curation.settle import Labels
from tasks.foundation.demo.elements import CATALOGUE, Group, pair_traits, path_of, show_value
from tasks.foundation.demo.records import Record, collect_facts, describe, write_transcript
from tasks.foundation.tables.types import Language


def make_goal_gold(labels: Labels) -> dict[str, Any]:
    """The reason goes with the score it explains: without the score it is left out too."""
    goal = _labels(labels, "goal")
    if "goal_completion" not in goal:
        goal.pop("reason", None)
    return {"goal": goal}


def make_persona_gold(labels: Labels, language: Language) -> dict[str, Any]:
    """Both participants; big_five as pairs of trait and level in the usual order."""
    return {"persona": {f"participant{number}": _persona(labels, number, language) for number in (1, 2)}}


def make_scene_gold(labels: Labels, language: Language) -> dict[str, Any]:
    return {"scene": _show(_labels(labels, "scene"), language)}


def make_utterance_gold(record: Record, labels: Labels, turn: int) -> dict[str, Any]:
    """The labels of one turn, with who says what; None of them left: see `has_utterance_labels`."""
    values = _show(_labels(labels, "utterance", turn), record.dialogue.language)
    text = values.pop("text")
    return {"person": record.names[record.utterances[turn - 1].speaker - 1], "content": text, **values}


def has_utterance_labels(labels: Labels, turn: int) -> bool:
    """Whether any label of the turn besides its text stands."""
    return len(_labels(labels, "utterance", turn)) > 1


def list_texts(record: Record, labels: Labels) -> list[str]:
    """What is said, turn by turn, as verified."""
    return [labels[f"utterance.{turn.turn_index}.text"].value for turn in record.utterances]


def write_dialogue(record: Record, labels: Labels) -> str:
    speakers = (turn.speaker for turn in record.utterances)
    said = zip(speakers, list_texts(record, labels), strict=True)
    return write_transcript(record.names, said, record.dialogue.language)


def write_background(record: Record, labels: Labels, number: int) -> str:
    """What is known of a participant, in the dialogue's language: the character with its verified labels."""
    character = record.character1 if number == 1 else record.character2
    facts = collect_facts(character)
    verified = _labels(labels, "persona", number)
    for kind in CATALOGUE:
        if kind.group == "persona" and kind.reviewed and kind.name not in ("age", "name"):
            facts[kind.name] = verified.get(kind.name)
    band = verified.get("age")
    if band != facts["age_band"]:
        facts |= {"age": None, "age_band": band}
    return describe({**facts, "name": record.names[number - 1]}, record.dialogue.language)


def _persona(labels: Labels, number: int, language: Language) -> dict[str, Any]:
    persona = _labels(labels, "persona", number)
    pairs = {"big_five": pair_traits(persona["big_five"], language)} if "big_five" in persona else {}
    return {**_show(persona, language), **pairs}


def _show(values: dict[str, Any], language: Language) -> dict[str, Any]:
    """The values with their fixed labels in the language."""
    return {name: show_value(name, value, language) for name, value in values.items()}


def _labels(labels: Labels, group: Group, number: int | None = None) -> dict[str, Any]:
    """The standing labels of a group by element name, in the order of the catalogue."""
    kinds = [kind for kind in CATALOGUE if kind.group == group and kind.reviewed]
    found = {kind.name: labels[path_of(kind, number)] for kind in kinds}
    return {name: label.value for name, label in found.items() if not label.rejected}
