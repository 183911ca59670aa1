"""The form of a reply in words, for the prompt: each field once, with its meaning and its limits.

It follows from the schema that is sent, so that the two cannot differ. Fields of one form stand on one line:

    turn_1, turn_2, turn_3: an object each, with
      intent: what the speaker wants to bring about with it (text, at most 500 characters)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from tasks.foundation.ids import canonical_json
from tasks.foundation.llm.reply import schema_of
from tasks.foundation.llm.request import Message
from tasks.foundation.tables.types import Language

MOST_NAMES = 12
"""Of a longer list of values only their number is said: the prompt has them."""

Schema = Mapping[str, Any]

_WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "opening": "Reply with one JSON object that has these fields, in this order:",
        "object": "an object with",
        "objects": "an object each, with",
        "list": "a list of objects, each with",
        "alternative": "or, instead of these,",
        "text": "text",
        "most": "at most {} characters",
        "integer": "whole number",
        "number": "number",
        "range": "{} to {}",
        "boolean": "true or false",
        "null": "null",
        "items": "list of {}",
        "least": "at least {}",
        "at_most": "at most {}",
        "names": "one of {} given above",
        "colon": ": ",
        "brackets": "({})",
        "comma": ", ",
        "or": " or ",
    },
    "zh": {
        "opening": "请以一个 JSON 对象作答，依次包含以下字段：",
        "object": "对象，包含",
        "objects": "各为一个对象，包含",
        "list": "对象的列表，每个包含",
        "alternative": "或改为包含",
        "text": "文字",
        "most": "不超过{}字",
        "integer": "整数",
        "number": "数字",
        "range": "{} 到 {}",
        "boolean": "true 或 false",
        "null": "null",
        "items": "列表，每项为{}",
        "least": "至少{}项",
        "at_most": "最多{}项",
        "names": "上述{}个之一",
        "colon": "：",
        "brackets": "（{}）",
        "comma": "，",
        "or": "或",
    },
}


def append_form(message: Message, model: type[BaseModel], language: Language) -> Message:
    """The message with the form of a reply after it."""
    return replace(message, content=f"{message.content}\n\n{describe_form(model, language)}")


@lru_cache(maxsize=512)
def describe_form(model: type[BaseModel], language: Language) -> str:
    """What a reply must have, a line a field."""
    words = _WORDS[language]
    return "\n".join([words["opening"], *_list_fields(schema_of(model), words, "")])


def _list_fields(schema: Schema, words: Mapping[str, str], indent: str) -> Iterator[str]:
    """A line for each field, or for several of one form, and below it those within."""
    for names, part in _group_alike(schema.get("properties", {})):
        head = f"{indent}- {', '.join(names)}{words['colon']}"
        meaning = part.get("description", "") if len(names) == 1 else ""
        within = _find_object(part)
        if within is None:
            form = words["brackets"].format(_name_form(part, words))
            yield f"{head}{meaning}{form if words['colon'] == '：' else f' {form}' if meaning else form}"
            continue
        kind = "list" if part.get("type") == "array" else "object" if len(names) == 1 else "objects"
        yield f"{head}{meaning}{words['comma'] if meaning else ''}{words[kind]}"
        for place, alternative in enumerate(within.get("anyOf", [within])):
            if place:
                yield f"{indent}  {words['alternative']}"
            yield from _list_fields(alternative, words, f"{indent}  ")


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


def _name_form(part: Schema, words: Mapping[str, str]) -> str:
    """'text, at most 500 characters', 'whole number, 0 to 10', 'High or Low'."""
    if "const" in part:
        return str(part["const"])
    if "enum" in part:
        return _name_values([f"{value:g}" if isinstance(value, float) else str(value) for value in part["enum"]], words)
    if "anyOf" in part:
        return words["or"].join(_name_form(option, words) for option in part["anyOf"])
    match part.get("type"):
        case "array":
            bounds = [words[key].format(part[name]) for name, key in _BOUNDS if name in part]
            return words["comma"].join([words["items"].format(_name_form(part.get("items", {}), words)), *bounds])
        case "string":
            most = [words["most"].format(part["maxLength"])] if "maxLength" in part else []
            return words["comma"].join([words["text"], *most])
        case "integer" | "number" as kind:
            held = "minimum" in part and "maximum" in part
            bounds = [words["range"].format(part["minimum"], part["maximum"])] if held else []
            return words["comma"].join([words[kind], *bounds])
        case kind:
            return words.get(str(kind), str(kind))


_BOUNDS = (("minItems", "least"), ("maxItems", "at_most"))


def _name_values(values: list[str], words: Mapping[str, str]) -> str:
    if len(values) > MOST_NAMES:
        return words["names"].format(len(values))
    return words["or"].join([words["comma"].join(values[:-1]), values[-1]] if len(values) > 1 else values)
