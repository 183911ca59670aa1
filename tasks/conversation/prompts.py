"""The three requests of a turn: what each role sees, and the replies they are checked against.

`SIMULATE` and `PERCEIVE` show the conversation so far within one message; `ANSWER` is the last message of a
real chat, whose earlier messages are sent before it.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, create_model

from tasks.conversation.labels import EMOTION, EXPLICIT, LATENT, PROGRESS
from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.texts.replies import Limit, ReplyModel, asked, suggest_names

EXPLICIT_FIELD: Any = asked("what the user asks for", "用户说出口的请求")
LATENT_FIELD: Any = asked("what the user needs without saying so", "用户没有说出口的需要")
EMOTION_FIELD: Any = asked("how the user feels", "用户的感受")
PROGRESS_FIELD: Any = asked("how near the goal the conversation has come", "对话离目标有多近")


class PredictedLabels(ReplyModel):
    """The target's labels, as it wrote them."""

    explicit_intent: str = EXPLICIT_FIELD
    latent_intent: str = LATENT_FIELD
    emotion: str = EMOTION_FIELD


class SimulatedTurn(ReplyModel):
    """The simulator's next turn, as it wrote it: progress and state first, so that the text follows from them."""

    progress: str = PROGRESS_FIELD
    emotion: str = EMOTION_FIELD
    latent_intent: str = LATENT_FIELD
    explicit_intent: str = EXPLICIT_FIELD
    user_text: Annotated[str, Limit("message")] = asked("the user's message", "用户的消息")


@cache
def make_prediction_reply() -> type[PredictedLabels]:
    """`PredictedLabels` with the label sets in its schema."""
    return create_model("PredictedLabels", __base__=PredictedLabels, **_labels())


@cache
def make_simulation_reply() -> type[SimulatedTurn]:
    """`SimulatedTurn` with the label sets in its schema."""
    progress: Any = (suggest_names(PROGRESS), PROGRESS_FIELD)
    return create_model("SimulatedTurn", __base__=SimulatedTurn, progress=progress, **_labels())


def _labels() -> dict[str, Any]:
    return {
        "explicit_intent": (suggest_names(EXPLICIT), EXPLICIT_FIELD),
        "latent_intent": (suggest_names(LATENT), LATENT_FIELD),
        "emotion": (suggest_names(EMOTION), EMOTION_FIELD),
    }


class Exchange(Inputs):
    """A user turn that was answered."""

    user: str
    assistant: str


class LabelInputs(Inputs):
    explicit_intents: list[str]
    latent_intents: list[str]
    emotions: list[str]


class PerceiveInputs(LabelInputs):
    """`persona`: empty unless the setting shows it to the target."""

    persona: str
    turns: list[Exchange]
    user_text: str


class AnswerInputs(Inputs):
    """`persona`: empty unless the setting shows it to the target."""

    persona: str
    user_text: str


class SimulateInputs(LabelInputs):
    """`trouble`: what was wrong with the attempt before, in which case `attempt` is 2 or more."""

    persona: str
    topic: str
    initial_emotion: str
    final_intent: str
    turns: list[Exchange]
    trouble: Literal["", "labels", "role", "repeat", "empty", "language", "echo"]
    attempt: int


PERCEIVE: Prompt[PerceiveInputs, PredictedLabels] = Prompt(
    "conversation/perceive", inputs=PerceiveInputs, reply=make_prediction_reply
)
ANSWER: Prompt[AnswerInputs, BaseModel] = Prompt("conversation/answer", inputs=AnswerInputs)
SIMULATE: Prompt[SimulateInputs, SimulatedTurn] = Prompt(
    "conversation/simulate", inputs=SimulateInputs, reply=make_simulation_reply
)


def make_label_inputs(language: str) -> dict[str, list[str]]:
    """The three lists of labels as every prompt shows them."""
    return {
        "explicit_intents": taxonomy(EXPLICIT).describe(language),
        "latent_intents": taxonomy(LATENT).describe(language),
        "emotions": taxonomy(EMOTION).describe(language),
    }
