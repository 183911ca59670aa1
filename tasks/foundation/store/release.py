"""A released benchmark: the frozen items and seeds of a build in one folder that stands alone.

    benchmark-2026-12/
      manifest.json                 tables with rows and content hashes, where they come from, licences
      awareness_items.parquet       interaction_episodes.parquet       chat_seeds.parquet
      persona_candidates.parquet    (only the personas that the seeds use)
      README.md                     the dataset card: sources, revisions, licences, counts

A release is imported as the commit of one pseudo-stage, `release`, of a build of its own; the evaluation
stages then find their inputs there as they would in the build that made them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tasks.foundation.errors import SourceError, StoreError
from tasks.foundation.ids import digest
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.store.commits import Commit, builds, commits_of, read_commit, write_commit
from tasks.foundation.store.files import replace_file, write_text
from tasks.foundation.store.layout import FINGERPRINT_DIGITS, RELEASED, Layout, build_name
from tasks.foundation.store.locks import lock
from tasks.foundation.store.parts import content_hash, describe_part, part_batches, read_part, write_part
from tasks.foundation.store.records import Manifest, read_record
from tasks.foundation.store.release_card import card
from tasks.foundation.store.views import rebuild_views
from tasks.foundation.tables import EVERY_STAGE, TABLES

FROZEN = ("awareness_items", "interaction_episodes", "chat_seeds", "persona_candidates")
FORMAT = 1
MANIFEST = "manifest.json"


READ_INTO = {"personas": ("persona_candidates", "pool"), "scenes": ("seed_dialogues", "corpus")}
"""By stage: the table that holds the rows of its sources, and the column that names the source."""


def write_release(layout: Layout, build: str, folder: Path, local_providers: Collection[str]) -> dict[str, int]:
    """Write the frozen tables that a build has; returns their rows. The release warns of models of `local_providers`.

    Raises StoreError when the build does not exist or has none of them, or when the folder is not empty.
    """
    commits = commits_of(layout, build)
    if not commits:
        raise StoreError(f"build {build!r} does not exist; expected one of: {', '.join(builds(layout)) or 'none yet'}")
    if folder.exists() and any(folder.iterdir()):
        raise StoreError(f"{folder} is not empty; a release gets a folder of its own")
    tables = {name: rows for name in FROZEN[:-1] if (rows := _rows_of(layout, commits, name)).num_rows}
    if "chat_seeds" in tables:
        used = tables["chat_seeds"]["persona_id"].combine_chunks()
        tables["persona_candidates"] = _rows_of(layout, commits, "persona_candidates", used)
    if not tables:
        raise StoreError(f"build {build!r} has no items and no seeds yet; run it up to curation or chatseeds first")
    for name, rows in tables.items():
        replace_file(folder / f"{name}.parquet", folder, partial(pq.write_table, rows))
    manifest = _manifest(layout, build, commits, tables)
    write_text(folder / "README.md", folder, card(manifest, local_providers))
    write_text(folder / MANIFEST, folder, json.dumps(manifest, indent=1, ensure_ascii=False))
    return {name: rows.num_rows for name, rows in tables.items()}


def import_release(layout: Layout, folder: Path, build: str) -> Commit:
    """Make the release in `folder` the first commit of `build`; does nothing when it is that already.

    Raises SourceError for a folder that is no release or has been changed, StoreError for a build that was made
    otherwise, ConfigError for a name that no build can have.
    """
    build = build_name(build, date.today())
    manifest = read_manifest(folder)
    fingerprint = digest("release", manifest["tables"])[:FINGERPRINT_DIGITS]
    with lock(layout.lock(build, RELEASED), f"the import into build {build}", 0):
        found = read_commit(layout, build, RELEASED)
        if found is not None and found.fingerprint == fingerprint:
            return found
        if commits_of(layout, build):
            raise StoreError(f"build {build!r} holds other rows already; choose another name with --build")
        commit = _imported(layout, _read_tables(folder, manifest), build, fingerprint, manifest)
        write_commit(layout, commit)
        rebuild_views(layout)
        return commit


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a release, checked; SourceError when the folder has none, or one that says what none does."""
    path = folder / MANIFEST
    try:
        manifest, plain = read_record(_own(folder, MANIFEST), Manifest)
    except (OSError, ValueError) as error:
        raise SourceError(f"{folder} is no released benchmark: {path} cannot be read ({error})") from None
    if manifest.format != FORMAT or not set(manifest.tables) <= set(FROZEN):
        raise SourceError(
            f"{path}: expected format {FORMAT} with tables {', '.join(FROZEN)}, found format {manifest.format} with "
            f"{', '.join(manifest.tables)}"
        )
    return plain


def _own(folder: Path, name: str) -> Path:
    """A file of a release. SourceError for one that is elsewhere: what is released stands alone."""
    path = folder / name
    if path.resolve().parent != folder.resolve():
        raise SourceError(f"{path} leads out of the release, to {path.resolve()}: expected a file of its own")
    return path


