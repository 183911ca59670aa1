"""What is known of stages and builds rather than of rows: views over the commits, beside those over the tables."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from tasks.foundation.tables.table import Table
from tasks.foundation.tables.types import Float64, Int32, Int64, Json, Row

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

    def is_of(self, other: StageRunRow) -> bool:
        """Whether both tell of one run."""
        return (self.fingerprint, self.revision, self.ended_at) == (other.fingerprint, other.revision, other.ended_at)


STAGE_RUNS = Table(
    "stage_runs",
    StageRunRow,
    ("stage", "member", "fingerprint", "revision", "ended_at"),
    "one row per committed stage: its rows, calls and cost; in history also the last replaced and failed runs",
)


class BuildRow(Row):
    build: str = Field(description="its name")
    profile: str | None = Field(description="the profile of its last commit; null: none says, as with a release")
    state: Literal["complete", "partial", "unfinished", "unreadable"] = Field(
        description="complete: its chain is committed; partial: failed rows may pass when tried again; unreadable: the "
        "record of a commit is"
    )
    shown: bool = Field(description="schema main shows it")
    stages: Int64 = Field(description="stage runs that are committed")
    partial_stages: list[str] = Field(description="those with rows that may pass when tried again")
    unreadable_stages: list[str] = Field(description="those whose record cannot be read")
    created_at: datetime | None = Field(description="when its first stage began, UTC; null: nothing can be read")
    last_commit_at: datetime | None = Field(description="when its last commit was made, UTC; null: nothing can be read")
    calls: Int64 | None = Field(description="calls of providers for what is committed; null: not all counted")
    cost_usd: Float64 | None = Field(description="US dollars for them; null: not all known")


BUILDS = Table("builds", BuildRow, ("build",), "one row per build: its stages, its last commit, its cost")

OVERVIEW: dict[str, Table] = {table.name: table for table in (STAGE_RUNS, BUILDS)}
