"""The four awareness tasks: inputs, and the replies they are checked against.

A reply has the shape of the task's gold labels (appendix E of DEMO, made valid JSON); only the five traits
are an object here and pairs there. Limits are told, so that a small model comes to an end where a server holds it to
the schema; a longer label counts all the same and is not cut, for how much a target says is never its fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, Field, create_model

from tasks.foundation.demo.elements import BigFiveValue, Sentiment, list_of
from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.dialogues import AwarenessItem, AwarenessTask
from tasks.foundation.tables.types import Score10
from tasks.foundation.texts.replies import Limit, ReplyModel, asked, list_names

Phrase = Annotated[str, Field(min_length=1), Limit("answer_words", held=False)]
Sentences = Annotated[str, Field(min_length=1), Limit("answer_words", held=False, times=2)]
Emotion = Annotated[str, Field(min_length=1), Limit("word", held=False)]
Utterance = Annotated[str, Field(min_length=1), Limit("utterance", held=False, times=3)]


class GoalLabels(ReplyModel):
    goal1: Sentences = asked("what participant 1 wants from the talk", "参与者1想从谈话中得到什么")
    goal2: Sentences = asked("what participant 2 wants from the talk", "参与者2想从谈话中得到什么")
    goal_completion: Score10 = asked("how far both reached their goals, 10 fully", "双方目标的完成度，10 为完全达成")
    reason: Sentences = asked("why that number", "给出该分数的理由")


class GoalReply(ReplyModel):
    goal: GoalLabels = asked("both goals, and how far they were reached", "双方的目标及其达成程度")


class StanceLabel(ReplyModel):
    aspect: Phrase = asked("the aspect or event in question", "所谈的方面或事件")
    viewpoint: Phrase = asked("the position taken on it", "对此所持的观点")


class StrategyLabel(ReplyModel):
    description: Phrase = asked("how the speaker goes about it", "说话人如何去说")
    type: Phrase = asked("what that does to the course of the talk", "对谈话走向起什么作用")


class UtteranceReply(ReplyModel):
    person: Phrase = asked("who says it", "说话人")
    content: Utterance = asked("the utterance as it stands", "这次发言的原文")
    intent: Phrase = asked("what the speaker wants to bring about with it", "说话人想借这番话达到什么")
    sentiment: Sentiment = asked("the tone of what is said", "话语的情感倾向")
    emotion: Emotion = asked("one of the emotions, or another single word", "情绪之一，或另一个词")
    stance: list[StanceLabel] = asked("positions taken; may be empty", "所持的立场，可为空", told={"maxItems": 5})
    strategy: StrategyLabel = asked("how it is said, and to what effect", "如何去说，起什么作用")


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


@cache
def make_persona_reply() -> type[BaseModel]:
    """The labels of both participants; the age bands are those of the taxonomy."""
    persona = _model("PersonaLabels", _make_persona_labels())
    people = {
        "participant1": (persona, asked("who speaks first", "先开口的人")),
        "participant2": (persona, asked("the other", "另一人")),
    }
    both = _model("BothPersonas", people)
    return _model("PersonaReply", {"persona": (both, asked("what kind of people the two are", "两人各是怎样的人"))})


@cache
def make_scene_reply() -> type[BaseModel]:
    """The labels of the scene; the modes of talk are those of the taxonomy."""
    scene = _model("SceneLabels", _make_scene_labels())
    return _model("SceneReply", {"scene": (scene, asked("where the talk stands", "谈话所处的场景"))})


def _make_persona_labels() -> dict[str, Any]:
    return {
        "name": (Phrase, asked("as it stands in the dialogue", "对话中的姓名")),
        "gender": (list_names("gender"), asked("as far as the talk shows it", "性别，以对话所示为准")),
        "age": (list_names("age_band"), asked("the band of their age", "年龄段")),
        "big_five": (BigFiveValue, asked("High or Low for each trait", "每项特质的高低")),
        "education": (Phrase, asked("what they have learned", "受过什么教育")),
        "occupation": (Phrase, asked("what they work as", "做什么工作")),
        "culture": (Phrase, asked("the culture they come from", "文化背景")),
        "speaking_style": (Phrase, asked("way of speaking, habits of language", "说话方式和语言习惯")),
        "hobby": (Phrase, asked("what they like to do", "爱做什么")),
    }


def _make_scene_labels() -> dict[str, Any]:
    steps: Any = Annotated[list[Phrase], Field(min_length=1)]
    return {
        "topic": (Phrase, asked("what the talk is about", "谈的是什么")),
        "relationship": (Phrase, asked("how the two stand to each other", "两人的关系")),
        "familiarity": (Score10, asked("how well they know each other", "两人的熟悉程度")),
        "talkway": (list_names("talkway"), asked("how they talk", "交谈方式")),
        "workflow": (steps, asked("steps of how information passed", "信息传递的步骤", told={"maxItems": 12})),
        "summary": (
            list_of(Sentences, 2, 2),
            asked("the talk from the side of participant 1, then of 2", "先从参与者1、再从参与者2的角度概括谈话"),
        ),
    }


def _model(name: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    return create_model(name, __base__=ReplyModel, **fields)


GOAL = Prompt("awareness/goal", inputs=DialogueInputs, reply=GoalReply)
PERSONA: Prompt[PersonaInputs, BaseModel] = Prompt("awareness/persona", inputs=PersonaInputs, reply=make_persona_reply)
SCENE: Prompt[SceneInputs, BaseModel] = Prompt("awareness/scene", inputs=SceneInputs, reply=make_scene_reply)
UTTERANCE = Prompt("awareness/utterance", inputs=UtteranceInputs, reply=UtteranceReply)

PROMPTS: dict[AwarenessTask, Prompt[Any, Any]] = {
    "goal": GOAL,
    "persona": PERSONA,
    "scene": SCENE,
    "utterance": UTTERANCE,
}


def make_inputs(item: AwarenessItem) -> Inputs:
    """What a target sees of an item: the dialogue and the label sets, never the gold labels."""
    match item.task:
        case "goal":
            return DialogueInputs(dialogue=item.dialogue_text)
        case "persona":
            return PersonaInputs(dialogue=item.dialogue_text, age_bands=taxonomy("age_band").describe(item.language))
        case "scene":
            return SceneInputs(
                dialogue=item.dialogue_text,
                familiarity_scale=taxonomy("familiarity").describe(item.language),
                talkways=taxonomy("talkway").describe(item.language),
            )
        case "utterance":
            return UtteranceInputs(
                dialogue=item.dialogue_text,
                sentiments=taxonomy("sentiment").describe(item.language),
                emotions=taxonomy("utterance_emotion").describe(item.language),
                turn=item.turn_index,
                utterance=item.utterance_text or "",
            )
