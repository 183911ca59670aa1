"""Rows that every stage writes beside its own: rejects, the request ledger, the replies it cites. And what is known of
stages and builds rather than of rows: views over the commits, beside those over the tables."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from tasks.foundation.tables.types import Float64, Int32, Int64, Json, Row, Table


class Reject(Row):
    stage: str = Field(description="the stage that could not use the row")
    row_key: str = Field(description="the row's primary key parts joined by '/'; or file and line of a source row")
    kind: str = Field(description="one of the engine's failure kinds, or parse, schema, filter")
    reason: str = Field(description="expected, found, where")
    retryable: bool = Field(description="the next run tries it again")
    attempts: Int32 = Field(description="provider calls made for it", ge=0)
    payload: Json | None = Field(description="the row or reply in question; null: nothing to show")


class LlmCall(Row):
    request_id: str = Field(description="hash of the logical request")
    stage: str = Field(description="stage that asked")
    row_key: str = Field(description="row it asked for")
    purpose: str = Field(description="distil, design, assess, reflect, write, annotate, review, vote …")
    revision: Int32 = Field(description="revision of the stage's commit that asked", ge=0)
    alias: str = Field(description="model alias")
    model: str = Field(description="the provider's name of the model")
    family: str = Field(description="model family")
    provider: str = Field(description="a kind of provider, as in configs/models.yaml")
    base_url: str | None = Field(description="endpoint; null: the provider's own")
    prompt_fingerprint: str = Field(description="hash of the prompt template")
    temperature: Float64 = Field(description="as sent")
    seed_sent: Int64 | None = Field(description="the seed that was sent; null: none was")
    model_reported: str | None = Field(description="what the provider says answered; null: not said")
    prompt_tokens: Int64 | None = Field(description="summed over attempts; null: not reported")
    cached_tokens: Int64 | None = Field(description="of them read from the provider's cache; null: not reported")
    cache_write_tokens: Int64 | None = Field(
        description="of the prompt, written to the provider's cache; null: not reported"
    )
    completion_tokens: Int64 | None = Field(description="summed over attempts, reasoning included; null: not reported")
    reasoning_tokens: Int64 | None = Field(description="of them reasoning; null: not reported")
    cost_usd: Float64 | None = Field(description="US dollars; null: price unknown")
    latency_seconds: Float64 = Field(description="time in provider calls, seconds")
    attempts: Int32 = Field(description="provider calls of this request", ge=0)
    from_cache: bool = Field(description="false when this stage run made the call, in whichever process")
    cut_texts: Int32 = Field(description="texts of the reply that were far over their limit, and were cut", ge=0)
    finish_reason: str | None = Field(description="as the provider says; null: no reply")
    error_kind: str | None = Field(description="why it failed; null: answered")
    created_at: datetime = Field(description="UTC")


class Reply(Row):
    request_id: str = Field(description="hash of the logical request")
    prompt: Json = Field(description="messages as sent")
    reply: str | None = Field(description="the last reply's text; null: none came")


TABLES = (
    Table("rejects", Reject, ("stage", "row_key", "kind"), "one row per input row that a stage could not use"),
    Table(
        "llm_calls", LlmCall, ("stage", "row_key", "purpose", "request_id", "revision"), "one row per logical request"
    ),
    Table("replies", Reply, ("request_id",), "one row per request that a stage run cites"),
)


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
