"""The simulated user: writes the next user turn, with labels that are the gold of that turn.

It sees the seed (persona, topic, first emotion, final intent) and what both sides have said, never a
prediction of the target. A turn with a label outside the vocabulary, without words, or in the assistant's
voice is asked for again, up to `label_reasks` times in all; then it is the simulator's fault. So is a repeat
of an earlier turn, except that the repeat stands when nothing better comes: people do repeat themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from tasks.conversation.faults import explain_failed_user_turn
from tasks.conversation.labels import EMOTION, EXPLICIT, LATENT, Gold, Progress, find_progress
from tasks.conversation.loop import Fault, Turn, UserTurn
from tasks.conversation.prompts import (
    SIMULATE,
    Exchange,
    SimulatedTurn,
    SimulateInputs,
    make_label_inputs,
)
from tasks.conversation.role_breaks import clean_user_text, find_trouble
from tasks.conversation.setup import ConversationSetup
from tasks.conversation.target import list_exchanges
from tasks.foundation.errors import ModelError
from tasks.foundation.settings.sections import ConversationSection
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.stage import Asker

Trouble = Literal["labels", "role", "repeat", "empty"]
Spoken = TypeVar("Spoken", UserTurn, Fault)


@dataclass(frozen=True, slots=True)
class Simulator:
    """Plays the seed's user."""

    ask: Asker
    section: ConversationSection
    setup: ConversationSetup

    async def speak(self, turns: Sequence[Turn]) -> UserTurn | Fault:
        """The next user turn of an answered conversation."""
        said = list_exchanges(turns)
        troubles: list[Trouble] = []
        repeated: UserTurn | None = None
        for attempt in range(1, 2 + self.section.label_reasks):
            try:
                reply = await self._reply(said, troubles[-1] if troubles else "", attempt)
            except ModelError as error:
                return _add_counts(explain_failed_user_turn(error), troubles)
            turn, trouble = read_turn(reply, said, troubles)
            if turn is not None and trouble is None:
                return turn
            assert trouble is not None
            repeated = turn or repeated
            troubles.append(trouble)
        why = f"no usable user turn in {len(troubles)} attempts: {', '.join(troubles)}"
        return repeated or _add_counts(Fault("simulator", why), troubles)

    async def _reply(self, said: Sequence[Exchange], trouble: Trouble | Literal[""], attempt: int) -> SimulatedTurn:
        seed = self.setup.seed
        reply: SimulatedTurn = await self.ask(
            SIMULATE,
            SimulateInputs(
                **make_label_inputs(seed.language),
                persona=self.setup.persona,
                topic=seed.topic or "",
                initial_emotion=taxonomy(EMOTION).show(seed.initial_emotion or "", seed.language),
                final_intent=seed.final_intent or "",
                turns=list(said),
                trouble=trouble,
                attempt=attempt,
            ),
            language=seed.language,
            alias=self.section.simulator,
            purpose="simulation",
            temperature=self.section.simulator_temperature,
            max_tokens=self.section.max_tokens,
            sample=self.setup.sample,
        )
        return reply


def read_turn(
    reply: SimulatedTurn, said: Sequence[Exchange], before: Sequence[Trouble]
) -> tuple[UserTurn | None, Trouble | None]:
    """The turn, if it can be used at all, and what is wrong with it. `before` are the troubles of the
    attempts before this one, which the turn carries as its counts of re-asks."""
    text = clean_user_text(reply.user_text)
    trouble: Trouble | None = find_trouble(text, [x.user for x in said], [x.assistant for x in said])
    if trouble in ("empty", "role"):
        return None, trouble
    gold, progress = read_gold(reply), find_progress(reply.progress)
    if gold is None or progress is None:
        return None, "labels"
    return _make_turn(text, gold, progress, before), trouble


def read_gold(reply: SimulatedTurn) -> Gold | None:
    """The three labels; None when any is out of vocabulary."""
    explicit = taxonomy(EXPLICIT).find(reply.explicit_intent)
    latent = taxonomy(LATENT).find(reply.latent_intent)
    emotion = taxonomy(EMOTION).find(reply.emotion)
    if explicit is None or latent is None or emotion is None:
        return None
    return Gold(explicit, latent, emotion)


def _make_turn(text: str, gold: Gold, progress: Progress, before: Sequence[Trouble]) -> UserTurn:
    return _add_counts(UserTurn(text, gold, progress), before)


def _add_counts(spoken: Spoken, troubles: Sequence[Trouble]) -> Spoken:
    """A turn, or the fault that stands for it, with how often the simulator had to be asked again and why."""
    counts = Counter(troubles)
    return replace(spoken, label_reasks=counts["labels"], role_breaks=counts["role"] + counts["empty"])
