"""The one request of a seed: what the seeder sees, and the reply it is checked against."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import create_model

from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.texts.replies import Goal, Label, Message, ReplyModel, asked, list_names

EMOTION: Any = asked("how they feel as they write first", "写第一条消息时的感受")
LATENT: Any = asked("what they need without saying so", "没有说出口的需要")
EXPLICIT: Any = asked("what they ask for", "说出口的请求")


class SeedReply(ReplyModel):
    """What `seed_reply` makes, without the bounds on its labels."""

    topic: Label = asked("one concrete matter in their life", "生活中的一件具体的事")
    final_intent: Goal = asked("what they must have got out of the chat", "聊天结束时必须得到什么")
    initial_emotion: str = EMOTION
    initial_latent_intent: str = LATENT
    initial_explicit_intent: str = EXPLICIT
    first_query: Message = asked("the first message that they type", "他发出的第一条消息")


@cache
def make_seed_reply() -> type[SeedReply]:
    """A seed whose labels are those of the taxonomies. The fields keep the order in which they are decided."""
    labels: dict[str, Any] = {
        "initial_emotion": (list_names("user_emotion"), EMOTION),
        "initial_latent_intent": (list_names("latent_intent"), LATENT),
        "initial_explicit_intent": (list_names("explicit_intent"), EXPLICIT),
    }
    return create_model("Seed", __base__=SeedReply, **labels)


class SeedInputs(Inputs):
    emotions: list[str]
    latent_intents: list[str]
    explicit_intents: list[str]
    persona: str


SEED = Prompt("chatseeds/seed", inputs=SeedInputs, reply=make_seed_reply)


def make_seed_inputs(persona: str, language: str) -> SeedInputs:
    """What the seeder sees of a persona."""
    return SeedInputs(
        emotions=taxonomy("user_emotion").describe(language),
        latent_intents=taxonomy("latent_intent").describe(language),
        explicit_intents=taxonomy("explicit_intent").describe(language),
        persona=persona,
    )
