"""Rows out of JSON. What no table can hold, or what is given twice, is a fault of its row and of no other."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

from tasks.foundation.settings.strict_yaml import once
from tasks.foundation.sources.rows import Problem, SourceRow

DEEPEST = 50
"""Levels of lists and objects in a row."""


def parse_json(text: str) -> Any:
    """JSON as the standard has it; ValueErrors are NaN, Infinity, a number beyond 64-bit floats, half a surrogate pair
    (no table holds it), a key given twice with different values, and levels beyond DEEPEST."""
    value = _DECODER.decode(text)
    _refuse_unheld(value, text)
    return value


def json_rows(text: str, label: str) -> Iterator[SourceRow]:
    """The rows of a text that is one array of them, or one object: a single row; ValueError where it is no JSON."""
    whole, fit = _whole(text)
    for index, value in enumerate(whole if isinstance(whole, list) else [whole]):
        where = f"{label}:{index + 1}"
        yield SourceRow(index, where, value=value) if fit else _checked(value, index, where)


def _whole(text: str) -> tuple[Any, bool]:
    """What a text holds, and whether every row of it is fit to be read."""
    try:
        return parse_json(text), True
    except json.JSONDecodeError:
        raise
    except ValueError:
        return _MARKING_DECODER.decode(text), False


def _checked(value: Any, index: int, where: str) -> SourceRow:
    try:
        written = json.dumps(value, default=_refuse_mark)
        _refuse_unheld(value, written)
    except ValueError as error:
        return SourceRow(index, where, problem=Problem("parse", f"expected a row of JSON, found one in which {error}"))
    return SourceRow(index, where, value=value)


def _refuse_unheld(value: Any, text: str) -> None:
    if text.count("[") + text.count("{") > DEEPEST:
        _refuse_depth(value)
    if "\\ud" in text.lower():
        json.dumps(value, ensure_ascii=False).encode("utf-8")


def _refuse_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST + 1):
        lists = [each for each in level if isinstance(each, list)]
        objects = [each.values() for each in level if isinstance(each, dict)]
        level = [inner for each in (*lists, *objects) for inner in each]
    if level:
        raise ValueError(f"nested more than {DEEPEST} levels deep")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is larger than any 64-bit number")
    return number


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class _Mark:
    """Stands in a parsed array for what its row may not hold; `reason` says what that is."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def _refuse_mark(mark: _Mark) -> Any:
    raise ValueError(mark.reason)


def _marking(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`read`, with a mark for what it refuses."""

    def marked(found: Any) -> Any:
        try:
            return read(found)
        except ValueError as error:
            return _Mark(str(error))

    return marked


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=once)
_MARKING_DECODER = json.JSONDecoder(
    parse_constant=_marking(_refuse_constant),
    parse_float=_marking(_finite),
    parse_int=_marking(int),
    object_pairs_hook=_marking(once),
)
