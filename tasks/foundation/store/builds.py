"""Builds as a whole: one row of the view `builds` each."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from tasks.foundation.tables import Table
from tasks.foundation.tables.types import Float64, Int64, Row


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
