"""Lists and objects that a cell holds as text: a Python literal or JSON; nothing is ever evaluated."""

from __future__ import annotations

import ast
import json
import math
import re
from typing import Any

from tasks.foundation.settings.strict_yaml import GivenTwice, build_object
from tasks.foundation.sources.formats import is_nested_beyond
from tasks.foundation.sources.rows import BadRow
from tasks.foundation.sources.values import one_line

LONGEST = 200_000
"""Characters of a literal that are still parsed; the longest of the corpora have about 6,000."""
DEEPEST = 20
"""Brackets within one another; the parser's own stack ends somewhere beyond a hundred."""

_TEXT = r"(?:'[^'\\\n\r]*'|\"[^\"\\\n\r]*\")"
_TEXTS = re.compile(_TEXT)
_PLAIN_LIST = re.compile(rf"\[(?:{_TEXT}(?:, {_TEXT})*)?\]")
"""A list as Python prints one of simple texts: what nearly every row holds, read without the parser."""


class _GivenTwice(BadRow):
    """An object that has a key again with another value."""


def parse_literal(text: str, column: str) -> Any:
    """The value of a Python literal as JSON has it (texts, numbers, true, false, null, lists, objects).

    Read with `ast.literal_eval` only, within limits of size and depth. BadRow for anything else: a call, a name, an
    operation, bytes, a set, a key that is no text, half a surrogate pair.
    """
    text = text.strip()
    if len(text) > LONGEST or _depth(text) > DEEPEST:
        raise BadRow(
            f"expected at most {LONGEST} characters and {DEEPEST} levels in {column}, "
            f"found {len(text)} and {_depth(text)}"
        )
    try:
        tree = ast.parse(text, mode="eval")
        _refuse_twice(tree, column)
        return _as_json(ast.literal_eval(tree))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise BadRow(f"expected a Python literal in {column}, found {text[:80]!r}") from None


def _refuse_twice(tree: ast.Expression, column: str) -> None:
    for node in ast.walk(tree):
        values: dict[str, set[str]] = {}
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant):
                    values.setdefault(str(key.value), set()).add(ast.dump(value))
        if twice := [key for key, found in values.items() if len(found) > 1]:
            raise _GivenTwice(f"expected each key once in {column}, found that {twice[0]} is given twice")


def parse_list(value: Any, column: str) -> tuple[str, ...]:
    """A list of texts, given as such or as the text of a literal; empty for what is absent."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    if isinstance(value, str) and len(value) <= LONGEST and _PLAIN_LIST.fullmatch(value):
        items: Any = [text[1:-1] for text in _TEXTS.findall(value)]
    else:
        items = parse_literal(value, column) if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str | int | float) for item in items):
        raise BadRow(f"expected a list of texts in {column}, found {str(value)[:80]!r}")
    return tuple(text for item in items if (text := one_line(str(item))))


def parse_cell(value: Any) -> Any:
    """The list or object that a text holds, as JSON or as a Python literal; any other value as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        found = _load(value, "a cell")
    except BadRow:
        return value
    return found if isinstance(found, list | dict) and not is_nested_beyond(DEEPEST, found) else value


def parse_object(value: Any, column: str) -> dict[str, Any]:
    """An object, given as such, as JSON or as a Python literal; BadRow for anything else."""
    found = _load(value, column) if isinstance(value, str) else value
    if not isinstance(found, dict) or not found:
        raise BadRow(f"expected a JSON object in {column}, found {str(value)[:80]!r}")
    if is_nested_beyond(DEEPEST, found):
        raise BadRow(f"expected at most {DEEPEST} levels in {column}, found more")
    return found


def _load(text: str, column: str) -> Any:
    if len(text) > LONGEST:
        raise BadRow(f"expected at most {LONGEST} characters in {column}, found {len(text)}")
    try:
        return _as_json(json.loads(text, object_pairs_hook=build_object))
    except GivenTwice as error:
        raise _GivenTwice(f"expected each key once in {column}, found that {error}") from None
    except (ValueError, TypeError, RecursionError):
        pass
    try:
        return parse_literal(text, column)
    except _GivenTwice:
        raise
    except BadRow:
        return None


def _as_json(value: Any) -> Any:
    """The value with tuples as lists; ValueError for what JSON and our tables do not have."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) >= 2**63:
            raise ValueError("a number of more than 64 bits")
        return value
    if isinstance(value, str):
        value.encode("utf-8")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is no number of JSON")
        return value
    if isinstance(value, list | tuple):
        return [_as_json(inner) for inner in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {_as_json(key): _as_json(inner) for key, inner in value.items()}
    raise ValueError(f"JSON has no {type(value).__name__}")


def _depth(text: str) -> int:
    """Brackets open at once, at most; those inside texts count too, which errs on the safe side."""
    depth = deepest = 0
    for bracket in re.findall(r"[\[({\])}]", text):
        depth += 1 if bracket in "[({" else -1
        deepest = max(deepest, depth)
    return deepest
