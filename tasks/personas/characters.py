"""What characters are designed from: attributes drawn from the pool (DEMO section 3.2, persona design), and a text that
inspires each.

Each character is drawn from a seed of its own, so asking for more of them changes none of the first. It is inspired by
a persona of the pools, or by a line or paragraph of a local text file: DEMO prompts its designer with "diverse web
texts", and a file of any texts may stand beside the pools or, without a source, in their place. Which of its texts are
used depends on what they say, not on where they stand.
"""

from __future__ import annotations

import heapq
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from tasks.foundation.errors import SourceError
from tasks.foundation.ids import content_id, digest, seed_of
from tasks.foundation.settings.sections import InspirationSource
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.sources.values import one_line
from tasks.foundation.tables import Table
from tasks.foundation.tables.personas import BigFive, Character, Diversity
from tasks.foundation.tables.types import Int32, Language, Row
from tasks.foundation.texts.replies import cut_text

TAXONOMIES = ("attributes", "age_band")
GENDERS = ("M", "F")
LEVELS = ("High", "Low")
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
LONGEST_TEXT = 2000
"""Characters of an inspiring text that are looked at."""

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
    language: Language, count: int, inspirations: Sequence[Sequence[Inspiration]], seed: int, most: int
) -> list[CharacterBrief]:
    """`count` briefs, inspired by the pools (in rank order) and files by turns, by at most so many characters of a
    text. None without any inspiration."""
    if not inspirations:
        return []
    return [
        draw_brief(language, number, choose_inspiration(language, number, inspirations), seed, most)
        for number in range(count)
    ]


def choose_inspiration(language: Language, number: int, inspirations: Sequence[Sequence[Inspiration]]) -> Inspiration:
    """The text that inspires a character. Of a pool, which both languages use, English takes the even ranks and
    Chinese the odd ones."""
    offset = 0 if language == "en" else 1
    turn = number // len(inspirations)
    texts = inspirations[(number + offset) % len(inspirations)]
    is_pool = texts[0].persona_id is not None
    return texts[(2 * turn + offset if is_pool else turn) % len(texts)]


def draw_brief(language: Language, number: int, inspiration: Inspiration, seed: int, most: int) -> CharacterBrief:
    """The brief of character `number` of a language."""
    rng = random.Random(seed_of(seed, "character", language, number))
    bands = taxonomy("age_band").labels
    band = rng.choices(bands, weights=[BAND_WEIGHTS.get(band.name, 1) for band in bands])[0]
    is_persona = inspiration.persona_id is not None
    text = remove_identity(inspiration.text) if is_persona else inspiration.text
    drawn = {
        "persona_id": inspiration.persona_id,
        "inspired_by": inspiration.where,
        "inspiration": cut_text(text, most),
        "gender": rng.choice(GENDERS),
        "age": rng.randint(band.low or 0, band.high or band.low or 0),
        "age_band": band.name,
        "big_five": {trait: rng.choice(LEVELS) for trait in BigFive.model_fields},
        "moral_values": _sample(rng, "moral_value", rng.choice((1, 2))),
        "personal_values": _sample(rng, "personal_value", 2),
        "decision_style": _sample(rng, "decision_style", 1)[0],
        "social_skill": _sample(rng, "social_skill", 1)[0],
    }
    character_id = content_id("character", language, number, drawn)
    return CharacterBrief.model_validate({"character_id": character_id, "language": language, **drawn})


def remove_identity(description: str) -> str:
    """A description without its sentences on age, sex, origin and name, which the drawn attributes replace.

    >>> remove_identity("A 41-year-old man, living in Dover, DE. He keeps bees. Name: Al Fox. Hobbies: chess.")
    'He keeps bees. Hobbies: chess.'
    """
    return _IDENTITY.sub("", description).strip() or description


def _sample(rng: random.Random, group: str, count: int) -> list[str]:
    return rng.sample([label.name for label in taxonomy("attributes").group(group)], count)


@dataclass(frozen=True, slots=True)
class Inspiration:
    """One text; `where` is its pool, or its file and line (of a paragraph the first). `persona_id` is None for a
    text of a file."""

    text: str
    where: str
    persona_id: str | None = None


