"""Which dialogues are worth distilling: of a certain length, and without what configs/dialogue_filters.yaml lists."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from tasks.foundation import CONFIGS
from tasks.foundation.errors import ConfigError
from tasks.foundation.settings.sections import ScenesSection
from tasks.foundation.settings.strict_yaml import read_config
from tasks.foundation.sources import Unwanted
from tasks.scenes.readers import BY_SHAPE

FILTERS = CONFIGS / "dialogue_filters.yaml"


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(pattern=r"^[a-z][a-z_]{1,40}$")]
    patterns: Annotated[list[str], Field(min_length=1)]


class _FiltersFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    description: str
    rules: list[_Rule]


@dataclass(frozen=True, slots=True)
class Rules:
    """Names and patterns in the order in which they are tried."""

    patterns: tuple[tuple[str, str], ...]

    def search(self, texts: Sequence[str]) -> list[Unwanted | None]:
        """For each text the first rule that leaves it out and what it found there; None for a text that is wanted.

        Texts are folded (see `minhash.fold`); all are searched at once, which takes a few microseconds each.
        """
        series = pl.Series(texts, dtype=pl.String)
        found: list[Unwanted | None] = [None] * len(texts)
        for name, pattern in self.patterns:
            hits = series.str.contains(pattern).arg_true()
            said = series.gather(hits).str.extract(f"({pattern})", 1).to_list()
            for row, words in zip(hits.to_list(), said, strict=True):
                if found[row] is None:
                    found[row] = Unwanted(name, f"expected talk between two people, found {words.strip()[:60]!r}")
        return found


def refuse_length(texts: Sequence[str], section: ScenesSection) -> None:
    """Unwanted for a dialogue with too few turns, or too many of them or of characters."""
    if len(texts) < section.min_turns:
        raise Unwanted("too_short", f"expected at least {section.min_turns} turns, found {len(texts)}")
    length = sum(map(len, texts))
    if len(texts) > section.max_turns or length > section.max_characters:
        raise Unwanted(
            "too_long",
            f"expected at most {section.max_turns} turns and {section.max_characters} characters, "
            f"found {len(texts)} and {length}",
        )


@cache
def filter_rules(path: Path = FILTERS) -> Rules:
    """The rules of the filter file, checked; ConfigError for a name given twice or a pattern that is none."""
    file = read_config(path, _FiltersFile, "dialogue filters")
    names = Counter([*BY_SHAPE, *(rule.name for rule in file.rules)])
    if twice := [name for name, count in names.items() if count > 1]:
        raise ConfigError(f"dialogue filters {path}: expected names of their own, found {', '.join(twice)} again")
    for rule in file.rules:
        for pattern in rule.patterns:
            _check(pattern, rule.name, path)
    return Rules(tuple((rule.name, "|".join(f"(?:{each})" for each in rule.patterns)) for rule in file.rules))


def _check(pattern: str, rule: str, path: Path) -> None:
    try:
        re.compile(pattern)
        empty = pl.Series([""]).str.contains(pattern).item()
    except (re.error, pl.exceptions.ComputeError) as error:
        raise ConfigError(f"dialogue filters {path}, rule {rule!r}: {pattern!r} is no pattern: {error}") from None
    if empty:
        raise ConfigError(f"dialogue filters {path}, rule {rule!r}: {pattern!r} would leave out every dialogue")
