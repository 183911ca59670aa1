"""The four awareness tasks: inputs, and the replies they are checked against.

A reply has the shape of the task's gold labels (appendix E of DEMO, made valid JSON); only the five traits
are an object here and pairs there. The schema bounds lengths, so that a small model comes to an end where a server
holds it to the schema; a longer label counts all the same, for how much a target says is never its fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

from tasks.foundation.demo.elements import BigFiveValue, ReplyModel, list_names, list_of
from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import Label, taxonomy
from tasks.foundation.tables.dialogues import AwarenessItem, AwarenessTask
from tasks.foundation.tables.types import Score10

PHRASE, SENTENCES = 200, 400
"""Characters that a label in a few words, and one in sentences, may have."""

Phrase = Annotated[str, Field(min_length=1, json_schema_extra={"maxLength": PHRASE})]
Sentences = Annotated[str, Field(min_length=1, json_schema_extra={"maxLength": SENTENCES})]
Name = Annotated[str, Field(min_length=1, json_schema_extra={"maxLength": 80})]
Emotion = Annotated[str, Field(min_length=1, json_schema_extra={"maxLength": 30})]
Utterance = Annotated[str, Field(min_length=1, json_schema_extra={"maxLength": 1200})]


class GoalLabels(ReplyModel):
    goal1: Sentences
    goal2: Sentences
    goal_completion: Score10
    reason: Sentences


class GoalReply(ReplyModel):
    goal: GoalLabels


class StanceLabel(ReplyModel):
    aspect: Phrase
    viewpoint: Phrase


class StrategyLabel(ReplyModel):
    description: Phrase
    type: Phrase


class UtteranceReply(ReplyModel):
    person: Phrase
    content: Utterance
    intent: Phrase
    sentiment: Literal["Positive", "Negative", "Neutral"]
    emotion: Emotion
    stance: list[StanceLabel] = Field(json_schema_extra={"maxItems": 5})
    strategy: StrategyLabel


class DialogueInputs(Inputs):
    dialogue: str


class PersonaInputs(DialogueInputs):
    age_bands: list[str]


class SceneInputs(DialogueInputs):
    familiarity_scale: list[str]
    talkways: list[str]


class UtteranceInputs(DialogueInputs):
    sentiments: list[str]
    emotions: list[str]
    turn: int | None
    utterance: str


GOAL = Prompt("awareness/goal", inputs=DialogueInputs, reply=GoalReply)
PERSONA: Prompt[PersonaInputs, BaseModel] = Prompt("awareness/persona", inputs=PersonaInputs)
SCENE: Prompt[SceneInputs, BaseModel] = Prompt("awareness/scene", inputs=SceneInputs)
UTTERANCE = Prompt("awareness/utterance", inputs=UtteranceInputs, reply=UtteranceReply)

PROMPTS: dict[AwarenessTask, Prompt[Any, Any]] = {
    "goal": GOAL,
    "persona": PERSONA,
    "scene": SCENE,
    "utterance": UTTERANCE,
}


@cache
def make_reply_model(task: AwarenessTask) -> type[BaseModel]:
    """The reply model of a task; those of persona and scene take their fixed labels from the taxonomies."""
    match task:
        case "goal":
            return GoalReply
        case "persona":
            persona = _model("PersonaLabels", _make_persona_labels())
            both = _model("BothPersonas", {"participant1": persona, "participant2": persona})
            return _model("PersonaReply", {"persona": both})
        case "scene":
            return _model("SceneReply", {"scene": _model("SceneLabels", _make_scene_labels())})
        case "utterance":
            return UtteranceReply


def _make_persona_labels() -> dict[str, Any]:
    return {
        "name": Name,
        "gender": Literal["M", "F", "Unknown"],
        "age": list_names("age_band"),
        "big_five": BigFiveValue,
        **dict.fromkeys(("education", "occupation", "culture", "speaking_style", "hobby"), Phrase),
    }


def _make_scene_labels() -> dict[str, Any]:
    return {
        "topic": Phrase,
        "relationship": Phrase,
        "familiarity": Score10,
        "talkway": list_names("talkway"),
        "workflow": Annotated[list[Phrase], Field(min_length=1, json_schema_extra={"maxItems": 12})],
        "summary": list_of(Sentences, 2, 2),
    }


def _model(name: str, types: Mapping[str, Any]) -> type[BaseModel]:
    fields: dict[str, Any] = {field: (type_, ...) for field, type_ in types.items()}
    return create_model(name, __base__=ReplyModel, **fields)


def make_inputs(item: AwarenessItem) -> Inputs:
    """What a target sees of an item: the dialogue and the label sets, never the gold labels."""
    match item.task:
        case "goal":
            return DialogueInputs(dialogue=item.dialogue_text)
        case "persona":
            return PersonaInputs(dialogue=item.dialogue_text, age_bands=_list_labels("age_band", item.language))
        case "scene":
            return SceneInputs(
                dialogue=item.dialogue_text,
                familiarity_scale=_list_labels("familiarity", item.language),
                talkways=_list_labels("talkway", item.language),
            )
        case "utterance":
            return UtteranceInputs(
                dialogue=item.dialogue_text,
                sentiments=_list_labels("sentiment", item.language),
                emotions=_list_labels("utterance_emotion", item.language),
                turn=item.turn_index,
                utterance=item.utterance_text or "",
            )


def _list_labels(name: str, language: str) -> list[str]:
    return [_write_line(name, label, language) for label in taxonomy(name).labels]


def _write_line(name: str, label: Label, language: str) -> str:
    """One line of a label set: the name to fill in and, where it is not plain, what it means."""
    if name == "familiarity":
        return f"{label.name} {label.zh if language == 'zh' else label.definition}"
    if name == "age_band":
        return f"{label.shown(language)} {label.low}–{label.high}"
    return label.shown(language)
