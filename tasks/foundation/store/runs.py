"""Runs of stages as rows of `stage_runs`: those that are committed, and the last ones that are so no longer or failed.

artifacts/builds/2026-12/.runs/scenes.json     [{"state": "replaced", "revision": 0, …}, …], oldest first
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from pydantic import TypeAdapter, ValidationError

from tasks.foundation.store.durable import write_text
from tasks.foundation.store.layout import Layout, run_name
from tasks.foundation.tables.operations import StageRunRow

MOST_KEPT = 20
"""Past runs that a stage of a build keeps."""


def remember(layout: Layout, build: str, row: StageRunRow) -> None:
    """Adds a run to the past ones of its stage, of which the last MOST_KEPT are kept; StoreError when that cannot be
    written. Whoever calls holds the stage's lock."""
    kept = [each for each in past_runs(layout, build, _run(row)) if not each.is_of(row)]
    rows = [each.model_dump(mode="json") for each in [*kept, row][-MOST_KEPT:]]
    write_text(layout.past_runs(build, _run(row)), layout.scratch, json.dumps(rows, ensure_ascii=False, indent=1))


def past_runs(layout: Layout, build: str, run: str) -> list[StageRunRow]:
    """Runs of a stage that are past, oldest first; none where nothing is written down, or nothing that can be read,
    since only people read it."""
    try:
        rows = _ROWS.validate_json(layout.past_runs(build, run).read_bytes())
    except (OSError, ValidationError):
        return []
    return [row for row in rows if _run(row) == run]


def _run(row: StageRunRow) -> str:
    return run_name(row.stage, row.member)


_ROWS = TypeAdapter(list[StageRunRow])


def with_past(committed: StageRunRow | None, past: Iterable[StageRunRow]) -> Sequence[StageRunRow]:
    """All runs of a stage. A commit that is about to be replaced is written down as past before it is."""
    if committed is None:
        return list(past)
    return [*(row for row in past if not row.is_of(committed)), committed]
