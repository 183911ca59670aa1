"""The simulated user: writes the next user turn, with labels that are the gold of that turn.

It sees the seed (persona, topic, first emotion, final intent) and what both sides have said, never a
prediction of the target. Stage directions and a name in front are taken out. A turn with a label outside the
vocabulary, without words, in the assistant's voice or another language, or that recites its prompt is asked for again,
up to `label_reasks` times in all; then it is the simulator's fault. So is a repeat of an earlier turn, except that the
repeat stands when nothing better comes: people do repeat themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from tasks.conversation.faults import explain_failed_user_turn
from tasks.conversation.labels import EMOTION, EXPLICIT, LATENT, Gold, find_progress
from tasks.conversation.loop import Fault, Turn, UserTurn
from tasks.conversation.prompts import (
    SIMULATE,
    Exchange,
    SimulatedTurn,
    SimulateInputs,
    make_label_inputs,
)
from tasks.conversation.role_breaks import USER_NAMES, Trouble, clean_user_text, find_trouble
from tasks.conversation.setup import ConversationSetup
from tasks.conversation.target import list_exchanges
from tasks.foundation.errors import ModelError
from tasks.foundation.settings.sections import ConversationSection
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.stage import Asker
from tasks.foundation.texts.spoken import Voice

Reason = Trouble | Literal["labels"]
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
        troubles: list[Reason] = []
        guards: list[str] = []
        repeated: UserTurn | None = None
        for attempt in range(1, 2 + self.section.label_reasks):
            try:
                reply = await self._reply(said, troubles[-1] if troubles else "", attempt)
            except ModelError as error:
                return _add_counts(explain_failed_user_turn(error), troubles, guards)
            turn, trouble, fired = read_turn(reply, said, self._voice)
            guards += fired
            if turn is not None and trouble is None:
                return _add_counts(turn, troubles, guards)
            assert trouble is not None
            repeated = _add_counts(turn, troubles, guards) if turn is not None else repeated
            troubles.append(trouble)
        why = f"no usable user turn in {len(troubles)} attempts: {', '.join(troubles)}"
        return repeated or _add_counts(Fault("simulator", why), troubles, guards)

    @property
    def _voice(self) -> Voice:
        seed = self.setup.seed
        return Voice(seed.language, USER_NAMES, (seed.final_intent or "", *SIMULATE.sentences(seed.language)))

    async def _reply(self, said: Sequence[Exchange], trouble: Reason | Literal[""], attempt: int) -> SimulatedTurn:
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
    reply: SimulatedTurn, said: Sequence[Exchange], voice: Voice
) -> tuple[UserTurn | None, Reason | None, tuple[str, ...]]:
    """The turn, if it can be used at all, what is wrong with it, and the guards that fired."""
    text, mended = clean_user_text(reply.user_text, voice)
    trouble, fired = find_trouble(text, voice, [x.user for x in said], [x.assistant for x in said])
    guards = (*mended, *fired)
    if trouble not in (None, "repeat"):
        return None, trouble, guards
    gold, progress = read_gold(reply), find_progress(reply.progress)
    if gold is None or progress is None:
        return None, "labels", guards
    return UserTurn(text, gold, progress), trouble, guards


def read_gold(reply: SimulatedTurn) -> Gold | None:
    """The three labels; None when any is out of vocabulary."""
    explicit = taxonomy(EXPLICIT).find(reply.explicit_intent)
    latent = taxonomy(LATENT).find(reply.latent_intent)
    emotion = taxonomy(EMOTION).find(reply.emotion)
    if explicit is None or latent is None or emotion is None:
        return None
    return Gold(explicit, latent, emotion)


def _add_counts(spoken: Spoken, troubles: Sequence[Reason], guards: Sequence[str]) -> Spoken:
    """A turn, or the fault that stands for it, with how often the simulator had to be asked again and why."""
    counts = Counter(troubles)
    left_role = counts.total() - counts["labels"] - counts["repeat"]
    return replace(spoken, label_reasks=counts["labels"], role_breaks=left_role, guards=tuple(dict.fromkeys(guards)))
