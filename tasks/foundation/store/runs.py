"""Runs of stages as rows of `stage_runs`: those that are committed, and the last ones that are so no longer or failed.

artifacts/builds/2026-12/.runs/scenes.json     [{"state": "replaced", "revision": 0, …}, …], oldest first
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal

from pydantic import Field, TypeAdapter, ValidationError

from tasks.foundation.store.durable import write_text
from tasks.foundation.store.layout import Layout, run_name
from tasks.foundation.tables import Table
from tasks.foundation.tables.types import Float64, Int32, Int64, Json, Row

MOST_KEPT = 20
"""Past runs that a stage of a build keeps."""

State = Literal["committed", "replaced", "dropped", "failed"]


class StageRunRow(Row):
    stage: str = Field(description="the stage")
    member: str | None = Field(description="target or judge of a stage that fans out; null: the stage does not")
    fingerprint: str = Field(description="hash of all that the run depends on")
    revision: Int32 = Field(description="0, and one more for each run that replaces a commit of its fingerprint")
    partial: bool = Field(description="rows failed in a way that may pass: the next run redoes them")
    n_in: Int64 | None = Field(description="input rows; null: it failed before they were counted")
    n_produced: Int64 | None = Field(description="of them: those that produced; null: not counted")
    n_filtered: Int64 | None = Field(description="of them: those left out on purpose; null: not counted")
    n_failed: Int64 | None = Field(description="of them: those that failed; null: not counted")
    filtered_by: Json | None = Field(description="filtered rows by reason; null: not counted")
    failed_by: Json | None = Field(description="failed rows by kind; null: not counted")
    calls: Int64 | None = Field(description="calls of providers that this run made; null: not counted")
    cost_usd: Float64 | None = Field(description="US dollars for them; null: not all known")
    started_at: datetime = Field(description="when it began, UTC")
    ended_at: datetime = Field(description="when it ended, UTC")
    state: State = Field(description="committed (its rows are shown), replaced, dropped or failed")
    reason: str | None = Field(description="why it failed; null: it did not")

    @property
    def run(self) -> str:
        return run_name(self.stage, self.member)

    def is_of(self, other: StageRunRow) -> bool:
        """Whether both tell of one run."""
        return (self.fingerprint, self.revision, self.ended_at) == (other.fingerprint, other.revision, other.ended_at)


STAGE_RUNS = Table(
    "stage_runs",
    StageRunRow,
    ("stage", "member", "fingerprint", "revision", "ended_at"),
    "one row per committed stage: its rows, calls and cost; in history also the last replaced and failed runs",
)


def remember(layout: Layout, build: str, row: StageRunRow) -> None:
    """Adds a run to the past ones of its stage, of which the last MOST_KEPT are kept; StoreError when that cannot be
    written. Whoever calls holds the stage's lock."""
    kept = [each for each in past_runs(layout, build, row.run) if not each.is_of(row)]
    rows = [each.model_dump(mode="json") for each in [*kept, row][-MOST_KEPT:]]
    write_text(layout.past_runs(build, row.run), layout.scratch, json.dumps(rows, ensure_ascii=False, indent=1))


def past_runs(layout: Layout, build: str, run: str) -> list[StageRunRow]:
    """Runs of a stage that are past, oldest first; none where nothing is written down, or nothing that can be read,
    since only people read it."""
    try:
        rows = _ROWS.validate_json(layout.past_runs(build, run).read_bytes())
    except (OSError, ValidationError):
        return []
    return [row for row in rows if row.run == run]


_ROWS = TypeAdapter(list[StageRunRow])


def with_past(committed: StageRunRow | None, past: Iterable[StageRunRow]) -> Sequence[StageRunRow]:
    """All runs of a stage. A commit that is about to be replaced is written down as past before it is."""
    if committed is None:
        return list(past)
    return [*(row for row in past if not row.is_of(committed)), committed]
