"""What settings are made of: numbers in bounds, languages, lists without repeats, and the mark of a knob."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from tasks.foundation.tables.types import Language
from tasks.foundation.texts.languages import language_named


class Knob:
    """Marks a setting that cannot change the data, and so is no part of a fingerprint: `Annotated[…, Knob]`. A comment
    beside it says why."""


class HowMany:
    """Marks how many rows a stage is to work on, whatever it reads; a dry run works on fewer."""


class AtMost:
    """Marks how many rows a stage keeps of those it is given; a dry run keeps as many of as many fewer."""


Share = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Temperature = Annotated[float, Field(ge=0, le=2)]
IfNone = Annotated[str, Field(pattern=r"^(fail|keep [1-9][0-9]*)$")]
"""What to do where nothing is good enough: stop, or (for trying things out) keep so many all the same."""


def _named(value: object) -> object:
    """A language as the tables have it, however it is written; what names none is left for the check to refuse."""
    return (language_named(value) or value) if isinstance(value, str) else value


InLanguage = Annotated[Language, BeforeValidator(_named)]
"""A language that prompts are written in: `en`, `EN`, `en-US`, `English`; `zh`, `zh-Hans`, `中文`."""


def kept_by(if_none: str) -> int:
    """`"keep 3"` → 3, `"fail"` → 0."""
    return 0 if if_none == "fail" else int(if_none.removeprefix("keep "))


def _each_once(entries: list[Any]) -> list[Any]:
    twice = dict.fromkeys(str(entry) for entry in entries if entries.count(entry) > 1)
    if twice:
        raise ValueError(f"expected each once, found {', '.join(twice)} again")
    return entries


EachOnce = AfterValidator(_each_once)
Targets = Annotated[list[str], Field(min_length=1), EachOnce]
