"""The four things a judge is asked: inputs, and the replies they are checked against.

Reasons come before scores. Each prompt is there in two styles (`judging.style`): as harsh and thorough as in the
papers' appendices D, and brief. What is judged stands between tags; a turn's request holds no
label, no later turn and no model's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import create_model

from tasks.foundation.demo.records import write_transcript
from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.dialogues import AwarenessItem, AwarenessTask, InteractionEpisode
from tasks.foundation.tables.evaluation import InteractionTurn
from tasks.foundation.tables.types import Score10
from tasks.foundation.texts.replies import JudgeReason, PartsReply, ReplyModel, asked
from tasks.judging.rubric import list_columns, make_turn_reply


class Scored10(ReplyModel):
    reason: JudgeReason = asked("the analysis that the score follows from", "得出该分数的分析")
    score: Score10 = asked("10 best", "10 为最好")


class AwarenessOpinion(PartsReply):
    accuracy: Scored10 = asked("agreement with the reference", "与参考的一致程度")
    hallucination: Scored10 = asked(
        "freedom from invented content, 10: nothing is invented", "无虚构程度，10 为毫无编造"
    )


class InteractionOpinion(PartsReply):
    goal_achievement: Scored10 = asked("how far both reached their goals", "双方目标的达成程度")
    believability: Scored10 = asked("how well both keep to who they are", "双方是否符合各自的背景")
    skillfulness: Scored10 = asked("how well both understand and answer", "双方理解与回应的水平")
    realistic: Scored10 = asked("how much it reads like real people", "像真人交谈的程度")


class FinalOpinion(ReplyModel):
    reason: JudgeReason = asked("the analysis that both follow from", "得出两项判断的分析")
    completed: bool = asked("whether the final intent was met", "最终意图是否达成")
    satisfaction: int = asked("how satisfied the user can be", "用户的满意程度", ge=1, le=5)


class AwarenessInputs(Inputs):
    """`criteria`: those to be scored; fewer than all where a reply lacked some."""

    criteria: list[str]
    task: AwarenessTask
    gold: str
    answer: str


class InteractionInputs(Inputs):
    """`criteria`: those to be scored; fewer than all where a reply lacked some."""

    criteria: list[str]
    name1: str
    name2: str
    background1: str
    background2: str
    goal1: str
    goal2: str
    relationship: str
    familiarity: int
    topic: str
    time: str
    location: str
    talkway: str
    talk: str


class Exchange(Inputs):
    """A user turn and its answer."""

    user: str
    assistant: str


class TurnInputs(Inputs):
    half: bool
    rubric: list[str]
    persona: str
    conversation: list[Exchange]


class FinalInputs(Inputs):
    final_intent: str
    conversation: list[Exchange]
    unanswered: str


@dataclass(frozen=True, slots=True)
class JudgePrompts:
    """The four prompts in one style."""

    awareness: Prompt[AwarenessInputs, PartsReply]
    interaction: Prompt[InteractionInputs, PartsReply]
    turn: Prompt[TurnInputs, PartsReply]
    final: Prompt[FinalInputs, FinalOpinion]

    @classmethod
    def of(cls, style: str) -> JudgePrompts:
        folder = f"judging/{style}"
        return cls(
            Prompt(f"{folder}/awareness", AwarenessInputs, lambda: make_opinion_reply(AwarenessOpinion)),
            Prompt(f"{folder}/interaction", InteractionInputs, lambda: make_opinion_reply(InteractionOpinion)),
            Prompt(f"{folder}/turn", TurnInputs, lambda: make_turn_reply(list_columns(), "half")),
            Prompt(f"{folder}/final", FinalInputs, FinalOpinion),
        )

    @property
    def all(self) -> tuple[Prompt[Any, Any], ...]:
        return (self.awareness, self.interaction, self.turn, self.final)


STYLES = {style: JudgePrompts.of(style) for style in ("paper", "brief")}


@cache
def make_opinion_reply(whole: type[PartsReply], criteria: tuple[str, ...] = ()) -> type[PartsReply]:
    """The opinion on some criteria; without any, on all."""
    fields: Any = {name: (whole.model_fields[name].annotation, whole.model_fields[name]) for name in criteria}
    return create_model(whole.__name__, __base__=PartsReply, **fields) if criteria else whole


def make_awareness_inputs(criteria: Sequence[str], item: AwarenessItem, answer: str) -> AwarenessInputs:
    """The gold labels and the answer; not the dialogue (as in the paper's judge prompt)."""
    return AwarenessInputs(criteria=list(criteria), task=item.task, gold=item.gold, answer=answer)


def make_interaction_inputs(
    criteria: Sequence[str], episode: InteractionEpisode, turns: Sequence[InteractionTurn], language: str
) -> InteractionInputs:
    """The whole episode: both sides' backgrounds and goals, the scene, what was said."""
    names = (episode.speaker1, episode.speaker2)
    return InteractionInputs(
        criteria=list(criteria),
        name1=episode.speaker1,
        name2=episode.speaker2,
        background1=episode.background1,
        background2=episode.background2,
        goal1=episode.goal1,
        goal2=episode.goal2,
        relationship=episode.relationship,
        familiarity=episode.familiarity,
        topic=episode.topic,
        time=episode.time,
        location=episode.location,
        talkway=taxonomy("talkway").show(episode.talkway, language),
        talk=write_transcript(names, [(turn.speaker, turn.text) for turn in turns], episode.language),
    )
