"""Rejects of source rows: where the row stands, what was wrong, and the beginning of the row."""

from __future__ import annotations

from dataclasses import dataclass, field

from tasks.foundation.ids import canonical_json
from tasks.foundation.sources.rows import Problem, SourceRow
from tasks.foundation.tables.operations import Reject

SHOWN_PAYLOAD = 4000
"""Characters of a rejected row kept as its payload."""


@dataclass
class SourceRejects:
    """Makes the rejects of one stage. Their keys are a file's name and a line, made distinct where two sources read
    files of one name."""

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
