"""The shapes that transcripts of every kind are put into for the page."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Label:
    """`found`: None shows only `gold`. `right` None: neither."""

    name: str
    gold: str
    found: str | None = None
    right: bool | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table under a transcript: what, its value, how it came about, and why."""

    what: str
    value: str
    how: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A folded table: judgements of a turn, or verdicts."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One thing said. `side`: 1 or 2, whose. `labels` and `sheets` belong to it."""

    speaker: str
    text: str
    side: int
    labels: tuple[Label, ...] = ()
    sheets: tuple[Sheet, ...] = ()


@dataclass(frozen=True, slots=True)
class Transcript:
    """`facets`: what readers filter by; `about`: facts above the first line; `after`: what is judged as a whole."""

    id: str
    title: str
    facets: tuple[tuple[str, str], ...]
    about: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]
    after: tuple[Sheet, ...] = ()


@dataclass(frozen=True, slots=True)
class Shelf:
    """The transcripts of one kind; `total` are there, `chosen` says how those shown were."""

    anchor: str
    title: str
    transcripts: tuple[Transcript, ...]
    total: int
    chosen: str
    missing: str

    @property
    def left_out(self) -> int:
        return self.total - len(self.transcripts)

    @property
    def facets(self) -> list[tuple[str, list[str]]]:
        """Each facet with its values, where there is a choice."""
        values: dict[str, set[str]] = defaultdict(set)
        for transcript in self.transcripts:
            for name, value in transcript.facets:
                values[name].add(value)
        return [(name, sorted(found)) for name, found in values.items() if len(found) > 1]
