"""What source personas hold, from the many ways in which it is written: texts, literals, ages, sexes, trait levels.

Texts may hold a Python literal or JSON; nothing is ever evaluated.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tasks.foundation.settings.strict_yaml import GivenTwice, build_object
from tasks.foundation.sources import BadRow
from tasks.foundation.sources.formats import is_nested_beyond
from tasks.foundation.sources.values import one_line, unless_blank
from tasks.foundation.tables.personas import BigFive

LONGEST = 200_000
"""Characters of a literal that are still parsed; the longest of the corpora have about 6,000."""
DEEPEST = 20
"""Brackets within one another; the parser's own stack ends somewhere beyond a hundred."""

_TEXT = r"(?:'[^'\\\n\r]*'|\"[^\"\\\n\r]*\")"
_TEXTS = re.compile(_TEXT)
_PLAIN_LIST = re.compile(rf"\[(?:{_TEXT}(?:, {_TEXT})*)?\]")
"""A list as Python prints one of simple texts: what nearly every row holds, read without the parser."""


class _GivenTwice(BadRow):
    """An object that has a key again with another value."""


def parse_literal(text: str, column: str) -> Any:
    """The value of a Python literal as JSON has it (texts, numbers, true, false, null, lists, objects).

    Read with `ast.literal_eval` only, within limits of size and depth. BadRow for anything else: a call, a name, an
    operation, bytes, a set, a key that is no text, half a surrogate pair.
    """
    text = text.strip()
    if len(text) > LONGEST or _depth(text) > DEEPEST:
        raise BadRow(
            f"expected at most {LONGEST} characters and {DEEPEST} levels in {column}, "
            f"found {len(text)} and {_depth(text)}"
        )
    try:
        tree = ast.parse(text, mode="eval")
        _refuse_twice(tree, column)
        return _as_json(ast.literal_eval(tree))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise BadRow(f"expected a Python literal in {column}, found {text[:80]!r}") from None


def _refuse_twice(tree: ast.Expression, column: str) -> None:
    for node in ast.walk(tree):
        values: dict[str, set[str]] = {}
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant):
                    values.setdefault(str(key.value), set()).add(ast.dump(value))
        if twice := [key for key, found in values.items() if len(found) > 1]:
            raise _GivenTwice(f"expected each key once in {column}, found that {twice[0]} is given twice")


def parse_list(value: Any, column: str) -> tuple[str, ...]:
    """A list of texts, given as such or as the text of a literal; empty for what is absent."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    if isinstance(value, str) and len(value) <= LONGEST and _PLAIN_LIST.fullmatch(value):
        items: Any = [text[1:-1] for text in _TEXTS.findall(value)]
    else:
        items = parse_literal(value, column) if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str | int | float) for item in items):
        raise BadRow(f"expected a list of texts in {column}, found {str(value)[:80]!r}")
    return tuple(text for item in items if (text := one_line(str(item))))


def parse_object(value: Any, column: str) -> dict[str, Any]:
    """An object, given as such, as JSON or as a Python literal; BadRow for anything else."""
    found = _load_object(value, column) if isinstance(value, str) else value
    if not isinstance(found, dict) or not found:
        raise BadRow(f"expected a JSON object in {column}, found {str(value)[:80]!r}")
    if is_nested_beyond(DEEPEST, found):
        raise BadRow(f"expected at most {DEEPEST} levels in {column}, found more")
    return found


def _load_object(text: str, column: str) -> Any:
    if len(text) > LONGEST:
        raise BadRow(f"expected at most {LONGEST} characters in {column}, found {len(text)}")
    try:
        return _as_json(json.loads(text, object_pairs_hook=build_object))
    except GivenTwice as error:
        raise _GivenTwice(f"expected each key once in {column}, found that {error}") from None
    except (ValueError, TypeError, RecursionError):
        pass
    try:
        return parse_literal(text, column)
    except _GivenTwice:
        raise
    except BadRow:
        return None


def _as_json(value: Any) -> Any:
    """The value with tuples as lists; ValueError for what JSON and our tables do not have."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) >= 2**63:
            raise ValueError("a number of more than 64 bits")
        return value
    if isinstance(value, str):
        value.encode("utf-8")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is no number of JSON")
        return value
    if isinstance(value, list | tuple):
        return [_as_json(inner) for inner in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {_as_json(key): _as_json(inner) for key, inner in value.items()}
    raise ValueError(f"JSON has no {type(value).__name__}")


def _depth(text: str) -> int:
    """Brackets open at once, at most; those inside texts count too, which errs on the safe side."""
    depth = deepest = 0
    for bracket in re.findall(r"[\[({\])}]", text):
        depth += 1 if bracket in "[({" else -1
        deepest = max(deepest, depth)
    return deepest


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
