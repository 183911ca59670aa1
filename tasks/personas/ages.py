"""Ages as sources write them, and the age buckets of the strata."""

from __future__ import annotations

import re
from typing import Any

from tasks.foundation.sources import BadRow

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


def age_told(value: Any) -> int | None:
    """As `parse_age`, where a model wrote the age: None, too, for what is neither text nor number."""
    return parse_age(value) if isinstance(value, str | int | float) else None


def bucket_told(value: Any) -> str | None:
    """The bucket of an age, or of a band that falls into one ("25-34", "65+", "under 18"); None for any other."""
    if not isinstance(value, str):
        return age_bucket(age_told(value))
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
