"""YAML and JSON in which a key stands once: the readers of both libraries keep the last of several and say nothing."""

from __future__ import annotations

import json
import pickle
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from tasks.foundation.errors import ConfigError

Config = TypeVar("Config", bound=BaseModel)


class GivenTwice(yaml.YAMLError, ValueError):
    """A key that an object has more than once."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # libyaml reads ten times as fast
    def construct_document(self, node: yaml.Node) -> Any:
        """Checked as it is written; keys that `<<` brings in later may be given again."""
        _refuse_repeated(node, set())
        return super().construct_document(node)


def _refuse_repeated(node: yaml.Node, seen: set[int]) -> None:
    """GivenTwice for a key that a mapping, at any level, has more than once; `seen` are nodes already looked at, which
    aliases lead to again."""
    if isinstance(node, yaml.ScalarNode) or id(node) in seen:
        return
    seen.add(id(node))
    lines: dict[tuple[str, str], list[int]] = {}
    for each in node.value:
        for inner in each if isinstance(each, tuple) else (each,):
            _refuse_repeated(inner, seen)
        if isinstance(each, tuple) and isinstance(each[0], yaml.ScalarNode):
            lines.setdefault((each[0].tag, each[0].value), []).append(each[0].start_mark.line + 1)
    twice = [f"{key} is given twice, {_name_lines(found)}" for (_, key), found in lines.items() if len(found) > 1]
    if twice:
        raise GivenTwice("; ".join(twice))


def load_yaml(text: str) -> Any:
    """The one document of a YAML text, as `yaml.safe_load` has it; GivenTwice, a YAMLError, names keys and lines."""
    return pickle.loads(_pickled(text))


@lru_cache(maxsize=64)
def _pickled(text: str) -> bytes:
    """Every stage of a run reads the settings and the models again; this is the tenth of the time, and a copy each."""
    return pickle.dumps(yaml.load(text, _Loader))


def read_config(path: Path, model: type[Config], what: str) -> Config:
    """The YAML file as `model` has it; ConfigError, which calls it `what`, for one that is missing or malformed."""
    try:
        return model.model_validate(load_yaml(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        raise ConfigError(f"{what} {path}: {error}") from None


def build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object (`object_pairs_hook`); GivenTwice for a key that it has again with another value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        for key, value in pairs:
            if _written(value) != _written(found[key]):
                raise GivenTwice(f"{key} is given twice with different values")
    return found


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _name_lines(lines: list[int]) -> str:
    *first, last = map(str, sorted(set(lines)))
    return f"lines {', '.join(first)} and {last}" if first else f"line {last}"
