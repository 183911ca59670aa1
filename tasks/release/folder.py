"""A released benchmark: the frozen items and seeds of a build in one folder that stands alone.

    benchmark-2026-12/
      README.md                     the dataset card, whose head a dataset hub understands
      manifest.json                 tables with rows and content hashes, sources, models, prices paid, version, canary
      data/awareness_items/en/test.parquet, test.jsonl    and so for each table and language
      data/persona_candidates/…     (only the personas that the seeds use)
      prompts/, taxonomies/         what targets, simulator and judges are asked, and the label sets
      results/<table>.parquet       with `results`: transcripts, predictions, judgements and metrics, as they are

Every row carries the canary string, by which a training corpus can be told to hold the benchmark. Contact data in
texts is hidden and counted.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tasks.awareness.task import STAGE as AWARENESS
from tasks.conversation.task import STAGE as CONVERSATION
from tasks.foundation import CONFIGS, ROOT
from tasks.foundation.errors import SourceError, StoreError
from tasks.foundation.ids import digest
from tasks.foundation.settings import load_settings
from tasks.foundation.store.commits import Commit, builds, commits_of
from tasks.foundation.store.files import replace_file, write_text
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import content_hash, part_batches, read_part
from tasks.foundation.store.records import Manifest, read_record
from tasks.foundation.tables import EVERY_STAGE, TABLES
from tasks.foundation.tables.dialogues import AwarenessItem, InteractionEpisode
from tasks.foundation.tables.languages import LANGUAGES
from tasks.interaction.task import STAGE as INTERACTION
from tasks.judging.task import STAGE as JUDGING
from tasks.metrics.task import STAGE as METRICS
from tasks.release.card import write_card
from tasks.release.contact_data import hide_in_rows
from tasks.release.leaks import Checked, check_material
from tasks.release.original import write_original
from tasks.release.provenance import sources_of

FROZEN = ("awareness_items", "interaction_episodes", "chat_seeds", "persona_candidates")
FORMAT = 2
MANIFEST = "manifest.json"
SPLIT = "test"
LEAKS_SHOWN = 5
CANARY = "canary"
"""The column that holds the canary string in released files."""

EVALUATION = (AWARENESS, INTERACTION, CONVERSATION, JUDGING)
"""Whose prompts and label sets go with the benchmark."""

RESULTS = tuple(dict.fromkeys(table for stage in (*EVALUATION, METRICS) for table in stage.writes))


@dataclass(frozen=True, slots=True)
class ReleaseForm:
    """What goes into a release. `results`: transcripts, predictions, judgements and metrics too. `contact_data`: as it
    stands, instead of hidden."""

    version: str = "1.0.0"
    results: bool = False
    contact_data: bool = False


def write_release(
    layout: Layout,
    build: str,
    folder: Path,
    local_providers: Collection[str],
    form: ReleaseForm = ReleaseForm(),
    material: Sequence[Path] = (),
) -> dict[str, int]:
    """Write the frozen tables that a build has; returns their rows. The release warns of models of `local_providers`.

    Raises StoreError when the build does not exist or has none of them, when the folder is not empty, or when training
    `material` (files or folders) holds any of it.
    """
    commits = _open_build(layout, build, folder)
    tables, hidden = _frozen_tables(layout, build, commits, form)
    checked = _refuse_leaks(check_material(tables, material)) if material else None
    canary = _make_canary(tables)
    files = {name: _write_table(folder, name, rows, canary) for name, rows in tables.items()}
    results = _write_results(layout, commits, folder) if form.results else {}
    _copy_what_is_asked(folder)
    manifest = {
        "format": FORMAT,
        "build": build,
        "version": form.version,
        "canary": canary,
        "released_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "tables": {
            name: {"rows": rows.num_rows, "hash": content_hash(rows), "files": files[name]}
            for name, rows in tables.items()
        },
        "results": results,
        "contact_data_hidden": dict(hidden),
        "checked_against": checked,
        "licences_of_sources": _licences_in(tables),
        "sources": sources_of(layout, commits, tables),
        "stages": _makers(commits),
    }
    write_text(folder / "README.md", folder, write_card(manifest, local_providers))
    write_text(folder / MANIFEST, folder, json.dumps(manifest, indent=1, ensure_ascii=False))
    return {name: rows.num_rows for name, rows in tables.items()}


def _refuse_leaks(checked: Checked) -> dict[str, Any]:
    """What a manifest says of the check; StoreError where the material holds anything of the benchmark."""
    if checked.leaks:
        shown = "; ".join(
            f"{leak.id} ({leak.table}) in {leak.where}"
            + ("" if leak.share is None else f", {100 * leak.share:.0f} % of its text")
            for leak in checked.leaks[:LEAKS_SHOWN]
        )
        raise StoreError(
            f"expected training material without anything of the benchmark, found {len(checked.leaks)} "
            f"{'place' if len(checked.leaks) == 1 else 'places'} that hold some: {shown}. Take these rows out of the "
            "material, or the items out of the benchmark."
        )
    return {"files": [Path(file).name for file in checked.files], "rows": checked.rows, "texts": checked.texts}


def write_original_release(layout: Layout, build: str, folder: Path) -> dict[str, int]:
    """Write the DEMO items and episodes of a build as the files of the published benchmark; returns the rows of each.

    Raises StoreError as `write_release` does, or for a build without DEMO's tables.
    """
    commits = _open_build(layout, build, folder)
    items = _rows_of(layout, commits, "awareness_items")
    episodes = _rows_of(layout, commits, "interaction_episodes")
    if not items.num_rows and not episodes.num_rows:
        raise StoreError(f"build {build!r} has no awareness items and no episodes, which are all that these files hold")
    folder.mkdir(parents=True, exist_ok=True)
    return write_original(
        folder,
        (AwarenessItem.model_validate(row) for row in items.to_pylist()),
        (InteractionEpisode.model_validate(row) for row in episodes.to_pylist()),
        load_settings().text_limits,
    )


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


def read_tables(folder: Path, manifest: Mapping[str, Any]) -> dict[str, pa.Table]:
    """The rows of every table. SourceError unless they are what the manifest says."""
    tables = {}
    for name, said in manifest["tables"].items():
        kind = TABLES[name]
        parts = [read_part(_own(folder, file), kind) for file in said["files"]]
        rows = _in_key_order(name, pa.concat_tables([kind.schema.empty_table(), *parts]))
        found = {"rows": rows.num_rows, "hash": content_hash(rows)}
        if found != {"rows": said["rows"], "hash": said["hash"]}:
            raise SourceError(f"{folder}, table {name}: expected what the manifest says ({said}), found {found}")
        tables[name] = rows
    return tables


def _own(folder: Path, name: str) -> Path:
    """A file of a release. SourceError for one that is elsewhere: what is released stands alone."""
    path = folder / name
    own = folder.resolve()
    if path.resolve() != own / name or not path.resolve().is_relative_to(own):
        raise SourceError(f"{path} leads out of the release, to {path.resolve()}: expected a file of its own")
    return path


def _open_build(layout: Layout, build: str, folder: Path) -> Mapping[str, Commit]:
    commits = commits_of(layout, build)
    if not commits:
        raise StoreError(f"build {build!r} does not exist; expected one of: {', '.join(builds(layout)) or 'none yet'}")
    if folder.exists() and any(folder.iterdir()):
        raise StoreError(f"{folder} is not empty; a release gets a folder of its own")
    return commits


def _frozen_tables(
    layout: Layout, build: str, commits: Mapping[str, Commit], form: ReleaseForm
) -> tuple[dict[str, pa.Table], Counter[str]]:
    """The rows of each frozen table that has any, and how much contact data was hidden in them, by kind."""
    tables = {name: rows for name in FROZEN[:-1] if (rows := _rows_of(layout, commits, name)).num_rows}
    if "chat_seeds" in tables:
        used = tables["chat_seeds"]["persona_id"].combine_chunks()
        tables["persona_candidates"] = _rows_of(layout, commits, "persona_candidates", used)
    if not tables:
        raise StoreError(f"build {build!r} has no items and no seeds yet; run it up to curation or chatseeds first")
    hidden: Counter[str] = Counter()
    if not form.contact_data:
        for name, rows in tables.items():
            tables[name], found = hide_in_rows(TABLES[name], rows)
            hidden += found
    return tables, hidden


def _rows_of(layout: Layout, commits: Mapping[str, Commit], table: str, ids: pa.Array | None = None) -> pa.Table:
    """The rows of a table in key order, or those with some ids only: a build may have a million personas."""
    kind = TABLES[table]
    paths = [part.path for commit in commits.values() for part in commit.tables.get(table, ())]
    batches = (batch for path in paths for batch in part_batches(layout.root / path, kind))
    if ids is not None:
        batches = (batch.filter(pc.is_in(batch[kind.key[0]], value_set=ids)) for batch in batches)
    return _in_key_order(table, pa.Table.from_batches(batches, kind.schema))


def _in_key_order(table: str, rows: pa.Table) -> pa.Table:
    return rows.sort_by([(column, "ascending") for column in TABLES[table].key])


def _make_canary(tables: Mapping[str, pa.Table]) -> str:
    """The same for the same rows, and nowhere else."""
    content = digest("canary", {name: content_hash(rows) for name, rows in tables.items()})
    return f"evaluation data, not for training: canary {UUID(content[:32])}"


def _write_table(folder: Path, name: str, rows: pa.Table, canary: str) -> list[str]:
    """Writes the rows of each language as Parquet and as JSON lines; returns the Parquet files."""
    written = []
    for language in LANGUAGES:
        part = rows.filter(pc.equal(rows["language"], language))
        if part.num_rows:
            part = part.append_column(CANARY, pa.array([canary] * part.num_rows, pa.utf8()))
            path = f"data/{name}/{language}/{SPLIT}"
            replace_file(folder / f"{path}.parquet", folder, partial(pq.write_table, part))
            lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in _plain_rows(name, part))
            write_text(folder / f"{path}.jsonl", folder, lines)
            written.append(f"{path}.parquet")
    return written


def _plain_rows(name: str, rows: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows for JSON lines: what a column holds as JSON in a text is there as what it says."""
    holds_json = TABLES[name].json_columns
    for row in rows.to_pylist():
        yield {column: json.loads(value) if value and column in holds_json else value for column, value in row.items()}


