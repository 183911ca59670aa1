"""One source key, one persona: exact repeats are duplicates, a second content under a key is a bad row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tasks.foundation.sources import BadRow, Problem, SourceRow, Unwanted
from tasks.personas.reading import Persona, Reading


def read_each(
    rows: Iterable[SourceRow], reading: Reading, parse: Callable[[SourceRow], Persona]
) -> Iterator[Persona | None]:
    """Of a source that has one row a persona: for each row its persona, or None where `reading` says how it ended."""
    contents: dict[str, int] = {}
    for row in rows:
        reading.n_in += 1
        try:
            yield _persona(row, reading, parse, contents)
        except BadRow as bad:
            reading.leave_out(row, Problem("schema", bad.reason))
            yield None
        except Unwanted as unwanted:
            reading.pass_over(row, unwanted)
            yield None


def _persona(
    row: SourceRow, reading: Reading, parse: Callable[[SourceRow], Persona], contents: dict[str, int]
) -> Persona | None:
    if row.problem is not None:
        reading.leave_out(row, row.problem)
        return None
    persona = parse(row)
    content = hash(persona.raw)  # of 64 bits, compared within this process only
    if persona.source_key not in contents:
        contents[persona.source_key] = content
        return persona
    if contents[persona.source_key] != content:
        raise BadRow(f"expected each id once, found {persona.source_key[:80]!r} again with other content")
    reading.repeat(persona.source_key)
    return None
