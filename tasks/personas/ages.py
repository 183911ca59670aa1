"""Ages as sources write them, and the age buckets of the strata."""

from __future__ import annotations

import re
from typing import Any

from tasks.foundation.sources import BadRow

OLDEST = 120
AGE_BUCKETS = ((0, "under 18"), (18, "18–24"), (25, "25–34"), (35, "35–44"), (45, "45–54"), (55, "55–64"), (65, "65+"))
"""Lowest age of each bucket; the upper bound is the next one's lowest."""

_BUCKETS = tuple([name for lowest, name in AGE_BUCKETS if lowest <= age][-1] for age in range(OLDEST + 1))
_NUMBER = re.compile(r"\s*[+-]?[\d.]*\s*")
_YEARS = re.compile(r"(\d{1,3})(?:\.0+)?(?:\s*(?:years?(?: old)?|岁))?", re.IGNORECASE)


def parse_age(value: Any) -> int | None:
    """Age in years; None when the source gives none.

    Raises BadRow for anything else than a whole number of years from 0 to 120 ("38" and "38 years old" are).
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    match = _YEARS.fullmatch(str(value).strip()) if isinstance(value, str | int | float) else None
    if match is None or isinstance(value, bool) or int(match[1]) > OLDEST:
        raise BadRow(f"expected an age of 0 to {OLDEST} whole years, found {str(value)[:40]!r}")
    return int(match[1])


def age_told(value: Any) -> int | None:
    """As `parse_age`, where a model wrote the age: None, too, for one in words or between two ("mid-30s", "34-36"), and
    for what is neither text nor number.

    A number that is no age is a BadRow all the same.
    """
    if not isinstance(value, str):
        return parse_age(value) if isinstance(value, int | float) else None
    a_number = _NUMBER.fullmatch(value) or _YEARS.fullmatch(value.strip())
    return parse_age(value) if a_number else None


def age_bucket(age: int | None) -> str | None:
    """The bucket of an age; None for no age."""
    return None if age is None else _BUCKETS[age]
