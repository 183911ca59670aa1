"""Who somebody is, left out of what a source tells of them: the drawn attributes of a character replace it.

Fields are left out by their names, at any depth, and other fields where they repeat what one of those says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.foundation.sources.values import one_line

_FIELDS = frozenset(
    {
        *("state", "region", "province", "county", "zip", "zipcode", "home", "address", "origin", "heritage", "dob"),
        *("sexuality", "relationship_status"),
    }
)
_WORDS = frozenset(
    {
        *("name", "names", "surname", "nickname", "age", "sex", "gender", "pronouns", "orientation", "race", "ethnic"),
        *("ethnicity", "nationality", "citizenship", "birth", "birthplace", "birthday", "birthdate", "hometown"),
        *("marital", "city", "country", "location", "residence"),
    }
)
"""Words in the names of fields; those above are whole names, since others have the word too (`state_of_mind`)."""
_CHINESE = re.compile("[一-鿿]")
_LONG = 4
"""Letters from which on a value is the same in capitals; shorter ones may be words ("IN", "OR")."""


def drop_identity(persona: Mapping[str, Any]) -> dict[str, Any]:
    """The facts without name, age, sex, orientation, race, nationality, origin, marital status and place.

    >>> drop_identity({"name": "Ole Berg", "home": {"city": "Bergen"}, "hobbies": ["choir", "the Bergen run"]})
    {'hobbies': ['choir']}
    """
    told = sorted({part for value in _find_values(persona) for part in _split(*value)})
    pattern = re.compile("|".join(map(_match, told))) if told else None
    return {key: kept for key, value in persona.items() if (kept := _keep(key, value, pattern)) is not None}


def _is_identity(key: str) -> bool:
    plain = key.strip().lower()
    return plain in _FIELDS or not _WORDS.isdisjoint(re.findall("[a-z]+", plain))


def _find_values(value: Any, key: str = "", *, inside: bool = False) -> Iterator[tuple[str, str]]:
    """Every single value of a field of identity, with the name of its field."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _find_values(inner, name, inside=inside or _is_identity(name))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _find_values(inner, key, inside=inside)
    elif inside and value is not None and not isinstance(value, bool) and (text := one_line(str(value))):
        yield key, text


def _split(key: str, value: str) -> list[str]:
    """The value, its parts between commas and, of a name, each word."""
    parts = [value, *re.split(r"[,;，、；]", value), *(value.split() if "name" in key.lower() else ())]
    return [part for each in parts if len(part := each.strip(" .()")) > 1]


def _match(value: str) -> str:
    plain = re.escape(value)
    if _CHINESE.search(value):
        return plain
    return rf"(?<!\w){plain}(?!\w)" if len(value) < _LONG else rf"(?<!\w)(?i:{plain})(?!\w)"


def _keep(key: str, value: Any, pattern: re.Pattern[str] | None) -> Any:
    """What is kept of a field; None for nothing."""
    if _is_identity(key):
        return None
    if isinstance(value, Mapping):
        return {name: kept for name, inner in value.items() if (kept := _keep(name, inner, pattern)) is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [kept for inner in value if (kept := _keep("", inner, pattern)) is not None]
    return None if pattern is not None and pattern.search(one_line(str(value))) else value