def inspirations_of_pools(pools: Mapping[str, Sequence[tuple[str, str]]]) -> list[list[Inspiration]]:
    """Of each pool with a persona its inspirations in rank order, pools by name; from (persona id, description)."""
    return [
        [Inspiration(text, pool, persona_id) for persona_id, text in pools[pool]]
        for pool in sorted(pools)
        if pools[pool]
    ]


def inspirations_of_files(
    sources: Sequence[InspirationSource], language: Language, wanted: int, seed: int
) -> list[list[Inspiration]]:
    """Of each file of a language the texts that are used: `wanted` different ones, or all there are."""
    return [
        draw_inspirations(read_inspirations(source), wanted, seed) for source in sources if source.language == language
    ]


def draw_inspirations(texts: Iterable[Inspiration], wanted: int, seed: int) -> list[Inspiration]:
    """The first `wanted` different texts of a seeded order; asking for more changes none of the first."""
    return heapq.nsmallest(wanted, _distinct(texts), key=lambda each: digest(seed, "personas.inspiration", each.text))


def _distinct(texts: Iterable[Inspiration]) -> Iterator[Inspiration]:
    seen: set[str] = set()
    for each in texts:
        key = digest(each.text)[:16]
        if key not in seen:
            seen.add(key)
            yield each


def read_inspirations(source: InspirationSource) -> Iterator[Inspiration]:
    """The texts of a file, each on one line. SourceError for a file that is not there, not UTF-8 or has none."""
    found = False
    for number, text in _read_texts(source.file, source.one_text_per == "paragraph"):
        found = True
        yield Inspiration(text, f"{source.file.name}:{number}")
    if not found:
        raise SourceError(
            f"personas.inspirations: expected a text a {source.one_text_per} in {source.file}, found none. "
            "Fill the file or take it out of the settings."
        )


def _read_texts(file: Path, by_paragraph: bool) -> Iterator[tuple[int, str]]:
    """(line number, text); a blank line ends a paragraph."""
    begun, parts = 0, list[str]()
    try:
        with file.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                text = one_line(line)[:LONGEST_TEXT]
                if text:
                    begun = begun or number
                    parts.append(text)
                if parts and not (by_paragraph and text):
                    yield begun, " ".join(parts)[:LONGEST_TEXT]
                    begun, parts = 0, []
    except UnicodeDecodeError as error:
        raise SourceError(
            f"personas.inspirations: expected UTF-8 text in {file}, found byte {error.object[error.start]:#04x} that "
            "is none. Convert the file."
        ) from None
    except OSError as error:
        raise SourceError(f"personas.inspirations: {file} cannot be read: {error.strerror or error}") from None
    if parts:
        yield begun, " ".join(parts)[:LONGEST_TEXT]


def pool_values() -> set[tuple[str, str]]:
    """Every value that a brief can draw, as (attribute, value)."""
    labels = taxonomy("attributes").labels
    return {
        *(("gender", gender) for gender in GENDERS),
        *(("age_band", label.name) for label in taxonomy("age_band").labels),
        *((trait, level) for trait in BigFive.model_fields for level in LEVELS),
        *((str(label.group), label.name) for label in labels),
    }


def values_of(character: Character) -> Iterator[tuple[str, str]]:
    """What a character has of the pool."""
    yield from ((name, getattr(character, name)) for name in ("gender", "age_band", "decision_style", "social_skill"))
    yield from character.big_five.model_dump().items()
    yield from (("moral_value", value) for value in character.moral_values)
    yield from (("personal_value", value) for value in character.personal_values)


def measure_coverage(characters: Sequence[Character], language: Language) -> Diversity:
    """The share of the pool's values that at least one of a language's characters has; None without a character."""
    pool = pool_values()
    used = {value for character in characters for value in values_of(character)} & pool
    return Diversity(
        table_name="characters",
        language=language,
        statistic="attribute_coverage",
        value=len(used) / len(pool) if characters else None,
        n=len(characters),
        n_of=len(pool),
    )
