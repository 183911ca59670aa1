"""The three requests of a turn: what each role sees, and the replies they are checked against.

`SIMULATE` and `PERCEIVE` show the conversation so far within one message; `ANSWER` is the last message of a
real chat, whose earlier messages are sent before it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model

from tasks.conversation.labels import EMOTION, EXPLICIT, LATENT, Progress, list_labels, one_of
from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy

USER_TEXT_CHARACTERS = 500


class _Reply(BaseModel):
    model_config = ConfigDict(frozen=True, str_strip_whitespace=True)


class PredictedLabels(_Reply):
    """The target's labels, as it wrote them."""

    explicit_intent: str
    latent_intent: str
    emotion: str


class SimulatedTurn(_Reply):
    """The simulator's next turn, as it wrote it: progress and state first, so that the text follows from them."""

    progress: str
    emotion: str
    latent_intent: str
    explicit_intent: str
    user_text: str = Field(max_length=USER_TEXT_CHARACTERS)


@cache
def make_prediction_reply() -> type[PredictedLabels]:
    """`PredictedLabels` with the label sets in its schema."""
    return create_model("PredictedLabels", __base__=PredictedLabels, **_labels())


@cache
def make_simulation_reply() -> type[SimulatedTurn]:
    """`SimulatedTurn` with the label sets in its schema."""
    progress: Any = (one_of(*get_args(Progress)), ...)
    return create_model("SimulatedTurn", __base__=SimulatedTurn, progress=progress, **_labels())


def _labels() -> dict[str, Any]:
    fields = {"explicit_intent": EXPLICIT, "latent_intent": LATENT, "emotion": EMOTION}
    return {field: (one_of(*taxonomy(name).names), ...) for field, name in fields.items()}


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
    trouble: Literal["", "labels", "role", "repeat", "empty"]
    attempt: int


PERCEIVE: Prompt[PerceiveInputs, PredictedLabels] = Prompt("conversation/perceive", inputs=PerceiveInputs)
ANSWER: Prompt[AnswerInputs, BaseModel] = Prompt("conversation/answer", inputs=AnswerInputs)
SIMULATE: Prompt[SimulateInputs, SimulatedTurn] = Prompt("conversation/simulate", inputs=SimulateInputs)


def make_label_inputs(language: str) -> dict[str, list[str]]:
    """The three lists of labels as every prompt shows them."""
    return {
        "explicit_intents": list_labels(EXPLICIT, language),
        "latent_intents": list_labels(LATENT, language),
        "emotions": list_labels(EMOTION, language),
    }
