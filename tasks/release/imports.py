"""Rows made elsewhere become the first commit of a build, of the pseudo-stage `release`; the evaluation stages find
their inputs there as they would in the build that made them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from tasks.foundation.errors import StoreError
from tasks.foundation.ids import digest
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.store.commits import Commit, commits_of, read_commit, write_commit
from tasks.foundation.store.layout import FINGERPRINT_DIGITS, RELEASED, Layout, build_name
from tasks.foundation.store.locks import lock
from tasks.foundation.store.parts import content_hash, describe_part, write_part
from tasks.foundation.store.views import rebuild_views
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.types import Language
from tasks.release.folder import read_manifest, read_tables
from tasks.release.original import Imported, read_original


def import_release(layout: Layout, folder: Path, build: str) -> Commit:
    """Make the release in `folder` the first commit of `build`; does nothing when it is that already.

    Raises SourceError for a folder that is no release or has been changed, StoreError for a build that was made
    otherwise, ConfigError for a name that no build can have.
    """
    build = build_name(build, date.today())
    manifest = read_manifest(folder)
    hashes = {name: table["hash"] for name, table in manifest["tables"].items()}
    return _begin_build(layout, build, hashes, lambda: read_tables(folder, manifest), manifest)


def import_original(
    layout: Layout, files: Sequence[Path], build: str, licence: str, language: Language | None = None
) -> tuple[Commit, Imported]:
    """Make the files of the published DEMO benchmark the first commit of `build`; returns it and what was read.

    Raises as `import_release`, and SourceError for an entry that is none of theirs.
    """
    build = build_name(build, date.today())
    imported = read_original(files, language)
    rows = {"awareness_items": imported.items, "interaction_episodes": imported.episodes}
    tables = {name: TABLES[name].arrow(each) for name, each in rows.items() if each}
    source = {
        "stage": RELEASED,
        "name": "the published DEMO benchmark",
        "file": ", ".join(file.name for file in files),
        "licence": licence,
        "rows": len(imported.items) + len(imported.episodes),
        "used": len(imported.items) + len(imported.episodes),
        "unit": "entry",
    }
    manifest = {"sources": [source], "licences_of_sources": [licence]}
    hashes = {name: content_hash(table) for name, table in tables.items()}
    return _begin_build(layout, build, hashes, lambda: tables, manifest), imported


def _begin_build(
    layout: Layout, build: str, hashes: Mapping[str, str], read: Any, manifest: Mapping[str, Any]
) -> Commit:
    """The commit of what `read` gives; the one that is there where it has the same content."""
    fingerprint = digest("release", dict(hashes))[:FINGERPRINT_DIGITS]
    with lock(layout.lock(build, RELEASED), f"the import into build {build}", 0):
        found = read_commit(layout, build, RELEASED)
        if found is not None and found.fingerprint == fingerprint:
            return found
        if commits_of(layout, build):
            raise StoreError(f"build {build!r} holds other rows already; choose another name with --build")
        commit = _make_commit(layout, read(), build, fingerprint, manifest)
        write_commit(layout, commit)
        rebuild_views(layout)
        return commit


def _make_commit(
    layout: Layout, tables: Mapping[str, pa.Table], build: str, fingerprint: str, manifest: Mapping[str, Any]
) -> Commit:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    parts = {}
    for name, rows in tables.items():
        path = layout.part(name, build, fingerprint, "import", 0)
        write_part(layout, path, TABLES[name], rows, {})
        parts[name] = (describe_part(layout, path, TABLES[name], "import"),)
    total = sum(rows.num_rows for rows in tables.values())
    return Commit(
        build=build,
        stage=RELEASED,
        member=None,
        fingerprint=fingerprint,
        revision=0,
        partial=False,
        tables=parts,
        drafts={},
        accounting=Accounting(total, total),
        components={"release": fingerprint},
        parents={},
        started_at=now,
        ended_at=now,
        ends_chain=False,
        usage={"calls": 0, "cost_usd": 0.0},
        record={"released": dict(manifest)},
        columns={name: TABLES[name].shape for name in parts},
    )
