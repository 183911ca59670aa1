"""The one prompt of the stage: a character designed from its brief (DEMO section 3.2, inspiring prompting)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ConfigDict

from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.personas import BigFive
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.replies import Background, Label, Name, Phrase, ReplyModel, asked
from tasks.personas.characters import CharacterBrief

_GENDER = {"en": {"M": "male", "F": "female"}, "zh": {"M": "男", "F": "女"}}
_LEVEL = {"en": {"High": "high", "Low": "low"}, "zh": {"High": "高", "Low": "低"}}
_TRAITS = {
    "en": dict(zip(BigFive.model_fields, BigFive.model_fields, strict=True)),
    "zh": dict(zip(BigFive.model_fields, ("开放性", "尽责性", "外向性", "宜人性", "神经质"), strict=True)),
}


class DesignInputs(Inputs):
    gender: str
    age: int
    big_five: str
    moral_values: str
    personal_values: str
    decision_style: str
    social_skill: str
    inspiration: str


class CharacterSketch(ReplyModel):
    """What the designer writes."""

    model_config = ConfigDict(extra="forbid")

    name: Name = asked("full name, newly invented", "新起的姓名")
    background: Background = asked("where they come from and what happened to them", "从哪里来、经历过什么")
    hobby: Phrase = asked("what they do for fun", "平时爱做什么")
    education: Phrase = asked("what they learned, fitting the age", "读过什么书，与年龄相符")
    occupation: Phrase = asked("what they work as, fitting the age", "做什么工作，与年龄相符")
    culture: Phrase = asked("the culture they grew up in", "在怎样的文化中长大")
    relationship: Label = asked("the important people in their life", "身边有哪些重要的人")
    speaking_style: Label = asked("how they talk: tone, pace, favourite expressions", "怎样说话：语气、快慢、口头禅")


DESIGN = Prompt("personas/design", inputs=DesignInputs, reply=CharacterSketch)


def design_inputs(brief: CharacterBrief) -> DesignInputs:
    """The brief in the words of its language."""
    language = brief.language
    levels = brief.big_five.model_dump()
    join = "、" if language == "zh" else ", "
    return DesignInputs(
        gender=_GENDER[language][brief.gender],
        age=brief.age,
        big_five=join.join(f"{_TRAITS[language][trait]} {_LEVEL[language][level]}" for trait, level in levels.items()),
        moral_values=join.join(_shown(brief.moral_values, language)),
        personal_values=join.join(_shown(brief.personal_values, language)),
        decision_style=_shown([brief.decision_style], language)[0],
        social_skill=_shown([brief.social_skill], language)[0],
        inspiration=brief.inspiration,
    )


def _shown(names: Sequence[str], language: Language) -> list[str]:
    """Attributes as the prompt shows them, by their name in its language."""
    chinese = {label.name: label.zh for label in taxonomy("attributes").labels}
    return [chinese[name] if language == "zh" else name for name in names]
