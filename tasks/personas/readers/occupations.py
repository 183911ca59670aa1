"""Occupations → the 23 major groups of the US Standard Occupational Classification (configs/occupations.yaml)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tasks.foundation import CONFIGS
from tasks.foundation.errors import ConfigError
from tasks.foundation.settings.strict_yaml import read_config

OCCUPATIONS = CONFIGS / "occupations.yaml"
OTHER = "other"


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid")

    group: str
    words: list[str]


class _MappingFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    description: str
    groups: dict[str, str]
    exact: dict[str, list[str]]
    rules: list[_Rule]


@dataclass(frozen=True, slots=True)
class OccupationMapping:
    """`exact` occupations first, then the first of `rules` whose pattern occurs; else `other`."""

    groups: frozenset[str]
    exact: dict[str, str]
    rules: tuple[tuple[re.Pattern[str], str], ...]

    def group_of(self, occupation: str | None) -> str | None:
        """The group of an occupation in words or snake_case; `other` when none fits, None for none given."""
        if occupation is None or not occupation.strip():
            return None
        slug = _slug(occupation)
        if slug in self.groups or slug == OTHER:
            return slug
        if slug in self.exact:
            return self.exact[slug]
        return next((group for pattern, group in self.rules if pattern.search(slug)), OTHER)


@cache
def occupation_mapping(path: Path = OCCUPATIONS) -> OccupationMapping:
    """The mapping file, checked; ConfigError when it names an unknown group or an occupation twice."""
    file = read_config(path, _MappingFile, "occupation mapping")
    named = [*file.exact, *(rule.group for rule in file.rules)]
    if unknown := sorted(set(named) - set(file.groups)):
        raise ConfigError(f"occupation mapping {path}: {unknown} are not among its groups {sorted(file.groups)}")
    pairs = [(_slug(occupation), group) for group, occupations in file.exact.items() for occupation in occupations]
    if len(dict(pairs)) != len(pairs):
        twice = sorted({slug for slug, _ in pairs if [s for s, _ in pairs].count(slug) > 1})
        raise ConfigError(f"occupation mapping {path}: {twice} are listed more than once")
    rules = tuple((_pattern(rule.words), rule.group) for rule in file.rules)
    return OccupationMapping(frozenset(file.groups), dict(pairs), rules)


@lru_cache(maxsize=10_000)
def occupation_group(occupation: str | None) -> str | None:
    """The group of an occupation by the mapping file; `other` when none fits, None for none given."""
    return occupation_mapping().group_of(occupation)


def describe_coverage(groups: Mapping[str | None, int], others: Mapping[str, int], most: int = 5) -> str:
    """How many candidates have a group, as a line for the log; `others` are the occupations that fit none.

    >>> describe_coverage({"sales": 6, "other": 2, None: 2}, {"lighthouse_keeper": 2})
    "occupations: 6 of 8 fall into a group of configs/occupations.yaml (75.0 %), 2 into none ('other', most often
    lighthouse_keeper: 2); 2 candidates have none"
    """
    given = sum(count for group, count in groups.items() if group is not None)
    other = groups.get(OTHER, 0)
    share = f" ({100 * (given - other) / given:.1f} %)" if given else ""
    commonest = sorted(others, key=lambda occupation: (-others[occupation], occupation))[:most]
    shown = ", most often " + ", ".join(f"{name[:60]}: {others[name]}" for name in commonest) if commonest else ""
    return (
        f"occupations: {given - other} of {given} fall into a group of configs/{OCCUPATIONS.name}{share}, "
        f"{other} into none ('other'{shown}); {groups.get(None, 0)} candidates have none"
    )


def _slug(occupation: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", occupation.lower()).strip("_")


def _pattern(words: list[str]) -> re.Pattern[str]:
    """Any of the words, whole, in singular or plural; a word with a final * may go on."""
    stems = "|".join(_slug(word) + ("[a-z]*" if word.endswith("*") else "") for word in words)
    return re.compile(f"(?:^|_)(?:{stems})(?:s|es)?(?:_|$)")
