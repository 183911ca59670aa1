"""The reply model as the JSON schema that providers are sent."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel


@lru_cache(maxsize=512)
def schema_of(model: type[BaseModel]) -> Mapping[str, Any]:
    """The reply model as a JSON schema: references inlined, every object closed, the same each time.

    A model that refers to itself keeps its `$defs`. The result is shared: do not change it.
    """
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    if any(_refers_to_itself(name, definitions) for name in definitions):
        schema["$defs"] = {name: _closed(part) for name, part in definitions.items()}
        return dict(_closed(schema))
    return dict(_closed(_inlined(schema, definitions)))


def _inlined(part: Any, definitions: Mapping[str, Any]) -> Any:
    """`part` with each `$ref` replaced by what it refers to; keys beside the reference win."""
    if isinstance(part, list):
        return [_inlined(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    beside = {key: _inlined(item, definitions) for key, item in part.items() if key != "$ref"}
    if "$ref" not in part:
        return beside
    return {**_inlined(definitions[part["$ref"].rsplit("/", 1)[-1]], definitions), **beside}


def _refers_to_itself(name: str, definitions: Mapping[str, Any]) -> bool:
    reached: set[str] = set()
    frontier = _references(definitions[name])
    while frontier:
        reached |= frontier
        frontier = {found for known in frontier for found in _references(definitions[known])} - reached
    return name in reached


def _references(part: Any) -> set[str]:
    if isinstance(part, list):
        return {found for item in part for found in _references(item)}
    if not isinstance(part, dict):
        return set()
    own = {part["$ref"].rsplit("/", 1)[-1]} if isinstance(part.get("$ref"), str) else set()
    return own | {found for item in part.values() for found in _references(item)}


def _closed(part: Any, *, named: bool = False) -> Any:
    """`part` with `additionalProperties: false` on objects and without pydantic's titles.

    `named`: `part` maps field names to schemas, so a field called "title" is no title.
    """
    if isinstance(part, list):
        return [_closed(item) for item in part]
    if not isinstance(part, dict):
        return part
    if named:
        return {key: _closed(item) for key, item in part.items()}
    result = {
        key: _closed(item, named=key in ("properties", "$defs")) if key not in ("enum", "const", "default") else item
        for key, item in part.items()
        if key != "title"
    }
    if "properties" in result:
        result.setdefault("additionalProperties", False)
    return result
