"""The one prompt of the stage: goals and scene distilled from a dialogue (DEMO section 3.2)."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.scenes import SeedDialogue
from tasks.foundation.tables.types import Language

Goal = Annotated[str, StringConstraints(strip_whitespace=True, min_length=2, max_length=200)]
Phrase = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]


class DistilInputs(Inputs):
    goal_types: str
    dialogue: str


class Distilled(BaseModel):
    """What the distiller writes; `distilled()` narrows `goal_type` to the taxonomy's labels."""

    model_config = ConfigDict(extra="forbid")

    topic: Phrase = Field(description="what the dialogue is about")
    goal1: Goal = Field(description="what participant 1 wants to achieve, without names")
    goal2: Goal = Field(description="what participant 2 wants to achieve, without names")
    goal_type: str = Field(description="one of the goal types")
    time: Phrase = Field(description="when it takes place")
    location: Phrase = Field(description="where, and in what surroundings")
    atmosphere: Phrase = Field(description="mood of the scene")
    domain: Phrase = Field(description="area of life")


DISTIL: Prompt[DistilInputs, Distilled] = Prompt("scenes/distil", inputs=DistilInputs)
"""Its reply model is made at run time: `distilled()`."""


@cache
def distilled() -> type[Distilled]:
    """`Distilled` with `goal_type` as a closed set of the labels of configs/taxonomies/goal_type.yaml."""
    labels: Any = Literal[taxonomy("goal_type").names]
    goal_type = (labels, Field(description="one of the goal types"))
    return create_model("Distilled", __base__=Distilled, goal_type=goal_type)


def distil_inputs(seed: SeedDialogue) -> DistilInputs:
    """The dialogue with its speakers as participant 1 (who speaks first) and 2, one turn a line."""
    first = seed.turns[0].speaker
    lines = [f"{1 if turn.speaker == first else 2}: {turn.text}" for turn in seed.turns]
    return DistilInputs(
        goal_types=_goal_types(seed.language),
        dialogue="\n".join(lines),
    )


def _goal_types(language: Language) -> str:
    """The labels: with their definitions in English, with their Chinese names in Chinese."""
    labels = taxonomy("goal_type").labels
    if language == "zh":
        return "、".join(label.shown("zh") for label in labels)
    return "\n".join(f"- {label.name}: {label.definition}" for label in labels)
