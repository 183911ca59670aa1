"""What every source yields: one row of a file or dataset, or the reason why it is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tasks.foundation.ids import canonical_json

ProblemKind = Literal["parse", "schema", "filter"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why one row cannot be used: `parse` (not JSON, not CSV), `schema` (read, but of the wrong shape),
    `filter` (fine, but not wanted)."""

    kind: ProblemKind
    reason: str


class BadRow(Exception):
    """A source row of the wrong shape; ends as a `schema` reject with this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Unwanted(Exception):
    """A source row that is well formed but not wanted; ends as a `filter` reject, counted by `why`."""

    def __init__(self, why: str, reason: str) -> None:
        super().__init__(reason)
        self.why = why
        self.reason = reason

    @property
    def problem(self) -> Problem:
        return Problem("filter", f"{self.why}: {self.reason}")


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One row. `index` counts rows from 0; `where` is "<file name>:<line>", lines from 1.

    `value` is the parsed row (any JSON value), None where there is a `problem`; `text` then shows the
    beginning of what was read. `written` gives the value as JSON where its source has a quick way to it.
    """

    index: int
    where: str
    value: Any = None
    problem: Problem | None = None
    text: str | None = None
    written: Callable[[], str] | None = None

    def json(self) -> str:
        """The value as canonical JSON."""
        return canonical_json(self.value) if self.written is None else self.written()
