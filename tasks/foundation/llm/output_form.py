"""The form of a reply in words, for the prompt: each field once, with its meaning and its limits.

It follows from the schema that is sent, so that the two cannot differ. Fields of one form stand on one line:

    - turn_1, turn_2, turn_3 (an object each)
      - intent: what the speaker wants to bring about with it (text, at most 500 characters)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from tasks.foundation.ids import canonical_json
from tasks.foundation.llm.reply import WORDS, schema_with_words
from tasks.foundation.llm.request import Message
from tasks.foundation.tables.types import Language

MOST_NAMES = 12
"""Of a longer list of values only their number is said: the prompt has them."""

Schema = Mapping[str, Any]

_WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "opening": "Reply with one JSON object that has these fields, in this order:",
        "means": ": {}",
        "form": " ({})",
        "object": "an object",
        "objects": "an object each",
        "list": "a list of objects",
        "for": "for {}",
        "text": "text",
        "characters": "at most {} characters",
        "words": "at most {} words",
        "integer": "whole number",
        "number": "number",
        "range": "{} to {}",
        "boolean": "true or false",
        "items": "list, each item: {}",
        "minItems": "at least {} items",
        "maxItems": "at most {} items",
        "exactly": "{} items",
        "names": "one of {} given above",
        "and": ", ",
        "facet": ", ",
        "or": " or ",
    },
    "zh": {
        "opening": "请以一个 JSON 对象作答，依次包含以下字段：",
        "means": "：{}",
        "form": "（{}）",
        "object": "对象",
        "objects": "各为一个对象",
        "list": "对象的列表",
        "for": "用于 {}",
        "text": "文字",
        "characters": "不超过{}字",
        "words": "不超过{}字",
        "integer": "整数",
        "number": "数字",
        "range": "{} 到 {}",
        "boolean": "true 或 false",
        "items": "列表，每项为{}",
        "minItems": "至少{}项",
        "maxItems": "最多{}项",
        "exactly": "共{}项",
        "names": "上述{}项之一",
        "and": "、",
        "facet": "，",
        "or": " 或 ",
    },
}
SIGNS_A_WORD: dict[Language, int] = {"en": 1, "zh": 2}
"""What stands for a word where words are counted: two signs of Chinese."""


_SPACE_BESIDE_CHINESE = re.compile(r"(?<=[^\x00-\x7f]) (?=或)|(?<=或) (?=[^\x00-\x7f])")
"""A space is left between Chinese and Latin words only."""


def append_form(message: Message, model: type[BaseModel], language: Language) -> Message:
    """The message with the form of a reply after it."""
    return replace(message, content=f"{message.content}\n\n{describe_form(model, language)}")


@lru_cache(maxsize=512)
def describe_form(model: type[BaseModel], language: Language) -> str:
    """What a reply must have, a line a field."""
    form = _Form(language)
    lines = "\n".join([form.words["opening"], *form.list_fields(schema_with_words(model), "")])
    return _SPACE_BESIDE_CHINESE.sub("", lines) if language == "zh" else lines


class _Form:
    """Writes forms in one language."""

    def __init__(self, language: Language) -> None:
        self.words = _WORDS[language]
        self._signs = SIGNS_A_WORD[language]

    def list_fields(self, schema: Schema, indent: str) -> Iterator[str]:
        """A line for each field, or for several of one form, and below it those within."""
        for names, part in _group_alike(schema.get("properties", {})):
            meaning = part.get("description", "") if len(names) == 1 else ""
            yield from self._list_field(", ".join(names), meaning, part, indent, several=len(names) > 1)

    def _list_field(
        self, names: str, meaning: str, part: Schema, indent: str, *, several: bool = False
    ) -> Iterator[str]:
        head = f"{indent}- {names}" + (self.words["means"].format(meaning) if meaning else "")
        within = _find_object(part)
        if within is None:
            yield head + self.words["form"].format(self.name_form(part))
            return
        kind = "list" if part.get("type") == "array" else "objects" if several else "object"
        yield head + self.words["form"].format(self.words[kind])
        if "anyOf" in within:
            yield from self._list_alternatives(within["anyOf"], f"{indent}  ")
        else:
            yield from self.list_fields(within, f"{indent}  ")

    def _list_alternatives(self, options: Sequence[Schema], indent: str) -> Iterator[str]:
        """The fields of several objects once each. One that differs from object to object has a line for each form,
        which says of which values of the first field."""
        fields = [option["properties"] for option in options]
        first, *names = dict.fromkeys(name for each in fields for name in each)
        for name in (first, *names):
            having = [each for each in fields if name in each]
            forms: dict[str, list[Mapping[str, Schema]]] = {}
            for each in having:
                forms.setdefault(canonical_json(each[name]), []).append(each)
            part = having[0][name]
            if len(forms) > 1 and all(_values_of(each[name]) for each in having):
                values = dict.fromkeys(value for each in having for value in _values_of(each[name]))
                part = {"enum": list(values), "description": part.get("description", "")}
            elif len(forms) > 1:
                yield f"{indent}- {name}" + self.words["means"].format(part.get("description", ""))
                for alike in forms.values():
                    tags = [str(value) for each in alike for value in _values_of(each[first])]
                    yield from self._list_field(
                        self.words["for"].format(self._join(tags)), "", alike[0][name], f"{indent}  "
                    )
                continue
            yield from self._list_field(name, part.get("description", ""), part, indent)

    def name_form(self, part: Schema) -> str:
        """'text, at most 500 characters', 'whole number, 0 to 10', 'High or Low'."""
        words = self.words
        if values := _values_of(part):
            return self._join([f"{value:g}" if isinstance(value, float) else str(value) for value in values])
        if "anyOf" in part:
            return words["or"].join(self.name_form(option) for option in part["anyOf"])
        match part.get("type"):
            case "array":
                return words["facet"].join([words["items"].format(self.name_form(part["items"])), *self._bounds(part)])
            case "string":
                return words["facet"].join([words["text"], *self._most(part)])
            case "integer" | "number" as kind:
                held = "minimum" in part and "maximum" in part
                bounds = [words["range"].format(part["minimum"], part["maximum"])] if held else []
                return words["facet"].join([words[kind], *bounds])
            case kind:
                return words.get(str(kind), str(kind))

    def _most(self, part: Schema) -> list[str]:
        if WORDS in part:
            return [self.words["words"].format(self._signs * part[WORDS])]
        return [self.words["characters"].format(part["maxLength"])] if "maxLength" in part else []

    def _bounds(self, part: Schema) -> list[str]:
        low, high = part.get("minItems"), part.get("maxItems")
        if low is not None and low == high:
            return [self.words["exactly"].format(low)]
        return [self.words[name].format(part[name]) for name in ("minItems", "maxItems") if part.get(name, 1) > 1]

    def _join(self, values: Sequence[str]) -> str:
        if len(values) > MOST_NAMES:
            return self.words["names"].format(len(values))
        return self.words["or"].join([self.words["and"].join(values[:-1]), values[-1]] if len(values) > 1 else values)


def _values_of(part: Schema) -> list[Any]:
    """The values of a closed set; none where the field is open."""
    return [part["const"]] if "const" in part else list(part.get("enum", ()))


def _group_alike(properties: Mapping[str, Schema]) -> list[tuple[list[str], Schema]]:
    """Objects that differ only in name and meaning stand together; any other field stands alone."""
    groups: dict[str, tuple[list[str], Schema]] = {}
    for name, part in properties.items():
        bare = {key: value for key, value in part.items() if key != "description"}
        key = canonical_json(bare) if "properties" in part else name
        groups.setdefault(key, ([], part))[0].append(name)
    return list(groups.values())


def _find_object(part: Schema) -> Schema | None:
    """The object that a field is, or that the items of its list are."""
    inner: Schema = part.get("items", {}) if part.get("type") == "array" else part
    holds = "properties" in inner or all("properties" in option for option in inner.get("anyOf", [{}]))
    return inner if holds else None
