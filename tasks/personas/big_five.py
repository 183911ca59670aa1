"""Big Five levels of source rows that have them (the public Nemotron release has none)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.foundation.tables.personas import BigFive
from tasks.personas.literals import parse_literal
from tasks.personas.texts import text_of

TRAITS = ("openness", "conscientiousness", "extraversion", "agreeableness", "neuroticism")
CONTAINERS = ("big_five", "ocean", "ocean_scores", "big_five_traits", "ocean_traits")
LEVEL_KEYS = ("label", "level", "value", "t_score", "score")


def big_five_of(row: Mapping[str, Any]) -> BigFive | None:
    """Levels in the source's own words, from trait columns or one column that holds all; None unless all five are."""
    for scope in _scopes(row):
        levels = {trait: _level(scope.get(trait)) for trait in TRAITS}
        if all(levels.values()):
            return BigFive.model_validate(levels)
    return None


def _scopes(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if TRAITS[0] in row:
        yield row
    yield from (_object(row[name]) for name in CONTAINERS if row.get(name))


def _level(value: Any) -> str | None:
    """`high` and 62.5 are levels themselves; an object holds one as its label or score."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _object(value)
    if isinstance(value, Mapping):
        return next((level for key in LEVEL_KEYS if (level := text_of(value.get(key)))), None)
    return text_of(value)


def _object(value: Any) -> Mapping[str, Any]:
    found = parse_literal(value, "the Big Five scores") if isinstance(value, str) else value
    return found if isinstance(found, Mapping) else {}
