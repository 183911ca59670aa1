"""The element system of DEMO (sections 2 and appendix C): what is labelled, its path, type and value.

A path names one label of one dialogue: `goal.goal1`, `persona.1.hobby`, `scene.topic`,
`utterance.3.emotion`. Each element has one value type, which both makes reply schemas and checks
edits by models and people, and one comparison key, under which two spellings are the same label.

>>> kind_of("utterance.3.emotion").name, number_of("utterance.3.emotion")
('emotion', 3)
>>> comparison_key("  Ｊoy ") == comparison_key("joy")
True
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter

from tasks.foundation.demo.records import Record
from tasks.foundation.ids import canonical_json, digest
from tasks.foundation.settings.taxonomies import fold, taxonomy
from tasks.foundation.tables.types import Score10
from tasks.foundation.texts.replies import (
    Background,
    Goal,
    Label,
    LabelOf,
    Name,
    Phrase,
    ReplyModel,
    Summary,
    Utterance,
    Word,
    asked,
    list_names,
)

Group = Literal["goal", "persona", "scene", "utterance"]
GROUPS: tuple[Group, ...] = ("goal", "persona", "scene", "utterance")
NUMBERED = ("persona", "utterance")
"""Groups whose labels name a participant or a turn."""

TRAITS = taxonomy("big_five").names
"""The order in which the five traits are always shown."""

LABEL_SETS = {
    "gender": "gender",
    "age": "age_band",
    "goal_type": "goal_type",
    "talkway": "talkway",
    "sentiment": "sentiment",
    "emotion": "utterance_emotion",
}
"""The elements whose values are labels of a taxonomy; an emotion may also be another word."""

WORKFLOW_STEPS = (2, 8)
MOST_STANCES = 3

_PATH = re.compile(
    r"(?:(?P<group>goal|scene)|(?P<numbered>persona|utterance)\.(?P<number>[1-9][0-9]{0,3}))\.(?P<name>[a-z0-9_]+)"
)


Level = Annotated[str, LabelOf("level")]
Sentiment = Annotated[Literal["Positive", "Negative", "Neutral"], LabelOf("sentiment")]


class BigFiveValue(ReplyModel):
    openness: Level = asked("open to what is new", "开放性")
    conscientiousness: Level = asked("orderly and dutiful", "尽责性")
    extraversion: Level = asked("outgoing", "外向性")
    agreeableness: Level = asked("kind and yielding", "宜人性")
    neuroticism: Level = asked("easily troubled", "神经质")


class StanceValue(ReplyModel):
    aspect: Phrase = asked("the aspect or event in question", "所谈的方面或事件")
    viewpoint: Label = asked("the position taken on it", "对此所持的观点")


class StrategyValue(ReplyModel):
    description: Label = asked("how the speaker goes about it", "说话人如何去说")
    type: Phrase = asked("what that does to the course of the talk", "对谈话走向起什么作用")


@dataclass(frozen=True, slots=True)
class ElementKind:
    """One element of the system. `evaluated`: one of the 23 that models are scored on (a goal's reason
    belongs to goal_completion). `reviewed`: annotators see it; the others only serve construction."""

    group: Group
    name: str
    evaluated: bool = True
    reviewed: bool = True


def _kinds(group: Group, names: str, **marks: bool) -> tuple[ElementKind, ...]:
    return tuple(ElementKind(group, name, **marks) for name in names.split())


CATALOGUE: tuple[ElementKind, ...] = (
    *_kinds("goal", "goal1 goal2 goal_completion"),
    *_kinds("goal", "reason", evaluated=False),
    *_kinds("goal", "goal_type", evaluated=False, reviewed=False),
    *_kinds("persona", "name gender age big_five education occupation culture speaking_style hobby"),
    *_kinds(
        "persona",
        "background social_skill moral_values personal_values decision_style relationship",
        evaluated=False,
        reviewed=False,
    ),
    *_kinds("scene", "topic relationship familiarity talkway workflow summary"),
    *_kinds("scene", "time location atmosphere", evaluated=False, reviewed=False),
    *_kinds("utterance", "intent sentiment emotion stance strategy"),
    *_kinds("utterance", "text", evaluated=False),
)
"""Every element, in the order in which it is shown: 23 evaluated ones and those used in construction."""

_BY_NAME: dict[tuple[str, str], ElementKind] = {(kind.group, kind.name): kind for kind in CATALOGUE}


def find_kind(path: str) -> ElementKind:
    """The element of a path; ValueError for a path that names none."""
    match = _PATH.fullmatch(path)
    kind = _BY_NAME.get((match["group"] or match["numbered"], match["name"])) if match else None
    if kind is None or (kind.group == "persona" and number_of(path) not in (1, 2)):
        raise ValueError(f"expected the path of an element such as 'persona.1.hobby', found {path!r}")
    return kind


def number_of(path: str) -> int | None:
    """The participant (1 or 2) or turn (1-based) in a path; None for goal and scene elements."""
    match = _PATH.fullmatch(path)
    return int(match["number"]) if match and match["number"] else None


def path_of(kind: ElementKind, number: int | None = None) -> str:
    """`persona`, `hobby` and 1 → `persona.1.hobby`; goal and scene elements take no number."""
    middle = "" if number is None else f"{number}."
    return f"{kind.group}.{middle}{kind.name}"


def list_of(item: Any, low: int, high: int) -> Any:
    """The annotation of a list of `low` to `high` items."""
    return Annotated[GenericAlias(list, (item,)), Field(min_length=low, max_length=high)]


@cache
def make_value_type(kind: ElementKind) -> Any:
    """The pydantic annotation of an element's value: what an edit must be, as JSON."""
    return _special_types().get((kind.group, kind.name)) or _TEXTS.get(kind.name, Label)


