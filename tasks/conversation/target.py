"""The model under test: what it sees of a conversation, and its two separate requests a turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tasks.conversation.brief import Brief
from tasks.conversation.faults import fault_of_answer, without_prediction
from tasks.conversation.labels import EMOTION, EXPLICIT, LATENT, canonical
from tasks.conversation.loop import Answer, Fault, Prediction, Turn
from tasks.conversation.prompts import (
    ANSWER,
    PERCEIVE,
    AnswerInputs,
    Exchange,
    PerceiveInputs,
    PredictedLabels,
    label_inputs,
    predicted_labels,
)
from tasks.foundation.errors import ModelError
from tasks.foundation.llm.request import Message
from tasks.foundation.settings.sections import ConversationSection
from tasks.foundation.stage import Asker


@dataclass(frozen=True, slots=True)
class Target:
    """Knows the texts of the conversation; the persona only as far as `persona_to_target` says."""

    ask: Asker
    section: ConversationSection
    brief: Brief

    async def predict(self, turns: Sequence[Turn]) -> Prediction:
        """The labels of the last user turn, from the perception prompt over the whole conversation."""
        try:
            reply: PredictedLabels = await self.ask(
                PERCEIVE,
                PerceiveInputs(
                    **label_inputs(self.brief.seed.language),
                    persona=self.brief.persona if self.section.persona_to_target != "none" else "",
                    turns=exchanges(turns),
                    user_text=turns[-1].user.text,
                ),
                purpose="perception",
                temperature=self.section.perception_temperature,
                reply=predicted_labels(),
                **self._manner(),
            )
        except ModelError as error:
            return without_prediction(error)
        return prediction_of(reply)

    async def answer(self, turns: Sequence[Turn]) -> Answer | Fault:
        """The answer to the last user turn, in a chat that holds no label and no rubric."""
        try:
            text: str = await self.ask(
                ANSWER,
                AnswerInputs(
                    persona=self.brief.persona if self.section.persona_to_target == "both" else "",
                    user_text=turns[-1].user.text,
                ),
                purpose="generation",
                temperature=self.section.temperature,
                history=chat(turns),
                **self._manner(),
            )
        except ModelError as error:
            return fault_of_answer(error)
        return Answer(text)

    def _manner(self) -> dict[str, Any]:
        return {
            "language": self.brief.seed.language,
            "alias": self.brief.target,
            "max_tokens": self.section.max_tokens,
            "sample": self.brief.sample,
        }


def exchanges(turns: Sequence[Turn]) -> list[Exchange]:
    """The answered turns, in words only."""
    return [Exchange(user=turn.user.text, assistant=turn.answer) for turn in turns if turn.answer is not None]


def chat(turns: Sequence[Turn]) -> list[Message]:
    """The answered turns as a chat in which the target is the assistant."""
    messages = []
    for exchange in exchanges(turns):
        messages += [Message("user", exchange.user), Message("assistant", exchange.assistant)]
    return messages


def prediction_of(reply: PredictedLabels) -> Prediction:
    """The labels that are in the vocabulary; a label that is not takes no other down with it."""
    return Prediction(
        explicit=canonical(EXPLICIT, reply.explicit_intent),
        latent=canonical(LATENT, reply.latent_intent),
        emotion=canonical(EMOTION, reply.emotion),
    )
