"""What a commit says of a stage run, computed from its parts: accounting, usage, unique keys."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tasks.foundation.errors import TableError
from tasks.foundation.llm.reply import SILENT_REPLIES_OF_A_STAGE, is_silent, silence_error
from tasks.foundation.run.context import Workspace
from tasks.foundation.run.cost_plan import PlannedCalls
from tasks.foundation.run.files import RunFiles, produced_in
from tasks.foundation.run.fingerprints import libraries
from tasks.foundation.run.opening import plain_settings
from tasks.foundation.sources.hub import Revisions
from tasks.foundation.stage import Stage
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.store.parts import PartFile
from tasks.foundation.tables import TABLES
from tasks.foundation.texts.similarity import describe

MAY_REPEAT = ("rejects", "llm_calls", "replies", "duplicates")
"""Tables in which a key may occur twice: one row rejected for two reasons, one reply cited by two rows."""

LIBRARIES = (
    "colloquy",
    "prefect",
    "duckdb",
    "polars",
    "pyarrow",
    "sentence-transformers",
    "scipy",
    "scikit-learn",
    "statsmodels",
    "krippendorff",
    "faiss-cpu",
    "openai",
    "google-genai",
    "xllamacpp",
)


def items_accounting(files: RunFiles, labels: Sequence[str], n_items: int) -> tuple[Accounting, bool]:
    """Where a run's items ended, counted from its shards; and whether some failed in a way that may pass."""
    produced, failed, partial = 0, Counter[str](), False
    for label in labels:
        shard = files.finished_shard(label)
        produced += produced_in(shard)
        for row in files.read(shard["rejects"], "rejects").to_pylist():
            failed[row["kind"]] += 1
            partial = partial or row["retryable"]
    return Accounting(n_items, produced, {}, failed), partial


def usage_of(files: RunFiles, ledger: Sequence[PartFile]) -> dict[str, Any]:
    """Sums over the ledger. Tokens and dollars are of the replies this run got; None: not all known."""
    columns = ["from_cache", "attempts", "finish_reason", "prompt_tokens", "completion_tokens", "cost_usd"]
    parts = [files.read(part.path, "llm_calls").select(columns) for part in ledger]
    rows = pa.concat_tables([TABLES["llm_calls"].schema.empty_table().select(columns), *parts])
    made = rows.filter(pc.invert(rows["from_cache"]))
    answered = made.filter(pc.is_valid(made["finish_reason"]))
    return {
        "requests": rows.num_rows,
        "calls": pc.sum(made["attempts"]).as_py() or 0,
        "from_cache": rows.num_rows - made.num_rows,
        "prompt_tokens": _total(answered["prompt_tokens"]),
        "completion_tokens": _total(answered["completion_tokens"]),
        "cost_usd": _total(answered["cost_usd"]),
    }


def _total(column: pa.ChunkedArray) -> float | None:
    """The sum; None when one of the values is not known. Dollars are added without rounding errors, in any order."""
    if column.null_count:
        return None
    if pa.types.is_floating(column.type):
        return math.fsum(column.to_pylist())
    return pc.sum(column).as_py() or 0


def check_silent_models(files: RunFiles, ledger: Sequence[PartFile], replies: Sequence[PartFile]) -> None:
    """ModelUnavailable when no reply of a model of the stage has a word."""
    columns = ["request_id", "alias", "error_kind"]
    parts = [files.read(part.path, "llm_calls", columns) for part in ledger]
    asked = pa.concat_tables([TABLES["llm_calls"].schema.empty_table().select(columns), *parts])
    answering = set(asked.filter(pc.is_null(asked["error_kind"]))["alias"].to_pylist())
    failed = {
        alias: kinds
        for alias, kinds in _failed_requests(asked, answering).items()
        if len(kinds) >= SILENT_REPLIES_OF_A_STAGE
    }
    if not failed:
        return
    texts: dict[str, str | None] = {}
    for part in replies:
        rows = files.read(part.path, "replies", ["request_id", "reply"])
        texts.update(zip(rows["request_id"].to_pylist(), rows["reply"].to_pylist(), strict=True))
    for alias, kinds in failed.items():
        if all(is_silent(kind, texts.get(request)) for request, kind in kinds.items()):
            raise silence_error(alias, [texts[request] or "" for request in kinds])


def _failed_requests(asked: pa.Table, answering: set[str]) -> dict[str, dict[str, str]]:
    """Error kinds by request, of each alias that is not `answering`."""
    failed: dict[str, dict[str, str]] = {}
    for row in asked.filter(pc.invert(pc.is_in(asked["alias"], pa.array(answering, pa.string())))).to_pylist():
        failed.setdefault(row["alias"], {})[row["request_id"]] = row["error_kind"]
    return failed


def check_keys(files: RunFiles, table: str, parts: Sequence[PartFile]) -> None:
    """TableError when two rows of a table have the same primary key."""
    if table in MAY_REPEAT:
        return
    kind = TABLES[table]
    key = list(kind.key)
    rows = [files.read(part.path, table, key) for part in parts]
    counts = (
        pa.concat_tables([kind.schema.empty_table().select(key), *rows]).group_by(key).aggregate([([], "count_all")])
    )
    twice = counts.filter(pc.greater(counts["count_all"], 1))
    if twice.num_rows:
        raise TableError(
            f"stage {files.stage.name} made {twice.num_rows} keys of table {table} more than once, for example "
            f"{kind.row_key(twice.to_pylist()[0])!r}; nothing was committed"
        )


def record_of(
    stage: Stage, workspace: Workspace, build: str, member: str | None, plan_revision: int, plan: Sequence[PlannedCalls]
) -> Mapping[str, Any]:
    """What people read in a commit: settings, sources, models, versions, and what was planned to be asked.
    `plan_revision` is whose shards were obeyed."""
    models = {alias: workspace.models[alias] for alias in stage.aliases(workspace.settings, member)}
    return {
        "plan_revision": plan_revision,
        "profile": workspace.profile,
        "overrides": list(workspace.remembered),
        "guest": workspace.guest,
        "settings": plain_settings(stage, workspace),
        "sources": Revisions.of(workspace.layout, build).describe(stage.sources(workspace.settings)),
        "models": {alias: {**spec.identity(), "family": spec.family} for alias, spec in models.items()},
        "roles": _roles(stage, workspace, member),
        "similarity": {name: describe(each) for name, each in workspace.similarities.items()} if stage.encodes else {},
        "libraries": libraries(LIBRARIES),
        "plan": [each.to_json() for each in plan],
    }


def _roles(stage: Stage, workspace: Workspace, member: str | None) -> dict[str, list[str]]:
    """The models by their roles; of the one that the stage fans out over, the member."""
    roles = {role: list(aliases) for role, aliases in stage.roles(workspace.settings).items() if aliases}
    return roles if member is None or stage.fan_out is None else {**roles, stage.fan_out: [member]}
