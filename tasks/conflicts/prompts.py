"""The two requests of an assessment and the replies they are checked against.

Both prompts share their system message and the data, so that a local model reads those only once.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel, create_model

from tasks.foundation.demo.records import collect_facts, describe, describe_setting
from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.personas import Character
from tasks.foundation.tables.scenes import Scene
from tasks.foundation.tables.types import Score10
from tasks.foundation.texts.replies import Label, Phrase, Reasoning, ReplyModel, asked, list_names


class Checks(ReplyModel):
    """Each check with one sentence before its answer."""

    identity_why: Label = asked("what speaks for or against it, in one sentence", "一句话说明理由")
    identity_ok: bool = asked("neither person contradicts themselves", "人物描述自身没有矛盾")
    goal_why: Label = asked("what speaks for or against it, in one sentence", "一句话说明理由")
    goal_ok: bool = asked("each could want their goal in this scene", "各自确实可能抱有自己的目标")
    partner_why: Label = asked("what speaks for or against it, in one sentence", "一句话说明理由")
    partner_ok: bool = asked("the two could meet and have this talk", "两人可能相遇并进行这样的谈话")

    @property
    def reasoning(self) -> str:
        """The sentences of the checks, a line each."""
        return "\n".join((self.identity_why, self.goal_why, self.partner_why))

    def decide(self, said: bool, objection: str | None) -> bool:
        """The verdict that follows: coherent only if every check holds, and then unless an objection says why not."""
        return self.identity_ok and self.goal_ok and self.partner_ok and (said or not objection)


COHERENT: Any = asked("the whole fits together: only if every check holds", "整体是否协调：各项都通过才可为 true")
OBJECTION: Any = asked(
    "why it is not coherent although every check holds; else null", "各项都通过却仍不协调的原因；否则为 null"
)


class Assessment(Checks):
    coherent: bool = COHERENT
    objection: Label | None = OBJECTION

    @property
    def verdict(self) -> bool:
        return self.decide(self.coherent, self.objection)


class SecondThoughts(ReplyModel):
    second_thoughts: Reasoning = asked(
        "what the first assessment overlooked or claimed without ground", "第一次评估漏掉或凭空认定了什么"
    )


class Reflection(Checks, SecondThoughts):
    """Second thoughts, then the checks again. Without `talkway`, whose labels come from a taxonomy: see
    `make_reflection_reply`."""

    is_coherent: bool = COHERENT
    objection: Label | None = OBJECTION
    relationship: Phrase = asked("the relation of the two", "两人的关系")
    familiarity: Score10 = asked("how well they know each other", "两人的熟悉程度")

    @property
    def verdict(self) -> bool:
        return self.decide(self.is_coherent, self.objection)


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
    one, two = (describe(collect_facts(person), language) for person in (character1, character2))
    return AssessInputs(
        familiarity_scale=taxonomy("familiarity").describe(language),
        talkways=taxonomy("talkway").describe(language),
        goal1=scene.goal1,
        goal2=scene.goal2,
        goal_type=taxonomy("goal_type").show(scene.goal_type, language).replace("_", " "),
        setting=describe_setting(scene),
        participant1=one,
        participant2=two,
    )
