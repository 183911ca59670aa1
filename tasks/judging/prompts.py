"""The four things a judge is asked: inputs, and the replies they are checked against.

Reasons come before scores and are short. What is judged stands between tags; a turn's request holds no
label, no later turn and no model's name.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from tasks.foundation.demo.elements import ReplyModel
from tasks.foundation.demo.records import write_transcript
from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.dialogues import AwarenessItem, AwarenessTask, InteractionEpisode
from tasks.foundation.tables.evaluation import InteractionTurn
from tasks.foundation.tables.types import Score10


class Scored10(ReplyModel):
    reason: str = Field(min_length=1, max_length=300)
    score: Score10


class AwarenessOpinion(ReplyModel):
    accuracy: Scored10
    hallucination: Scored10


class InteractionOpinion(ReplyModel):
    goal_achievement: Scored10
    believability: Scored10
    skillfulness: Scored10
    realistic: Scored10


class FinalOpinion(ReplyModel):
    reason: str = Field(min_length=1, max_length=300)
    completed: bool
    satisfaction: int = Field(ge=1, le=5)


class AwarenessInputs(Inputs):
    task: AwarenessTask
    gold: str
    answer: str


class InteractionInputs(Inputs):
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


AWARENESS = Prompt("judging/awareness", inputs=AwarenessInputs, reply=AwarenessOpinion)
INTERACTION = Prompt("judging/interaction", inputs=InteractionInputs, reply=InteractionOpinion)
TURN: Prompt[TurnInputs, BaseModel] = Prompt("judging/turn", inputs=TurnInputs)
FINAL = Prompt("judging/final", inputs=FinalInputs, reply=FinalOpinion)


def make_awareness_inputs(item: AwarenessItem, answer: str) -> AwarenessInputs:
    """The gold labels and the answer; not the dialogue (as in the paper's judge prompt)."""
    return AwarenessInputs(task=item.task, gold=item.gold, answer=answer)


def make_interaction_inputs(
    episode: InteractionEpisode, turns: Sequence[InteractionTurn], language: str
) -> InteractionInputs:
    """The whole episode: both sides' backgrounds and goals, the scene, what was said."""
    names = (episode.speaker1, episode.speaker2)
    talkways = {label.name: label.shown(language) for label in taxonomy("talkway").labels}
    return InteractionInputs(
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
        talkway=talkways.get(episode.talkway, episode.talkway),
        talk=write_transcript(names, [(turn.speaker, turn.text) for turn in turns]),
    )
