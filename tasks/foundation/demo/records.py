"""One dialogue with everything that was decided before it: the rows of six tables, joined once.

Also how people and talks are put into words, in either language, so that every stage shows a
character or a transcript the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import polars as pl

from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables import Row
from tasks.foundation.tables.dialogues import Dialogue, Utterance
from tasks.foundation.tables.personas import Character
from tasks.foundation.tables.scenes import Conflict, Pairing, Scene
from tasks.foundation.tables.types import Language

RECORD_TABLES = ("dialogues", "utterances", "pairings", "conflicts", "scenes", "characters")
"""What `records` reads."""

R = TypeVar("R", bound=Row)
Read = Callable[[str, pl.Expr, Sequence[str]], pl.DataFrame]
"""Reads some rows and columns of a table: `StageContext.read`, or `made`."""


@dataclass(frozen=True, slots=True)
class Record:
    """A dialogue, its utterances in order, its pairing's assessment, scene and both characters."""

    dialogue: Dialogue
    utterances: tuple[Utterance, ...]
    conflict: Conflict
    scene: Scene
    character1: Character
    character2: Character

    @property
    def names(self) -> tuple[str, str]:
        return (self.dialogue.speaker1, self.dialogue.speaker2)


def load_records(read: Read, dialogue_ids: Sequence[str]) -> dict[str, Record]:
    """The records of the given dialogues by id, in the order asked for."""
    dialogues = load_rows_by(read, "dialogues", Dialogue, "dialogue_id", dialogue_ids)
    pairing_ids = [dialogue.pairing_id for dialogue in dialogues.values()]
    pairings = load_rows_by(read, "pairings", Pairing, "pairing_id", pairing_ids)
    conflicts = load_rows_by(read, "conflicts", Conflict, "pairing_id", pairing_ids)
    scenes, characters = scenes_and_characters(read, pairings.values())
    turns = load_groups_by(read, "utterances", Utterance, "dialogue_id", dialogue_ids)
    found = {}
    for dialogue_id in dialogue_ids:
        dialogue = dialogues[dialogue_id]
        pairing = pairings[dialogue.pairing_id]
        found[dialogue_id] = Record(
            dialogue,
            tuple(turns.get(dialogue_id, ())),
            conflicts[dialogue.pairing_id],
            scenes[pairing.scene_id],
            characters[pairing.character1_id],
            characters[pairing.character2_id],
        )
    return found


def scenes_and_characters(read: Read, pairings: Iterable[Pairing]) -> tuple[dict[str, Scene], dict[str, Character]]:
    """The scenes and characters that `pairings` name, by id."""
    pairings = list(pairings)
    character_ids = [name for pairing in pairings for name in (pairing.character1_id, pairing.character2_id)]
    scene_ids = [pairing.scene_id for pairing in pairings]
    return (
        load_rows_by(read, "scenes", Scene, "scene_id", scene_ids),
        load_rows_by(read, "characters", Character, "character_id", character_ids),
    )


def load_rows_by(read: Read, table: str, model: type[R], key: str, keys: Iterable[str]) -> dict[str, R]:
    """The rows of a table whose `key` is among `keys`, by that key. KeyError-free: absent keys are absent."""
    return {getattr(row, key): row for row in _rows(read, table, model, key, keys)}


def load_groups_by(read: Read, table: str, model: type[R], key: str, keys: Iterable[str]) -> dict[str, list[R]]:
    """As `rows_by`, where several rows have a key; each group in key order of the table."""
    groups: dict[str, list[R]] = {}
    for row in _rows(read, table, model, key, keys):
        groups.setdefault(getattr(row, key), []).append(row)
    return groups


def _rows(read: Read, table: str, model: type[R], key: str, keys: Iterable[str]) -> list[R]:
    wanted = list(dict.fromkeys(keys))
    if not wanted:
        return []
    rows = read(table, pl.col(key).is_in(wanted), list(model.model_fields))
    return [model.model_validate(row) for row in rows.iter_rows(named=True)]


