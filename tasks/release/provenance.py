"""Where the rows of a release come from: their sources, and how many rows of each stand behind what is released."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import polars as pl
import pyarrow as pa

from tasks.foundation.store.commits import Commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import part_batches
from tasks.foundation.tables import TABLES

READ_INTO = {"personas": ("persona_candidates", "pool"), "scenes": ("seed_dialogues", "corpus")}
"""By stage: the table that holds the rows of its sources, and the column that names the source."""


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
