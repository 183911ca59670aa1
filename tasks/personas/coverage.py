"""How much of the attribute pool the characters show: genders, age bands, trait levels, values, styles, skills."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.personas import BigFive, Character, Diversity
from tasks.foundation.tables.types import Language

GENDERS = ("M", "F")
LEVELS = ("High", "Low")


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
    yield "gender", character.gender
    yield "age_band", character.age_band
    yield from ((trait, level) for trait, level in character.big_five.model_dump().items())
    yield from (("moral_value", value) for value in character.moral_values)
    yield from (("personal_value", value) for value in character.personal_values)
    yield "decision_style", character.decision_style
    yield "social_skill", character.social_skill


def coverage_row(characters: Sequence[Character], language: Language) -> Diversity:
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
