"""What one conversation starts from: a seed, its persona, and how often the pair has met before."""

from __future__ import annotations

from dataclasses import dataclass

from tasks.conversation.labels import Gold
from tasks.conversation.loop import UserTurn
from tasks.foundation.tables.evaluation import ChatSeed


@dataclass(frozen=True, slots=True)
class ConversationSetup:
    """`persona` is the persona's description; `sample` the 0-based repeat."""

    seed: ChatSeed
    persona: str
    target: str
    sample: int


def row_key(chat_seed_id: str, target: str, sample: int) -> str:
    return f"{chat_seed_id}/{target}/{sample}"


def make_opening(seed: ChatSeed) -> UserTurn:
    """Turn 1: text and labels are the seed's (Algorithm 1, line 2). Nothing has been reached yet."""
    gold = Gold(
        explicit=seed.initial_explicit_intent or "",
        latent=seed.initial_latent_intent or "",
        emotion=seed.initial_emotion or "",
    )
    return UserTurn(seed.first_query or "", gold, "not_started")
