"""The one prompt of the stage: a character designed from its brief (DEMO section 3.2, inspiring prompting)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ConfigDict

from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import Label as Trait
from tasks.foundation.settings.taxonomies import gloss, taxonomy
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.replies import Background, Label, Phrase, ReplyModel, asked
from tasks.personas.characters import CharacterBrief


class DesignInputs(Inputs):
    """Who it is, and attributes with what they mean."""

    name: str
    origin: str
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

    background: Background = asked("where they come from and what happened to them", "从哪里来、经历过什么")
    hobby: Phrase = asked("what they do for fun", "平时爱做什么")
    education: Phrase = asked("what they learned, fitting the age", "受过什么教育，与年龄相符")
    occupation: Phrase = asked("what they work as, fitting the age", "做什么工作，与年龄相符")
    culture: Phrase = asked("the culture they grew up in", "在怎样的文化中长大")
    relationship: Label = asked("the important people in their life", "身边有哪些重要的人")
    speaking_style: Label = asked("how they talk: tone, pace, favourite expressions", "怎样说话：语气、快慢、口头禅")


DESIGN = Prompt("personas/design", inputs=DesignInputs, reply=CharacterSketch)


def design_inputs(brief: CharacterBrief) -> DesignInputs:
    """The brief in the words of its language."""
    language = brief.language
    return DesignInputs(
        name=brief.name,
        origin=brief.origin,
        gender=next(label.defined(language) for label in taxonomy("gender").labels if label.name == brief.gender),
        age=brief.age,
        big_five=_join([_gloss_trait(trait, brief, language) for trait in taxonomy("big_five").labels], language),
        moral_values=_gloss(brief.moral_values, language),
        personal_values=_gloss(brief.personal_values, language),
        decision_style=_gloss([brief.decision_style], language),
        social_skill=_gloss([brief.social_skill], language),
        inspiration=brief.inspiration,
    )


def _gloss(names: Sequence[str], language: Language) -> str:
    """Attributes by their names in the language, each with what it means."""
    labels = {label.name: label for label in taxonomy("attributes").labels}
    return _join(
        [gloss(labels[name].shown(language), labels[name].defined(language), language) for name in names], language
    )


def _gloss_trait(trait: Trait, brief: CharacterBrief, language: Language) -> str:
    """'openness high (curious and fond of new ideas)', '开放性高（好奇，喜欢新想法）'."""
    level = getattr(brief.big_five, trait.name)
    shown = ["", " "][language == "en"].join((trait.shown(language), taxonomy("level").show(level, language).lower()))
    return gloss(shown, trait.opposed(language) if level == "Low" else trait.defined(language), language)


def _join(parts: Sequence[str], language: Language) -> str:
    return ("；" if language == "zh" else "; ").join(parts)
