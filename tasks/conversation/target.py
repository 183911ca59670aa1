"""The model under test: what it sees of a conversation, and its two separate requests a turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tasks.conversation.faults import explain_failed_answer, explain_lost_prediction
from tasks.conversation.labels import EMOTION, EXPLICIT, LATENT
from tasks.conversation.loop import Fault, Prediction, TargetAnswer, Turn
from tasks.conversation.prompts import (
    ANSWER,
    PERCEIVE,
    AnswerInputs,
    Exchange,
    PerceiveInputs,
    PredictedLabels,
    make_label_inputs,
)
from tasks.conversation.setup import ConversationSetup
from tasks.foundation.errors import ModelError
from tasks.foundation.llm.request import Message
from tasks.foundation.settings.sections import ConversationSection
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.stage import Asker


@dataclass(frozen=True, slots=True)
class Target:
    """Knows the texts of the conversation; the persona only as far as `persona_to_target` says."""

    ask: Asker
    section: ConversationSection
    setup: ConversationSetup

    async def predict(self, turns: Sequence[Turn]) -> Prediction:
        """The labels of the last user turn, from the perception prompt over the whole conversation."""
        try:
            reply: PredictedLabels = await self.ask(
                PERCEIVE,
                PerceiveInputs(
                    **make_label_inputs(self.setup.seed.language),
                    persona=self.setup.persona if self.section.persona_to_target != "none" else "",
                    turns=list_exchanges(turns),
                    user_text=turns[-1].user.text,
                ),
                purpose="perception",
                temperature=self.section.perception_temperature,
                **self._manner(),
            )
        except ModelError as error:
            return explain_lost_prediction(error)
        return read_prediction(reply)

    async def answer(self, turns: Sequence[Turn]) -> TargetAnswer | Fault:
        """The answer to the last user turn, in a chat that holds no label and no rubric."""
        try:
            text: str = await self.ask(
                ANSWER,
                AnswerInputs(
                    persona=self.setup.persona if self.section.persona_to_target == "both" else "",
                    user_text=turns[-1].user.text,
                ),
                purpose="generation",
                temperature=self.section.temperature,
                history=make_chat(turns),
                **self._manner(),
            )
        except ModelError as error:
            return explain_failed_answer(error)
        return TargetAnswer(text)

    def _manner(self) -> dict[str, Any]:
        return {
            "language": self.setup.seed.language,
            "alias": self.setup.target,
            "max_tokens": self.section.max_tokens,
            "sample": self.setup.sample,
        }


def list_exchanges(turns: Sequence[Turn]) -> list[Exchange]:
    """The answered turns, in words only."""
    return [Exchange(user=turn.user.text, assistant=turn.answer) for turn in turns if turn.answer is not None]


def make_chat(turns: Sequence[Turn]) -> list[Message]:
    """The answered turns as a chat in which the target is the assistant."""
    messages = []
    for exchange in list_exchanges(turns):
        messages += [Message("user", exchange.user), Message("assistant", exchange.assistant)]
    return messages


def read_prediction(reply: PredictedLabels) -> Prediction:
    """The labels that are in the vocabulary; a label that is not takes no other down with it."""
    return Prediction(
        explicit=taxonomy(EXPLICIT).find(reply.explicit_intent),
        latent=taxonomy(LATENT).find(reply.latent_intent),
        emotion=taxonomy(EMOTION).find(reply.emotion),
    )
