"""The two requests of an assessment and the replies they are checked against.

Both prompts share their system message and the data, so that a local model reads those only once.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel, create_model

from tasks.foundation.demo.records import IDENTITY_FACTS, collect_facts, describe
from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.personas import Character
from tasks.foundation.tables.scenes import Scene
from tasks.foundation.tables.types import Score10
from tasks.foundation.texts.replies import Phrase, Reasoning, ReplyModel, asked, list_names


class Assessment(ReplyModel):
    reasoning: Reasoning = asked("what speaks for and against the pairing", "支持和反对这一组合的理由")
    identity_ok: bool = asked("neither person contradicts themselves", "人物描述自身没有矛盾")
    goal_ok: bool = asked("each could want their goal in this scene", "各自确实可能抱有自己的目标")
    partner_ok: bool = asked("the two could meet and have this talk", "两人可能相遇并进行这样的谈话")
    coherent: bool = asked("the whole fits together", "整体是否连贯")


class Reflection(ReplyModel):
    """Without `talkway`, whose labels come from a taxonomy: see `reflection_reply`."""

    second_thoughts: Reasoning = asked(
        "what the first assessment overlooked or claimed without ground", "第一次评估漏掉或凭空认定了什么"
    )
    is_coherent: bool = asked("the final verdict: the whole fits together", "最终结论：整体是否连贯")
    relationship: Phrase = asked("the relation of the two", "两人的关系")
    familiarity: Score10 = asked("how well they know each other", "两人的熟悉程度")


@cache
def make_reflection_reply() -> type[BaseModel]:
    """`Reflection` with its mode of talk."""
    fields: dict[str, Any] = {"talkway": (list_names("talkway"), asked("the mode of talk", "交谈方式"))}
    return create_model("Reflection", __base__=Reflection, **fields)


class AssessInputs(Inputs):
    familiarity_scale: list[str]
    talkways: list[str]
    goal1: str
    goal2: str
    goal_type: str
    setting: list[str]
    participant1: str
    participant2: str


class ReflectInputs(AssessInputs):
    first_assessment: str


ASSESS = Prompt("conflicts/assess", inputs=AssessInputs, reply=Assessment)
REFLECT: Prompt[ReflectInputs, BaseModel] = Prompt(
    "conflicts/reflect", inputs=ReflectInputs, reply=make_reflection_reply
)


def make_assess_inputs(scene: Scene, character1: Character, character2: Character) -> AssessInputs:
    """What the assessor sees of a pairing."""
    language = scene.language
    one, two = (describe(collect_facts(person), language, IDENTITY_FACTS) for person in (character1, character2))
    return AssessInputs(
        familiarity_scale=taxonomy("familiarity").describe(language),
        talkways=taxonomy("talkway").describe(language),
        goal1=scene.goal1,
        goal2=scene.goal2,
        goal_type=taxonomy("goal_type").show(scene.goal_type, language),
        setting=[scene.time, scene.location, scene.topic, scene.atmosphere],
        participant1=one,
        participant2=two,
    )
