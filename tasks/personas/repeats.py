"""One source key, one persona: exact repeats are duplicates, a second content under a key is a bad row."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tasks.foundation.ids import digest
from tasks.foundation.sources import Problem, SourceRow
from tasks.personas.reading import BadRow, Persona, Reading


def read_each(rows: Iterable[SourceRow], pool: str, parse: Callable[[SourceRow], Persona]) -> Reading:
    """Personas of a source that has one row a persona, in order, with every other row accounted for."""
    reading = Reading(pool)
    contents: dict[str, str] = {}
    for row in rows:
        reading.n_in += 1
        if row.problem is not None:
            reading.leave_out(row, row.problem)
            continue
        try:
            _add(reading, parse(row), contents)
        except BadRow as bad:
            reading.leave_out(row, Problem("schema", bad.reason))
    return reading


def _add(reading: Reading, persona: Persona, contents: dict[str, str]) -> None:
    content = digest(persona.raw)
    if contents.setdefault(persona.source_key, content) != content:
        raise BadRow(f"expected each id once, found {persona.source_key!r} again with other content")
    if len(contents) == len(reading.personas):
        reading.repeat(persona.source_key)
    else:
        reading.personas.append(persona)
