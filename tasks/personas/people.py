"""Who characters are before anybody is designed: gender and age, a culture, and a name that fits all three.

Names come from configs/names.yaml. Each culture deals its combinations of given and family name by turns, in a seeded
order, so that none comes again before those of its generation are used up; what one character is dealt does not change
when more are asked for.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from math import lcm
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tasks.foundation import CONFIGS
from tasks.foundation.ids import seed_of
from tasks.foundation.settings.strict_yaml import read_config
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.types import Language

NAMES = CONFIGS / "names.yaml"
GENDERS = ("M", "F")
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


def _split(text: object) -> object:
    return tuple(dict.fromkeys(text.split())) if isinstance(text, str) else text


Words = Annotated[tuple[str, ...], BeforeValidator(_split), Field(min_length=1)]
"""Names in one text with blanks between them."""


class Generation(BaseModel):
    """Given names by gender, of those born up to a year."""

    model_config = ConfigDict(extra="forbid")

    until: int | None = None
    M: Words
    F: Words


class Culture(BaseModel):
    model_config = ConfigDict(extra="forbid")

    language: Language
    weight: Annotated[int, Field(ge=1)]
    name: str
    families: Words
    generations: Annotated[list[Generation], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_in_order(self) -> Self:
        *earlier, last = [generation.until for generation in self.generations]
        known = [year for year in earlier if year is not None]
        if last is not None or len(known) < len(earlier) or known != sorted(set(known)):
            raise ValueError(f"{self.name}: expected `until` rising and left out in the last generation only")
        return self

    def find_generation(self, born: int) -> int:
        """The place of the generation of somebody born in a year."""
        return next(place for place, each in enumerate(self.generations) if each.until is None or born <= each.until)

    def join(self, given: str, family: str) -> str:
        """The full name as the language writes it."""
        return family + given if self.language == "zh" else f"{given} {family}"


class NamesFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    description: str
    year: int
    cultures: list[Culture]
    avoid: list[str] = []

    @model_validator(mode="after")
    def _has_each_language(self) -> Self:
        if missing := set(LANGUAGES) - {culture.language for culture in self.cultures}:
            raise ValueError(f"expected a culture of each language, found none of {', '.join(sorted(missing))}")
        return self


@cache
def read_names(path: Path = NAMES) -> NamesFile:
    """The names, checked; ConfigError for a file that is missing or malformed."""
    return read_config(path, NamesFile, "names")


@dataclass(frozen=True, slots=True)
class Person:
    """`origin`: the culture, as the designer is told of it."""

    gender: str
    age: int
    age_band: str
    origin: str
    given_name: str
    name: str


def draw_people(language: Language, wanted: int, seed: int) -> list[Person]:
    """The first `wanted` people of a language."""
    dealer = NameDealer(read_names(), seed)
    return [_draw_person(language, number, dealer, seed) for number in range(wanted)]


def _draw_person(language: Language, number: int, dealer: NameDealer, seed: int) -> Person:
    rng = random.Random(seed_of(seed, "person", language, number))
    bands = taxonomy("age_band").labels
    band = rng.choices(bands, weights=[BAND_WEIGHTS.get(band.name, 1) for band in bands])[0]
    age = rng.randint(band.low or 0, band.high or band.low or 0)
    gender = rng.choice(GENDERS)
    cultures = [culture for culture in dealer.names.cultures if culture.language == language]
    culture = rng.choices(cultures, weights=[each.weight for each in cultures])[0]
    given, name = dealer.deal(culture, gender, age)
    return Person(gender, age, band.name, culture.name, given, name)


class NameDealer:
    """Deals names, each full name as rarely as the lists allow."""

    def __init__(self, names: NamesFile, seed: int) -> None:
        self.names = names
        self._seed = seed
        self._uses: Counter[str] = Counter()
        self._dealt: dict[tuple[str, str, int], Iterator[tuple[int, str, str]]] = {}

    def deal(self, culture: Culture, gender: str, age: int) -> tuple[str, str]:
        """The given and the full name of somebody of a culture, gender and age."""
        generation = culture.find_generation(self.names.year - age)
        key = (culture.name, gender, generation)
        if key not in self._dealt:
            self._dealt[key] = self._take_turns(culture, gender, generation)
        for turn, given, name in self._dealt[key]:
            if self._uses[name] <= turn:
                self._uses[name] += 1
                return given, name
        raise AssertionError("turns do not end")

    def _take_turns(self, culture: Culture, gender: str, generation: int) -> Iterator[tuple[int, str, str]]:
        """How often all of them were there before, given and full name, without end."""
        given_names = self._shuffle(getattr(culture.generations[generation], gender), culture, gender, generation)
        families = self._shuffle(culture.families, culture, gender, generation)
        # Two places that step together meet in each pair once, if one slips whenever both are back at their start.
        round_trip = lcm(len(given_names), len(families))
        pairs = len(given_names) * len(families)
        for step in count():
            given = given_names[step % len(given_names)]
            name = culture.join(given, families[(step + step // round_trip) % len(families)])
            if name not in self.names.avoid:
                yield step // pairs, given, name

    def _shuffle(self, names: Sequence[str], culture: Culture, gender: str, generation: int) -> list[str]:
        rng = random.Random(seed_of(self._seed, "names", culture.name, gender, generation, len(names)))
        return rng.sample(names, len(names))
