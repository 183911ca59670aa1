"""Values that fit a JSON schema: what scripted models answer, and what a dry run takes as an answer."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.foundation.errors import ConfigError

DEEPEST = 6
"""Below this nesting lists are as short and options as empty as their schema allows, so that it ends."""

_WORDS = (  # noqa: SIM905 - easier to read as a text
    "quiet river morning letter harvest lantern bridge garden winter promise window market coffee violin"
    " station mountain kitchen orchard notebook journey doctor teacher sister neighbour engine island"
    " carries finds mends leaves remembers asks answers waits hopes chooses walks paints"
    " gentle stubborn early honest careful bright distant patient uneasy grateful"
).split()

_STRING_FORMATS = {
    "date": "2026-01-02",
    "date-time": "2026-01-02T03:04:05Z",
    "time": "03:04:05Z",
    "email": "someone@example.org",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}

Schema = Mapping[str, Any]


class SchemaFiller:
    """Draws plausible values from `source`: the same source gives the same values.

    A subclass may write other texts (`write`), say how often a field is true (`chance_of`) and how many items a list
    has (`items_of`), by the name of the field.
    """

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self._definitions: Schema = {}

    def fill(self, schema: Schema) -> Any:
        """One value that fits `schema`; raises ConfigError on what this filler does not know."""
        self._definitions = schema.get("$defs", {})
        return self._value(schema, "", 0)

    def sentence(self, words: int) -> str:
        return " ".join(self.source.choice(_WORDS) for _ in range(words)).capitalize() + "."

    def write(self, shortest: int, longest: int, name: str) -> str:
        """A text of at least and at most so many characters."""
        text = self.sentence(self.source.randint(4, 9))
        while len(text) < shortest:
            text = f"{text} {self.sentence(6)}"
        return text

    def chance_of(self, name: str) -> float:
        return 0.5

    def items_of(self, name: str, fewest: int, most: int) -> int:
        return self.source.randint(fewest, max(fewest, most))

    def _value(self, schema: Schema, name: str, depth: int) -> Any:
        if "$ref" in schema:
            definition = self._definitions[schema["$ref"].rsplit("/", 1)[-1]]
            return self._value({**definition, **{k: v for k, v in schema.items() if k != "$ref"}}, name, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.source.choice(schema["enum"])
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return self._value(self._choose(schema[several], depth), name, depth)
        if "allOf" in schema:
            merged = {key: value for part in schema["allOf"] for key, value in part.items()}
            return self._value({**merged, **{k: v for k, v in schema.items() if k != "allOf"}}, name, depth)
        return self._of_type(schema, name, depth)

    def _of_type(self, schema: Schema, name: str, depth: int) -> Any:
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, name, depth)
            case "string":
                return self._string(schema, name)
            case "integer":
                return self.source.randint(*_bounds(schema, 1, 5))
            case "number":
                low, high = _bounds(schema, 0, 1)
                return min(max(round(self.source.uniform(low, high), 2), low), high)
            case "boolean":
                return self.source.random() < self.chance_of(name)
            case "null":
                return None
        raise ConfigError(f"The scripted model cannot fill a schema of type {kind!r}: {dict(schema)!r}.")

    def _choose(self, options: Sequence[Schema], depth: int) -> Schema:
        """An alternative: seldom null, and null where the nesting would not end."""
        nulls = [option for option in options if option.get("type") == "null"]
        others = [option for option in options if option.get("type") != "null"]
        if nulls and (not others or depth > DEEPEST or self.source.random() < 0.1):
            return nulls[0]
        return self.source.choice(others)

    def _object(self, schema: Schema, depth: int) -> Any:
        known = {name: self._value(part, name, depth + 1) for name, part in schema.get("properties", {}).items()}
        rest = schema.get("additionalProperties")
        if isinstance(rest, Mapping):
            for index in range(max(schema.get("minProperties", 0), 1)):
                known[f"{self.source.choice(_WORDS)}{index}"] = self._value(rest, "", depth + 1)
        return known

    def _array(self, schema: Schema, name: str, depth: int) -> Any:
        found = [self._value(part, name, depth + 1) for part in schema.get("prefixItems", [])]
        low = schema.get("minItems", 0 if depth > DEEPEST else 1)
        high = low if depth > DEEPEST else schema.get("maxItems", max(low, 3))
        items = schema.get("items", {})
        wanted = self.items_of(name, low, high) if "items" in schema else 0
        while len(found) < wanted:
            item = self._value(items, name, depth + 1)
            if not schema.get("uniqueItems") or item not in found:
                found.append(item)
            elif len(found) >= low and self.source.random() < 0.2:
                break
        return found

    def _string(self, schema: Schema, name: str) -> str:
        if "pattern" in schema:
            raise ConfigError(
                f"The scripted model cannot fill a string with the pattern {schema['pattern']!r};"
                " name a callable of your own in configs/models.yaml."
            )
        if schema.get("format") in _STRING_FORMATS:
            return _STRING_FORMATS[schema["format"]]
        low, high = schema.get("minLength", 1), schema.get("maxLength", 10_000)
        text = self.write(low, high, name)
        cut = text[: max(low, high)]
        bare = cut.strip()
        return cut if bare == cut and len(cut) >= low else (bare + "." * high)[: max(low, len(cut))]


def _bounds(schema: Schema, low: int, span: int) -> tuple[int, int]:
    """Whole lower and upper bounds within the schema's own, open ends filled in."""
    step = 1 if schema.get("type") == "integer" else 0
    lowest = schema.get("minimum", schema["exclusiveMinimum"] + step if "exclusiveMinimum" in schema else None)
    highest = schema.get("maximum", schema["exclusiveMaximum"] - step if "exclusiveMaximum" in schema else None)
    if lowest is None and highest is None:
        return low, low + span
    if lowest is None:
        return highest - span, highest
    return lowest, lowest + span if highest is None else highest