def _write_results(layout: Layout, commits: Mapping[str, Commit], folder: Path) -> dict[str, int]:
    written = {}
    for name in RESULTS:
        rows = _rows_of(layout, commits, name)
        if rows.num_rows:
            replace_file(folder / "results" / f"{name}.parquet", folder, partial(pq.write_table, rows))
            written[name] = rows.num_rows
    return written


def _copy_what_is_asked(folder: Path) -> None:
    """Prompts and label sets of the evaluation, as they are."""
    prompts = {prompt.path for stage in EVALUATION for prompt in stage.prompts}
    for name in sorted(prompts):
        for language in LANGUAGES:
            _copy(ROOT / "prompts" / f"{name}.{language}.yaml", folder / "prompts" / f"{name}.{language}.yaml")
    for name in sorted({taxonomy for stage in EVALUATION for taxonomy in stage.taxonomies}):
        _copy(CONFIGS / "taxonomies" / f"{name}.yaml", folder / "taxonomies" / f"{name}.yaml")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _licences_in(tables: Mapping[str, pa.Table]) -> list[str]:
    licensed = [rows["licence"].to_pylist() for rows in tables.values() if "licence" in rows.schema.names]
    return sorted({licence for rows in licensed for licence in rows})


def _makers(commits: Mapping[str, Commit]) -> dict[str, Any]:
    """What made the benchmark: fingerprint, models, calls and cost of each stage but the evaluation's."""
    return {
        commit.run: {
            "fingerprint": commit.fingerprint,
            "models": commit.record.get("models", {}),
            "calls": commit.usage.get("calls"),
            "cost_usd": commit.usage.get("cost_usd"),
        }
        for commit in commits.values()
        if commit.member is None and set(commit.tables) - set(EVERY_STAGE)  # targets and judges made none of it
    }
