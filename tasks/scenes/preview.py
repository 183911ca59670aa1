"""What the first usable row of a dialogue source becomes."""

from __future__ import annotations

import itertools

from tasks.foundation.errors import SourceError
from tasks.foundation.settings.sections import SceneSource
from tasks.foundation.sources import BadRow, Unwanted
from tasks.scenes.readers import READERS
from tasks.scenes.shapes import describe, is_mapped, shape_of

TRIED_ROWS = 100
SHOWN_TURNS = 2
SHOWN_TEXT = 60


def preview(source: SceneSource) -> str:
    """One line: its shape, speakers and first turns. Reads the first rows; SourceError where none of them is usable,
    with the reason of the first."""
    rows, parse = READERS[source.reader](source)
    first = ""
    for row in itertools.islice(rows, TRIED_ROWS):
        try:
            if row.problem is not None:
                raise BadRow(row.problem.reason)
            dialogue = parse(row)
        except (BadRow, Unwanted) as bad:
            first = first or f"{row.where}: {bad.reason}"
            continue
        said = zip(dialogue.speakers, dialogue.texts, strict=True)
        turns = [f"{who}: {text[:SHOWN_TEXT]}" for who, text in itertools.islice(said, SHOWN_TURNS)]
        shape = f" ({describe(shape_of(source))})" if is_mapped(source) else ""
        return f"{row.where} is {len(dialogue.texts)} turns, {' / '.join(turns)}{shape}"
    raise SourceError(
        f"source {source.name}: none of its first rows can be used. The first, {first}. Is it the right file?"
    )
