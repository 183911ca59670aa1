"""What characters are designed from: attributes drawn from the pool (DEMO section 3.2, persona design), and a text that
inspires each. Each is drawn from a seed of its own, so asking for more of them changes none of the first.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Literal

from pydantic import Field

from tasks.foundation.ids import content_id, seed_of
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables import Table
from tasks.foundation.tables.personas import BigFive, Diversity
from tasks.foundation.tables.types import Int32, Language, Row
from tasks.personas.inspirations import Inspiration
from tasks.personas.people import GENDERS, Person

TAXONOMIES = ("attributes", "age_band", "gender", "big_five", "level")
LEVELS = taxonomy("level").names


class CharacterBrief(Row):
    """What a character is designed from."""

    character_id: str = Field(description="content id over language and all that follows")
    language: Language = Field(description="language the character is described in")
    persona_id: str | None = Field(description="the inspiring persona; null: inspired by another text")
    inspired_by: str = Field(
        description="where the inspiring text is from: a pool, or a file or dataset and its line or row"
    )
    inspiration: str = Field(description="its beginning; of a persona without who they are")
    name: str = Field(description="full name, drawn by culture, gender and year of birth")
    given_name: str = Field(description="the given part of it")
    origin: str = Field(description="the culture it was drawn from")
    gender: Literal["M", "F"] = Field(description="gender")
    age: Int32 = Field(description="age in years, within the band")
    age_band: str = Field(description="a band of configs/taxonomies/age_band.yaml")
    big_five: BigFive = Field(description="High or Low for each trait")
    moral_values: list[str] = Field(description="one or two")
    personal_values: list[str] = Field(description="two")
    decision_style: str = Field(description="one of the attribute pool")
    social_skill: str = Field(description="one of the attribute pool")


BRIEFS = Table("character_briefs", CharacterBrief, ("character_id",), "one row per character to design")


def draw_brief(language: Language, number: int, person: Person, inspiration: Inspiration, seed: int) -> CharacterBrief:
    """The brief of character `number` of a language, who is `person`."""
    rng = random.Random(seed_of(seed, "character", language, number))
    drawn = {
        "persona_id": inspiration.persona_id,
        "inspired_by": inspiration.where,
        "inspiration": inspiration.text,
        **asdict(person),
        "big_five": {trait: rng.choice(LEVELS) for trait in BigFive.model_fields},
        "moral_values": _sample(rng, "moral_value", rng.choice((1, 2))),
        "personal_values": _sample(rng, "personal_value", 2),
        "decision_style": _sample(rng, "decision_style", 1)[0],
        "social_skill": _sample(rng, "social_skill", 1)[0],
    }
    character_id = content_id("character", language, number, drawn)
    return CharacterBrief.model_validate({"character_id": character_id, "language": language, **drawn})


def _sample(rng: random.Random, group: str, count: int) -> list[str]:
    return rng.sample([label.name for label in taxonomy("attributes").group(group)], count)


def pool_values() -> set[tuple[str, str]]:
    """Every value that a brief can draw, as (attribute, value)."""
    labels = taxonomy("attributes").labels
    return {
        *(("gender", gender) for gender in GENDERS),
        *(("age_band", label.name) for label in taxonomy("age_band").labels),
        *((trait, level) for trait in BigFive.model_fields for level in LEVELS),
        *((str(label.group), label.name) for label in labels),
    }


def values_of(character: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a row of `characters` has of the pool."""
    yield from ((name, character[name]) for name in ("gender", "age_band", "decision_style", "social_skill"))
    yield from character["big_five"].items()
    yield from (("moral_value", value) for value in character["moral_values"])
    yield from (("personal_value", value) for value in character["personal_values"])


def measure_coverage(characters: Iterable[Mapping[str, Any]], language: Language) -> Diversity:
    """The share of the pool's values that at least one of a language's characters has; None without a character."""
    pool, used, n = pool_values(), set[tuple[str, str]](), 0
    for character in characters:
        used.update(values_of(character))
        n += 1
    return Diversity(
        table_name="characters",
        language=language,
        statistic="attribute_coverage",
        value=len(used & pool) / len(pool) if n else None,
        n=n,
        n_of=len(pool),
    )
