"""The one prompt of the stage: goals and scene distilled from a dialogue (DEMO section 3.2)."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import ConfigDict, create_model

from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.scenes import SeedDialogue
from tasks.foundation.texts.replies import Goal, Label, Phrase, ReplyModel, asked, list_names


class DistilInputs(Inputs):
    goal_types: list[str]
    dialogue: str


GOAL_TYPE: Any = asked("the goal type that fits best", "最合适的目标类型")


class Distilled(ReplyModel):
    """What the distiller writes; `distilled()` narrows `goal_type` to the taxonomy's labels."""

    model_config = ConfigDict(extra="forbid")

    usable: bool = asked("whether two people with a goal each talk to one another", "是否为各有目标的两个人在交谈")
    reason: Label | None = asked("why it is not usable; else null", "不可用的原因；可用时为 null")
    topic: Phrase = asked("what the dialogue is about", "对话谈的是什么")
    goal1: Goal = asked("what participant 1 wants to achieve, without names", "参与者1想达成什么，不出现人名")
    goal2: Goal = asked("what participant 2 wants to achieve, without names", "参与者2想达成什么，不出现人名")
    goal_type: str = GOAL_TYPE
    time: Phrase = asked("when it takes place", "何时发生")
    location: Phrase = asked("where, and in what surroundings", "在哪里，周围是什么样")
    atmosphere: Phrase = asked("mood of the scene", "现场的气氛")
    domain: Phrase = asked("area of life", "属于哪个生活领域")


@cache
def distilled() -> type[Distilled]:
    """`Distilled` with `goal_type` as a closed set of the labels of configs/taxonomies/goal_type.yaml."""
    return create_model("Distilled", __base__=Distilled, goal_type=(list_names("goal_type"), GOAL_TYPE))


DISTIL = Prompt("scenes/distil", inputs=DistilInputs, reply=distilled)


def distil_inputs(seed: SeedDialogue) -> DistilInputs:
    """The dialogue with its speakers as participant 1 (who speaks first) and 2, one turn a line."""
    first = seed.turns[0].speaker
    colon = "：" if seed.language == "zh" else ": "
    lines = [f"{1 if turn.speaker == first else 2}{colon}{turn.text}" for turn in seed.turns]
    return DistilInputs(
        goal_types=taxonomy("goal_type").describe(seed.language),
        dialogue="\n".join(lines),
    )
