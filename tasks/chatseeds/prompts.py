"""The one request of a seed: what the seeder sees, and the reply it is checked against."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy


class SeedReply(BaseModel):
    """What `seed_reply` makes, without the bounds on its labels."""

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True)

    topic: str = Field(min_length=1, max_length=120)
    final_intent: str = Field(min_length=1, max_length=300)
    initial_emotion: str
    initial_latent_intent: str
    initial_explicit_intent: str
    first_query: str = Field(min_length=1, max_length=400)


@cache
def make_seed_reply() -> type[SeedReply]:
    """A seed whose labels are those of the taxonomies. The fields keep the order in which they are decided."""
    labels: dict[str, Any] = {
        "initial_emotion": (_list_names("user_emotion"), ...),
        "initial_latent_intent": (_list_names("latent_intent"), ...),
        "initial_explicit_intent": (_list_names("explicit_intent"), ...),
    }
    return create_model("Seed", __base__=SeedReply, **labels)


def _list_names(taxonomy_name: str) -> Any:
    return Literal[taxonomy(taxonomy_name).names]


class SeedInputs(Inputs):
    emotions: list[str]
    latent_intents: list[str]
    explicit_intents: list[str]
    persona: str


SEED: Prompt[SeedInputs, SeedReply] = Prompt("chatseeds/seed", inputs=SeedInputs)


def make_seed_inputs(persona: str, language: str) -> SeedInputs:
    """What the seeder sees of a persona."""
    return SeedInputs(
        emotions=_list_labels("user_emotion", language),
        latent_intents=_list_labels("latent_intent", language),
        explicit_intents=_list_labels("explicit_intent", language),
        persona=persona,
    )


def _list_labels(taxonomy_name: str, language: str) -> list[str]:
    """'Hope: expecting something good'; in Chinese the stored English name with the Chinese one."""
    labels = taxonomy(taxonomy_name).labels
    return [label.shown("zh") if language == "zh" else f"{label.name}: {label.definition}" for label in labels]