def _rows_of(layout: Layout, commits: Mapping[str, Commit], table: str, ids: pa.Array | None = None) -> pa.Table:
    """The rows of a table in key order, or those with some ids only: a build may have a million personas."""
    kind = TABLES[table]
    paths = [part.path for commit in commits.values() for part in commit.tables.get(table, ())]
    batches = (batch for path in paths for batch in part_batches(layout.root / path, kind))
    if ids is not None:
        batches = (batch.filter(pc.is_in(batch[kind.key[0]], value_set=ids)) for batch in batches)
    return pa.Table.from_batches(batches, kind.schema).sort_by([(column, "ascending") for column in kind.key])


def _manifest(
    layout: Layout, build: str, commits: Mapping[str, Commit], tables: Mapping[str, pa.Table]
) -> dict[str, Any]:
    licensed = [rows["licence"].to_pylist() for rows in tables.values() if "licence" in rows.schema.names]
    return {
        "format": FORMAT,
        "build": build,
        "released_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "tables": {name: {"rows": rows.num_rows, "hash": content_hash(rows)} for name, rows in tables.items()},
        "licences_of_sources": sorted({licence for rows in licensed for licence in rows}),
        "sources": sources_of(layout, commits, tables),
        "stages": {
            commit.run: {"fingerprint": commit.fingerprint, "models": commit.record.get("models", {})}
            for commit in commits.values()
            if commit.member is None and set(commit.tables) - set(EVERY_STAGE)  # targets and judges made none of it
        },
    }


def _read_tables(folder: Path, manifest: Mapping[str, Any]) -> dict[str, pa.Table]:
    """The rows of every table. SourceError unless they are what the manifest says."""
    tables = {}
    for name, said in manifest["tables"].items():
        file = _own(folder, f"{name}.parquet")
        tables[name] = read_part(file, TABLES[name])
        found = {"rows": tables[name].num_rows, "hash": content_hash(tables[name])}
        if found != said:
            raise SourceError(f"{file} is not what the manifest says: expected {said}, found {found}")
    return tables


def _imported(
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


def sources_of(layout: Layout, commits: Mapping[str, Commit], released: Mapping[str, pa.Table]) -> list[dict[str, Any]]:
    """The sources of a build, each with the rows it has of it (`rows`) and how many of them the released rows go
    back to (`used`, in `unit`s). Of a build that was itself imported, what its release said.
    """
    found: list[dict[str, Any]] = []
    for commit in commits.values():
        found += commit.record.get("released", {}).get("sources", [])
        if commit.stage not in READ_INTO or not commit.record.get("sources"):
            continue
        table, name = READ_INTO[commit.stage]
        rows = Counter(_frame(layout, commits, table, [name])[name].to_list())
        used, unit = _personas(released) if commit.stage == "personas" else _dialogues(layout, commits, released)
        for source in commit.record["sources"]:
            said = {key: value for key, value in source.items() if key != "path"}
            place = {"file": PurePath(source["path"]).name} if "path" in source else {}
            counts = {"rows": rows[source["name"]], "used": used[source["name"]], "unit": unit}
            found.append({"stage": commit.stage, **said, **place, **counts})
    return found


def _personas(released: Mapping[str, pa.Table]) -> tuple[Counter[str], str]:
    """Released personas by pool."""
    rows = released.get("persona_candidates")
    return Counter(rows["pool"].to_pylist() if rows is not None else []), "persona"


def _dialogues(
    layout: Layout, commits: Mapping[str, Commit], released: Mapping[str, pa.Table]
) -> tuple[Counter[str], str]:
    """Dialogues of released items and episodes by the corpus of the seed that their scene was distilled from."""
    ids = {
        dialogue_id
        for table in ("awareness_items", "interaction_episodes")
        if table in released
        for dialogue_id in released[table]["dialogue_id"].to_pylist()
    }

    def read(table: str, *columns: str) -> pl.DataFrame:
        return _frame(layout, commits, table, columns)

    corpora = (
        read("dialogues", "dialogue_id", "pairing_id")
        .filter(pl.col("dialogue_id").is_in(list(ids)))
        .join(read("pairings", "pairing_id", "scene_id"), on="pairing_id")
        .join(read("scenes", "scene_id", "seed_id"), on="scene_id")
        .join(read("seed_dialogues", "seed_id", "corpus"), on="seed_id")
    )
    return Counter(corpora["corpus"].to_list()), "dialogue"


def _frame(layout: Layout, commits: Mapping[str, Commit], table: str, columns: Sequence[str]) -> pl.DataFrame:
    """Some columns of a table over all commits; without rows where no stage has made it."""
    kind = TABLES[table]
    schema = pa.schema([kind.schema.field(name) for name in columns])
    parts = [part.path for commit in commits.values() for part in commit.tables.get(table, ())]
    batches = [batch for path in parts for batch in part_batches(layout.root / path, kind, columns)]
    frame = pl.from_arrow(pa.Table.from_batches(batches, schema))
    assert isinstance(frame, pl.DataFrame)
    return frame
