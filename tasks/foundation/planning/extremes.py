"""The least and the most that a model will write into a reply model: instances with short and with the longest values.

>>> from pydantic import Field
>>> class Sketch(BaseModel):
...     name: str = Field(min_length=1, max_length=4)
...     good: bool
>>> smallest(Sketch, "en"), largest(Sketch, "zh")
(Sketch(name='a', good=True), Sketch(name='字字字字', good=False))
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from tasks.foundation.llm.reply import schema_of

M = TypeVar("M", bound=BaseModel)

LONGEST_UNBOUNDED = 400
MOST_UNBOUNDED = 8
"""Characters of a text, and items of a list, for which a reply model sets no bound."""

SHORT_PHRASE = {"en": 20, "zh": 6}
"""Characters of a text that says something; a short text of few characters has a quarter of what it may have."""

LETTERS = {"en": "a", "zh": "字"}


def filler(characters: int, language: str) -> str:
    """A text of so many characters of a language."""
    return LETTERS[language] * characters


def smallest(model: type[M], language: str) -> M:
    """A valid reply of few words: short phrases, no more items than there must be."""
    return model.model_validate(extreme(schema_of(model), language, most=False))


def largest(model: type[M], language: str) -> M:
    """The longest reply that is valid; a text or list without a bound is long, but not endless."""
    return model.model_validate(extreme(schema_of(model), language, most=True))


def extreme(schema: Mapping[str, Any], language: str, *, most: bool) -> Any:
    """A short or the longest JSON value that fits a schema (references inlined)."""
    pick = max if most else min
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return pick(schema["enum"], key=_length)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return pick((extreme(part, language, most=most) for part in schema[several]), key=_length)
    match schema.get("type", "object" if "properties" in schema else "string"):
        case "object":
            return {name: extreme(part, language, most=most) for name, part in schema.get("properties", {}).items()}
        case "array":
            fewest = schema.get("minItems", 0)
            count = schema.get("maxItems", max(MOST_UNBOUNDED, fewest)) if most else fewest
            return [extreme(schema["items"], language, most=most)] * count
        case "integer" | "number":
            bounds = [schema[bound] for bound in ("minimum", "maximum") if bound in schema]
            return pick(bounds or [0, 1000], key=_length) if most else min(bounds or [0], key=_length)
        case "boolean":
            return not most
        case "null":
            return None
    longest = schema.get("maxLength", LONGEST_UNBOUNDED)
    shortest = max(schema.get("minLength", 0), min(SHORT_PHRASE[language], longest // 4), 1)
    return filler(longest if most else shortest, language)


def compact(value: Any) -> str:
    """A value as the shortest JSON there is of it."""
    plain = value.model_dump() if isinstance(value, BaseModel) else value
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _length(value: Any) -> int:
    return len(compact(value))