def write_transcript(
    names: tuple[str, str], turns: Iterable[tuple[int, str]], language: Language, *, numbered: bool = False
) -> str:
    """One 'name: text' line a turn ('名：话' in Chinese); if `numbered`, '3. name: text', as prompts refer to turns."""
    colon = "：" if language == "zh" else ": "
    lines = (f"{names[speaker - 1]}{colon}{text}" for speaker, text in turns)
    return "\n".join(f"{index}. {line}" if numbered else line for index, line in enumerate(lines, start=1))


FACTS: dict[str, tuple[str, str]] = {
    "name": ("Name", "姓名"),
    "gender": ("Gender", "性别"),
    "age": ("Age", "年龄"),
    "age_band": ("Age group", "年龄段"),
    "occupation": ("Occupation", "职业"),
    "education": ("Education", "教育"),
    "culture": ("Culture", "文化背景"),
    "background": ("Life so far", "经历"),
    "relationship": ("People in their life", "身边的人"),
    "hobby": ("Hobbies", "爱好"),
    "big_five": ("Character traits", "性格特质"),
    "moral_values": ("Moral values", "道德观"),
    "personal_values": ("Personal values", "价值观"),
    "decision_style": ("Decision style", "决策风格"),
    "social_skill": ("Social skill", "社交特长"),
    "speaking_style": ("Way of speaking", "说话方式"),
}
"""What is said of a person, in order, with its name in English and Chinese."""

SETTING: dict[str, tuple[str, str]] = {
    "time": ("Time", "时间"),
    "location": ("Place", "地点"),
    "topic": ("Topic", "话题"),
    "atmosphere": ("Mood", "氛围"),
}
"""What is said of a scene, in order, with its name in English and Chinese."""

WORD_SETS = ("gender", "level", "big_five", "age_band", "attributes")
"""The taxonomies that `describe` finds words in."""


def collect_facts(character: Character) -> dict[str, Any]:
    """The facts that describe a character, by name."""
    plain = character.model_dump()
    return {name: plain[name] for name in FACTS}


def describe(facts: Mapping[str, Any], language: str) -> str:
    """`facts` in words, one 'name: value' line each; absent and empty ones are left out."""
    return "\n".join(_list_lines(FACTS, facts, language))


def describe_setting(scene: Scene) -> list[str]:
    """'Time: a morning in May', … of a scene, in its language."""
    return _list_lines(SETTING, scene.model_dump(), scene.language)


def _list_lines(names: Mapping[str, tuple[str, str]], values: Mapping[str, Any], language: str) -> list[str]:
    colon, column = ("：", 1) if language == "zh" else (": ", 0)
    return [
        f"{labels[column]}{colon}{_in_words(values[name], language)}"
        for name, labels in names.items()
        if values.get(name) not in (None, "", [])
    ]


def _in_words(value: Any, language: str) -> str:
    if isinstance(value, Mapping):
        space = "" if language == "zh" else " "
        parts = [f"{_word(name, language)}{space}{_word(level, language)}" for name, level in value.items()]
        return _joined(parts, language)
    if isinstance(value, list | tuple):
        return _joined([_word(part, language) for part in value], language)
    return _word(value, language)


def _joined(parts: Sequence[str], language: str) -> str:
    return ("、" if language == "zh" else ", ").join(parts)


def _word(value: Any, language: str) -> str:
    """A stored word as a reader of the language knows it; free text stays as it is."""
    word = str(value)
    return _find_words(language).get(word, word)


@cache
def _find_words(language: str) -> dict[str, str]:
    shown = {label.name: label.shown(language) for name in WORD_SETS for label in taxonomy(name).labels}
    genders = taxonomy("gender").labels if language == "en" else ()
    return shown | {label.name: label.definition for label in genders}
