"""What every source yields: one row of a file or dataset, or the reason why it is none; and where each row ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from tasks.foundation.errors import SourceError
from tasks.foundation.ids import canonical_json
from tasks.foundation.tables.operations import Reject

SHOWN_PAYLOAD = 4000
"""Characters of a rejected row kept as its payload."""

ProblemKind = Literal["parse", "schema", "filter"]
Parsed = TypeVar("Parsed")


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


@dataclass
class SourceRejects:
    """Makes the rejects of one stage: where a row stands, what was wrong, and its beginning. Their keys are a file's
    name and a line, made distinct where two sources read files of one name."""

    stage: str
    _readers: dict[str, list[str]] = field(default_factory=dict)

    def make(self, source: str, row: SourceRow, problem: Problem) -> Reject:
        """The reject of a row of the named source."""
        return Reject(
            stage=self.stage,
            row_key=self._key(source, row.where),
            kind=problem.kind,
            reason=problem.reason,
            retryable=False,
            attempts=0,
            payload=_payload(row),
        )

    def _key(self, source: str, where: str) -> str:
        """`where` itself for the first source that reads a file of this name, with "#2" after it for the second."""
        readers = self._readers.setdefault(where.rpartition(":")[0], [])
        if source not in readers:
            readers.append(source)
        number = readers.index(source) + 1
        return where if number == 1 else f"{where}#{number}"


def _payload(row: SourceRow) -> str | None:
    if row.text is not None:
        return canonical_json(row.text)
    if row.value is None:
        return None
    whole = canonical_json(row.value)
    return whole if len(whole) <= SHOWN_PAYLOAD else canonical_json(whole[:SHOWN_PAYLOAD])


@dataclass
class SourceTally:
    """Where the rows of one source have ended so far. `n_in` counts rows as they come; each becomes exactly one of
    usable (which the reader counts), filtered and failed.

    Rejects wait here until they are taken, so that a source full of them is never held.
    """

    source: str
    """What tells its rejects from those of other sources."""
    rejecting: SourceRejects
    n_in: int = 0
    filtered: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    rejects: list[Reject] = field(default_factory=list)
    _first: str = ""
    """Where and why the first row was left out."""

    def parse(self, row: SourceRow, parse: Callable[[SourceRow], Parsed]) -> Parsed | None:
        """Counts a row and gives what `parse` makes of it; None for one that ends here: it had a problem before, or
        `parse` raises BadRow or Unwanted."""
        self.n_in += 1
        try:
            if row.problem is None:
                return parse(row)
            self._leave_out(row, row.problem)
        except BadRow as bad:
            self._leave_out(row, Problem("schema", bad.reason))
        except Unwanted as unwanted:
            self.pass_over(row, unwanted)
        return None

    def pass_over(self, row: SourceRow, unwanted: Unwanted) -> None:
        """Ends a row that is fine but not wanted as a reject that says why."""
        self.filtered[unwanted.why] += 1
        self._reject(row, unwanted.problem)

    def _leave_out(self, row: SourceRow, problem: Problem) -> None:
        """Ends a row as a reject, or only counts it where the source's filter left it out."""
        if problem.kind == "filter":
            self.filtered["where"] += 1
            return
        self.failed[problem.kind] += 1
        self._reject(row, problem)

    def _reject(self, row: SourceRow, problem: Problem) -> None:
        self._first = self._first or f"{row.where}: {problem.reason}"
        self.rejects.append(self.rejecting.make(self.source, row, problem))

    def require_usable(self, name: str, n_usable: int, max_failure_rate: float) -> None:
        """SourceError for a source (as `name` calls it) of which no row, or too few, can be used."""
        n_failed, setting = self.failed.total(), self.rejecting.stage
        if n_usable and n_failed <= max_failure_rate * self.n_in:
            return
        ended = (*self.failed.items(), *self.filtered.items())
        why = ", ".join(f"{reason} {count:,}" for reason, count in ended if count)
        most = f", more than {setting}.max_failure_rate = {max_failure_rate:g} allows" if n_usable else ""
        what = f"{n_failed:,} of {self.n_in:,} rows cannot be read{most}" if n_failed else ""
        raise SourceError(
            f"{setting}.sources, {name}: {what or f'none of {self.n_in:,} rows is wanted'} ({why}). The first, "
            f"{self._first}. Is it the right file, with the right reader?"
        )
