"""What every source yields: one row of a file or dataset, or the reason why it is none."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import Any, Literal

ProblemKind = Literal["parse", "schema", "filter"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why one row cannot be used: `parse` (not JSON, not CSV), `schema` (read, but of the wrong shape),
    `filter` (fine, but not wanted)."""

    kind: ProblemKind
    reason: str


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One row. `index` counts rows from 0; `where` is "<file name>:<line>", lines from 1.

    `value` is the parsed row (any JSON value), None where there is a `problem`; `text` then shows the
    beginning of what was read.
    """

    index: int
    where: str
    value: Any = None
    problem: Problem | None = None
    text: str | None = None


def plain(value: Any) -> Any:
    """`value` of a parquet file or dataset as JSON has it: NaN becomes None, dates and bytes become text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
