"""Commits without rows, for what looks at commits only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tasks.foundation.store.accounting import Accounting
from tasks.foundation.store.commits import Commit

_BARE = Commit(
    build="b1",
    stage="scenes",
    member=None,
    fingerprint="f" * 16,
    revision=0,
    partial=False,
    tables={},
    drafts={},
    accounting=Accounting(),
    components={},
    parents={},
    started_at="2026-11-01T10:00:00+00:00",
    ended_at="2026-11-01T11:00:00+00:00",
    ends_chain=False,
    usage={},
)


def bare_commit(build: str, stage: str, **changes: Any) -> Commit:
    """One hour of 1 November 2026; `changes` are fields of a commit."""
    return replace(_BARE, build=build, stage=stage, **changes)
