"""The one prompt of the stage: a character designed from its brief (DEMO section 3.2, inspiring prompting)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.personas import BigFive
from tasks.foundation.tables.types import Language
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


Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=40)]
Short = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]
Story = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=240)]


class CharacterSketch(BaseModel):
    """What the designer writes; the lengths bound what small models may run on to."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="full name, newly invented")
    background: Story = Field(description="life story in two sentences")
    hobby: Short = Field(description="one or two hobbies")
    education: Short = Field(description="education, fitting the age")
    occupation: Short = Field(description="occupation, fitting the age")
    culture: Short = Field(description="cultural background")
    relationship: Line = Field(description="the important people in the character's life")
    speaking_style: Line = Field(description="how the character talks: tone, pace, favourite expressions")


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
