"""What source personas hold, from the many ways in which it is written: texts, ages, sexes, trait levels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tasks.foundation.sources import BadRow
from tasks.foundation.sources.literals import parse_literal
from tasks.foundation.sources.values import one_line, unless_blank
from tasks.foundation.tables.personas import BigFive


def text_of(value: Any) -> str | None:
    """The value on one line; None for what is absent (null, blank, "N/A") or no single value."""
    value = unless_blank(value)
    if isinstance(value, str):
        return one_line(value) or None
    if value is None or isinstance(value, bool | dict | list):
        return None
    whole = isinstance(value, float) and value.is_integer()
    return one_line(str(int(value) if whole else value)) or None


OLDEST = 120
AGE_BUCKETS = ((0, "under 18"), (18, "18–24"), (25, "25–34"), (35, "35–44"), (45, "45–54"), (55, "55–64"), (65, "65+"))
"""Lowest age of each bucket; the upper bound is the next one's lowest."""

_BUCKETS = tuple([name for lowest, name in AGE_BUCKETS if lowest <= age][-1] for age in range(OLDEST + 1))
_NUMBER = re.compile(r"[+-]?\d[\d.]*|[+-]?\.\d+")
_UNIT = r"(?:\s*(?:years?(?: old)?|yrs?|岁))?"
_YEARS = re.compile(rf"(\d{{1,3}})(?:\.0+)?{_UNIT}", re.IGNORECASE)
_FROM_TO = re.compile(rf"(\d{{1,3}})\s*(?:[-–—~至到]|to)\s*(\d{{1,3}}){_UNIT}", re.IGNORECASE)
_FROM = re.compile(r"(\d{1,3})\s*(?:\+|(?:and|or) (?:over|older|above)|岁?以上)", re.IGNORECASE)
_BELOW = re.compile(r"(?:under|below|<)\s*(\d{1,3})", re.IGNORECASE)


def parse_age(value: Any) -> int | None:
    """Age in years; None when the source gives none, or only in words or between two ("unknown", "mid-30s", "30-39").

    Raises BadRow for a number other than one of whole years from 0 to 120 ("38" and "38 years old" are), and for what
    is neither text nor number.
    """
    text = value.strip() if isinstance(value, str) else value
    if text is None or (isinstance(text, str) and not (_NUMBER.fullmatch(text) or _YEARS.fullmatch(text))):
        return None
    match = _YEARS.fullmatch(str(text)) if isinstance(text, str | int | float) else None
    if match is None or isinstance(value, bool) or int(match[1]) > OLDEST:
        raise BadRow(f"expected an age of 0 to {OLDEST} whole years, found {str(value)[:40]!r}")
    return int(match[1])


def age_or_none(value: Any) -> int | None:
    """As `parse_age`, where a model wrote the age: None, too, for what is neither text nor number."""
    return parse_age(value) if isinstance(value, str | int | float) else None


def bucket_of_age(value: Any) -> str | None:
    """The bucket of an age, or of a band that falls into one ("25-34", "65+", "under 18"); None for any other."""
    if not isinstance(value, str):
        return age_bucket(age_or_none(value))
    text = value.strip()
    if match := _FROM_TO.fullmatch(text):
        ends = int(match[1]), int(match[2])
    elif match := _FROM.fullmatch(text):
        ends = int(match[1]), OLDEST
    elif match := _BELOW.fullmatch(text):
        ends = 0, int(match[1]) - 1
    else:
        return age_bucket(parse_age(value))
    buckets = {_BUCKETS[age] for age in ends if 0 <= age <= OLDEST}
    return buckets.pop() if len(buckets) == 1 and ends[0] <= ends[1] <= OLDEST else None


def age_bucket(age: int | None) -> str | None:
    """The bucket of an age; None for no age."""
    return None if age is None else _BUCKETS[age]


SPELLINGS = {
    "Male": ("male", "m", "man", "男", "男性"),
    "Female": ("female", "f", "woman", "女", "女性"),
    "Nonbinary": ("nonbinary", "non-binary", "non binary", "非二元"),
}
_KNOWN = {spelling: name for name, spellings in SPELLINGS.items() for spelling in spellings}


def sex_of(value: Any) -> str | None:
    """Male, Female or Nonbinary, whatever the case; any other word as it is written; None for what is absent.

    >>> [sex_of(value) for value in ("female", "MALE", "Non-Binary", "Genderfluid ", "")]
    ['Female', 'Male', 'Nonbinary', 'Genderfluid', None]
    """
    text = text_of(value)
    return None if text is None else _KNOWN.get(text.casefold(), text)


TRAITS = ("openness", "conscientiousness", "extraversion", "agreeableness", "neuroticism")
CONTAINERS = ("big_five", "ocean", "ocean_scores", "big_five_traits", "ocean_traits")
LEVEL_KEYS = ("label", "level", "value", "t_score", "score")


def big_five_of(row: Mapping[str, Any]) -> BigFive | None:
    """Levels in the source's own words, from trait columns or one column that holds all; None unless all five are."""
    for scope in _trait_scopes(row):
        levels = {trait: _trait_level(scope.get(trait)) for trait in TRAITS}
        if all(levels.values()):
            return BigFive.model_validate(levels)
    return None


def _trait_scopes(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if TRAITS[0] in row:
        yield row
    yield from (_trait_object(row[name]) for name in CONTAINERS if row.get(name))


def _trait_level(value: Any) -> str | None:
    """`high` and 62.5 are levels themselves; an object holds one as its label or score."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _trait_object(value)
    if isinstance(value, Mapping):
        return next((level for key in LEVEL_KEYS if (level := text_of(value.get(key)))), None)
    return text_of(value)


def _trait_object(value: Any) -> Mapping[str, Any]:
    found = parse_literal(value, "the Big Five scores") if isinstance(value, str) else value
    return found if isinstance(found, Mapping) else {}
