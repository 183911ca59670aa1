"""Where in a row a value stands: `profile.age`, `messages[].content` (of each entry), `turns[-1].history`, `*.text`
(of each value of an object)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from tasks.foundation.sources.literals import parse_cell

_STEPS = re.compile(r"\.?(?:\[(?P<index>-?\d*)\]|(?P<name>[^.\[\]]+))")
_MANY = ("[]", "*")
SHOWN_LEVELS = 4

Step = str | int


def is_path(text: str) -> bool:
    """Whether a text is written as a path is; a name of its own is one, too."""
    end = 0
    for match in _STEPS.finditer(text):
        if match.start() != end or (not end and text[0] == "."):
            return False
        end = match.end()
    return 0 < end == len(text)


def find(value: Any, path: str) -> Any:
    """What stands at the path: with `[]` or `*` a list with an entry for each, None where one has nothing there; None
    where the row has nothing there. A column that is called as the whole path goes first; lists and objects within
    texts (cells of a CSV) are read.

    >>> find({"talk": {"turns": [{"text": "Hi."}, {"text": "Yes?"}]}}, "talk.turns[].text")
    ['Hi.', 'Yes?']
    >>> find({"turns": '[{"text": "Hi."}]'}, "turns[-1].text")
    'Hi.'
    """
    if isinstance(value, Mapping) and path in value:
        return value[path]
    return _follow(value, _steps(path))


def has(value: Any, path: str) -> bool:
    """Whether a row has the column (whatever it holds) or something at the path."""
    return isinstance(value, Mapping) and (path in value or _stands(_follow(value, _steps(path))))


def list_paths(value: Any, levels: int = SHOWN_LEVELS) -> list[str]:
    """The paths of a row's single values, in order."""
    return list(dict.fromkeys(_paths_within(value, "", levels)))


def _stands(found: Any) -> bool:
    return any(map(_stands, found)) if isinstance(found, list) else found is not None


@cache
def _steps(path: str) -> tuple[Step, ...]:
    steps: list[Step] = []
    for match in _STEPS.finditer(path):
        index, name = match["index"], match["name"]
        steps.append(name if index is None else int(index) if index.strip("-") else "[]")
    return tuple(steps)


def _follow(value: Any, steps: tuple[Step, ...]) -> Any:
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    value = parse_cell(value)
    if isinstance(step, int):
        inside = isinstance(value, list) and -len(value) <= step < len(value)
        return _follow(value[step], rest) if inside else None
    if isinstance(value, Mapping) and step not in _MANY:
        return _follow(value.get(step), rest)
    items = _items(value, step)
    if items is None:
        return None
    found = [_follow(item, rest) for item in items]
    if any(later in _MANY for later in rest):
        return [inner for each in found if isinstance(each, list) for inner in each]
    return found


def _items(value: Any, step: Step) -> list[Any] | None:
    if step == "[]" and isinstance(value, list):
        return value
    return list(value.values()) if step == "*" and isinstance(value, Mapping) else None


def _paths_within(value: Any, path: str, levels: int) -> Iterator[str]:
    value = parse_cell(value)
    if levels and isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _paths_within(inner, f"{path}.{name}" if path else str(name), levels - 1)
    elif levels and isinstance(value, list) and value and isinstance(value[0], Mapping | list):
        yield from _paths_within(value[0], f"{path}[]", levels - 1)
    elif path:
        yield path
