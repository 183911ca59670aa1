"""What the tests of the two source stages share: a context, an asker, small files."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from tasks.foundation import ROOT
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.run.context import select_rows
from tasks.foundation.settings import Settings, load_settings
from tasks.foundation.stage import AnySource, PreparedRows, Stage, Stored
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import PartWriter, StoredRows, open_part
from tasks.foundation.tables import TABLES, Row, Table
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.similarity import Similarity, similarity_of
from tasks.foundation.texts.word_encoder import WordEncoder

SAMPLE = ROOT / "configs" / "sample"


class FakeContext:
    """A `StageContext` that keeps rows in memory, but for those its writers have stored."""

    def __init__(self, stage: Stage, *overrides: str, encoder: Encoder | None = None, profile: str = "test") -> None:
        self.stage = stage
        self.settings: Settings = load_settings(profile, overrides)
        self._encoder = encoder or WordEncoder()
        self._rows: dict[str, list[Row]] = {}
        self._folder = tempfile.TemporaryDirectory()
        self._layout = Layout(Path(self._folder.name))

    def add(self, rows: PreparedRows) -> None:
        for name, some in rows.items():
            self._rows.setdefault(name, []).extend(rows_of(some))

    def made(self, table: str, where: pl.Expr | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        kind = self._table(table)
        frame = pl.from_arrow(kind.arrow(self._rows.get(table, [])))
        assert isinstance(frame, pl.DataFrame)
        return select_rows(frame.sort(list(kind.key)), where, columns)

    def writer(self, table: str) -> AbstractContextManager[PartWriter]:
        return open_part(self._layout, self._layout.root / f"{table}.parquet", self._table(table))

    def read(self, table: str, *portion: object) -> pl.DataFrame:
        raise AssertionError(f"the stage reads nothing, asked for {table}")

    def model(self, alias: str) -> ModelSpec:
        raise AssertionError(f"the stage needs no model spec, asked for {alias}")

    def encoder(self) -> Encoder:
        return self._encoder

    def similarity(self, language: Language) -> Similarity:
        return self._encoder if language == "en" else similarity_of(language, self.settings)

    def pinned(self, source: AnySource) -> AnySource:
        return source

    def _table(self, name: str) -> Table:
        return next((draft for draft in self.stage.drafts if draft.name == name), None) or TABLES[name]


def rows_of(some: Sequence[Row] | Stored) -> Sequence[Row]:
    """The rows of a table as `prepare` handed it over, held or stored."""
    if isinstance(some, StoredRows):
        return some.table.rows(pa.Table.from_batches(some.batches(), some.table.schema))
    assert isinstance(some, Sequence)
    return some


def write_jsonl(path: Path, rows: Sequence[Any]) -> Path:
    """One JSON value a line; a text that starts with '!' is written as it is, without the mark."""
    lines = [row[1:] if isinstance(row, str) and row.startswith("!") else json.dumps(row) for row in rows]
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path