_TEXTS: dict[str, Any] = {
    **{"goal1": Goal, "goal2": Goal, "reason": Summary, "text": Utterance},
    **{"background": Background, "emotion": Word, "name": Name},
}


def _special_types() -> dict[tuple[str, str], Any]:
    return {
        ("goal", "goal_completion"): Score10,
        **{
            (kind.group, kind.name): list_names(LABEL_SETS[kind.name])
            for kind in CATALOGUE
            if kind.name in LABEL_SETS and kind.name != "emotion"
        },
        ("persona", "big_five"): BigFiveValue,
        ("persona", "moral_values"): list_of(Name, 1, 5),
        ("persona", "personal_values"): list_of(Name, 1, 5),
        ("scene", "familiarity"): Score10,
        ("scene", "workflow"): list_of(Label, *WORKFLOW_STEPS),
        ("scene", "summary"): list_of(Summary, 2, 2),
        ("utterance", "stance"): list_of(StanceValue, 0, MOST_STANCES),
        ("utterance", "strategy"): StrategyValue,
    }


def check_value(path: str, value: Any) -> Any:
    """`value` as plain JSON data, if the element may have it; pydantic's ValidationError (a ValueError) if not.

    An emotion that is one of the seven in another spelling or in Chinese becomes its canonical name.
    """
    kind = find_kind(path)
    adapter = TypeAdapter(make_value_type(kind))
    plain = adapter.dump_python(adapter.validate_json(canonical_json(plain_data(value)), strict=True))
    return canonical_emotion(plain) if kind.name == "emotion" else plain


def plain_data(value: Any) -> Any:
    """A value of a reply or row model as JSON data."""
    if isinstance(value, BaseModel):
        return value.model_dump()
    return [plain_data(part) for part in value] if isinstance(value, list | tuple) else value


def canonical_emotion(word: str) -> str:
    """'愤怒' and 'anger' → 'Anger'; a word that names none of the seven stays as it is."""
    return taxonomy("utterance_emotion").find(word) or word.strip()


def show_value(name: str, value: Any, language: str) -> Any:
    """The value of the element `name` with its labels in the language: 'M' → '男'. Free texts stay as they are."""
    if name == "big_five":
        return {trait: taxonomy("level").show(level, language) for trait, level in value.items()}
    return taxonomy(LABEL_SETS[name]).show(value, language) if name in LABEL_SETS else value


def pair_traits(big_five: Mapping[str, str], language: str) -> list[list[str]]:
    """Traits and their levels as DEMO's test cases have them: [["Openness", "High"], …], [["开放性", "高"], …]."""
    traits, levels = taxonomy("big_five"), taxonomy("level")
    return [[traits.show(name, language).capitalize(), levels.show(big_five[name], language)] for name in traits.names]


def collect_labels(record: Record) -> dict[str, Any]:
    """Every label of a dialogue as it was made, by path, as JSON data, in the order of the catalogue."""
    people = enumerate((_persona(record, 1), _persona(record, 2)), start=1)
    numbered: dict[str, Sequence[tuple[int | None, Mapping[str, Any]]]] = {
        "goal": [(None, _goal(record))],
        "persona": list(people),
        "scene": [(None, _scene(record))],
        "utterance": [(turn.turn_index, turn.model_dump()) for turn in record.utterances],
    }
    return {
        path_of(kind, number): values[kind.name]
        for group in GROUPS
        for number, values in numbered[group]
        for kind in CATALOGUE
        if kind.group == group
    }


def _goal(record: Record) -> dict[str, Any]:
    completion = {"goal_completion": record.dialogue.goal_completion, "reason": record.dialogue.goal_completion_reason}
    return {**record.scene.model_dump(include={"goal1", "goal2", "goal_type"}), **completion}


def _persona(record: Record, number: int) -> dict[str, Any]:
    character = record.character1 if number == 1 else record.character2
    name = record.dialogue.speaker1 if number == 1 else record.dialogue.speaker2
    return {**character.model_dump(), "name": name, "age": character.age_band}


def _scene(record: Record) -> dict[str, Any]:
    dialogue = record.dialogue
    return {
        **record.scene.model_dump(include={"topic", "time", "location", "atmosphere"}),
        **record.conflict.model_dump(include={"relationship", "familiarity", "talkway"}),
        "workflow": dialogue.workflow,
        "summary": [dialogue.summary1, dialogue.summary2],
    }


def collect_reviewed_labels(record: Record) -> dict[str, Any]:
    """The labels that annotators review, by path, in order."""
    return {path: value for path, value in collect_labels(record).items() if find_kind(path).reviewed}


def comparison_key(value: Any) -> str:
    """Equal for values that differ only in Unicode form (NFKC), case or spaces (design: voting)."""
    return canonical_json(_fold_all(value))


def value_hash(value_json: str) -> str:
    """What a human reviewer's answer names: the hash of the value (canonical JSON) that was shown."""
    return digest("value", value_json)[:16]


def _fold_all(value: Any) -> Any:
    if isinstance(value, str):
        return fold(value)
    if isinstance(value, Mapping):
        return {name: _fold_all(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_fold_all(inner) for inner in value]
    return value
