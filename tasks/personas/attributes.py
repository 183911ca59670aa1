"""Design briefs of characters, drawn from the attribute pool (DEMO section 3.2, persona design).

Each character is drawn from a seed of its own, so asking for more of them changes none of the first.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from tasks.foundation.ids import content_id, seed_of
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables import Table
from tasks.foundation.tables.personas import BigFive
from tasks.foundation.tables.types import Int32, Language, Row
from tasks.personas.inspirations import Inspiration

TAXONOMIES = ("attributes", "age_band")
BAND_WEIGHTS = {
    "Childhood": 1,
    "Adolescence": 2,
    "Youth": 5,
    "Adulthood": 7,
    "Middle age": 6,
    "Old age": 3,
    "Advanced age": 2,
}
"""Ours: every band occurs, adults most often, as in the dialogues that scenes come from. Other bands weigh 1."""
INSPIRATION_CHARACTERS = 320
"""Of the inspiring text; it is to inspire, and tiny models pay for every word."""


_IDENTITY = re.compile(
    r"An? (?:\d+-year-old )?(?:\w+ )?(?:man|woman|person)(?:, [^.]*)?\.(?:\s|$)"
    r"|(?:Name|Age|Gender|Sex|Sexual orientation|Race\b[^:.]*|Nationality|Birthplace|Marital status): [^.]*\.(?:\s|$)"
)


class CharacterBrief(Row):
    """What a character is designed from."""

    character_id: str = Field(description="content id over language and all that follows")
    language: Language = Field(description="language the character is described in")
    persona_id: str | None = Field(description="the inspiring persona; null: inspired by another text")
    inspired_by: str = Field(description="where the inspiring text is from: a pool, or a file and its line")
    inspiration: str = Field(description="its beginning; of a persona without name, age, sex and origin")
    gender: Literal["M", "F"] = Field(description="gender")
    age: Int32 = Field(description="age in years, within the band")
    age_band: str = Field(description="a band of configs/taxonomies/age_band.yaml")
    big_five: BigFive = Field(description="High or Low for each trait")
    moral_values: list[str] = Field(description="one or two")
    personal_values: list[str] = Field(description="two")
    decision_style: str = Field(description="one of the attribute pool")
    social_skill: str = Field(description="one of the attribute pool")


BRIEFS = Table("character_briefs", CharacterBrief, ("character_id",), "one row per character to design")


def draw_briefs(
    language: Language, count: int, inspirations: Sequence[Sequence[Inspiration]], seed: int
) -> list[CharacterBrief]:
    """`count` briefs, inspired by the pools (in rank order) and files by turns. None without any inspiration."""
    if not inspirations:
        return []
    return [draw_brief(language, number, inspiring(language, number, inspirations), seed) for number in range(count)]


def inspiring(language: Language, number: int, inspirations: Sequence[Sequence[Inspiration]]) -> Inspiration:
    """The text that inspires a character. Of a pool, which both languages use, English takes the even ranks and
    Chinese the odd ones."""
    offset = 0 if language == "en" else 1
    turn, place = number // len(inspirations), (number + offset) % len(inspirations)
    texts = inspirations[place]
    is_pool = texts[0].persona_id is not None
    return texts[(2 * turn + offset if is_pool else turn) % len(texts)]


def draw_brief(language: Language, number: int, inspiration: Inspiration, seed: int) -> CharacterBrief:
    """The brief of character `number` of a language."""
    rng = random.Random(seed_of(seed, "character", language, number))
    bands = taxonomy("age_band").labels
    band = rng.choices(bands, weights=[BAND_WEIGHTS.get(band.name, 1) for band in bands])[0]
    is_persona = inspiration.persona_id is not None
    text = without_identity(inspiration.text) if is_persona else inspiration.text
    drawn = {
        "persona_id": inspiration.persona_id,
        "inspired_by": inspiration.where,
        "inspiration": beginning(text, INSPIRATION_CHARACTERS),
        "gender": rng.choice(("M", "F")),
        "age": rng.randint(band.low or 0, band.high or band.low or 0),
        "age_band": band.name,
        "big_five": {trait: rng.choice(("High", "Low")) for trait in BigFive.model_fields},
        "moral_values": _sample(rng, "moral_value", rng.choice((1, 2))),
        "personal_values": _sample(rng, "personal_value", 2),
        "decision_style": _sample(rng, "decision_style", 1)[0],
        "social_skill": _sample(rng, "social_skill", 1)[0],
    }
    character_id = content_id("character", language, number, drawn)
    return CharacterBrief.model_validate({"character_id": character_id, "language": language, **drawn})


def without_identity(description: str) -> str:
    """A description without its sentences on age, sex, origin and name, which the drawn attributes replace.

    >>> without_identity("A 41-year-old man, living in Dover, DE. He keeps bees. Name: Al Fox. Hobbies: chess.")
    'He keeps bees. Hobbies: chess.'
    """
    return _IDENTITY.sub("", description).strip() or description


def beginning(text: str, most: int) -> str:
    """The first sentences of `text` that fit into `most` characters, or its first words where none does.

    >>> beginning("She sings. She dances.", 15)
    'She sings.'
    """
    if len(text) <= most:
        return text
    cut = text[:most]
    ends = [match.end() for match in re.finditer(r"[.!?](?=\s)|[。！？]", cut)]
    return cut[: ends[-1]] if ends else cut.rsplit(" ", 1)[0]


def _sample(rng: random.Random, group: str, count: int) -> list[str]:
    return rng.sample([label.name for label in taxonomy("attributes").group(group)], count)
