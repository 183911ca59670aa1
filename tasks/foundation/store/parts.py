"""Parquet parts: written whole, read by name, hashed so that neither row order nor sharding shows.

The content hash of a table is the sum (mod 2^256) of the sha256 of its rows, so the hash of a table is
the sum of those of its parts, and equal rows give equal hashes however they were dealt out.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.foundation.errors import TableError
from tasks.foundation.store.files import explain_write_errors, replace_file, replacing
from tasks.foundation.store.layout import Layout
from tasks.foundation.tables import Table

_MODULUS = 2**256
_MAGIC = b"PAR1"
_TAIL = 4 + len(_MAGIC)
"""Bytes at the end of a Parquet file: the length of its footer, and the magic again."""
_BATCH = 4096
"""Rows of a part held at once where it is read or written in batches; a row group has about as many."""


@dataclass(frozen=True, slots=True)
class PartFile:
    """One committed file: path relative to the artifacts folder, rows, content hash (64 hex digits),
    and the label of the step or shard that wrote it."""

    path: str
    rows: int
    hash: str
    label: str


def write_part(layout: Layout, path: Path, table: Table, rows: pa.Table, facts: Mapping[str, str]) -> None:
    """Write `rows` (of the table's schema) as one part; `facts` become its Parquet metadata.

    Raises StoreError when it cannot be written. The part exists whole or not at all.
    """
    _require_schema(rows, table)
    rows = rows.replace_schema_metadata(dict(facts))
    replace_file(path, layout.scratch, lambda temporary: pq.write_table(rows, temporary, compression="zstd"))


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows of a table in a part, read only as far as they are needed."""

    path: Path
    table: Table

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in the order they were written, some thousands at once; of some columns only, if named."""
        return part_batches(self.path, self.table, columns)

    def column(self, name: str) -> Sequence[Any]:
        """The values of one column by position; a few row groups are held at a time."""
        return _StoredColumn(_open(self.path), name)

    def __len__(self) -> int:
        return int(_open(self.path).metadata.num_rows)


class _StoredColumn(Sequence[Any]):
    def __init__(self, file: pq.ParquetFile, name: str) -> None:
        rows = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        self._starts = [0, *itertools.accumulate(rows)]
        self._values = lru_cache(maxsize=4)(lambda number: file.read_row_group(number, columns=[name])[name])

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, position: int) -> Any: ...
    @overload
    def __getitem__(self, position: slice) -> list[Any]: ...
    def __getitem__(self, position: int | slice) -> Any:
        if isinstance(position, slice):
            return [self[each] for each in range(*position.indices(len(self)))]
        if not 0 <= position < len(self):
            raise IndexError(f"expected a position below {len(self)}, found {position}")
        group = bisect.bisect_right(self._starts, position) - 1
        return self._values(group)[position - self._starts[group]].as_py()


class PartWriter:
    """Writes one part a batch at a time, for tables too large to be held; made by `open_part`.

    Row groups are packed and written by a thread of its own, one at a time, while the next rows are made.
    """

    def __init__(self, stored: StoredRows, file: pq.ParquetWriter, thread: Executor) -> None:
        self.stored = stored
        self._file = file
        self._thread = thread
        self._writing: Future[None] | None = None
        self._waiting: list[pa.Table] = []

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Adds rows of the table's schema. Raises TableError for others, StoreError for a full disk."""
        _require_schema(rows, self.stored.table)
        self._waiting.append(pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows)
        if sum(each.num_rows for each in self._waiting) >= _BATCH:
            self._pack()

    def finish(self) -> None:
        """Writes what waits, and waits for it."""
        self._pack()
        if self._writing is not None:
            self._writing.result()

    def _pack(self) -> None:
        if self._writing is not None:
            self._writing.result()
        if self._waiting:
            self._writing = self._thread.submit(self._write, pa.concat_tables(self._waiting))
            self._waiting = []

    def _write(self, rows: pa.Table) -> None:
        try:
            with explain_write_errors(self.stored.path):
                self._file.write_table(rows)
        except pa.ArrowInvalid as error:
            raise TableError(f"table {self.stored.table.name}: rows do not fit its schema: {error}") from None


@contextlib.contextmanager
def open_part(layout: Layout, path: Path, table: Table) -> Iterator[PartWriter]:
    """A writer of one part, which is there, whole, once the block has ended without an error."""
    with replacing(path, layout.scratch) as temporary:
        with explain_write_errors(path):
            file = pq.ParquetWriter(temporary, table.schema, compression="zstd")
        with file, ThreadPoolExecutor(1) as thread:
            writer = PartWriter(StoredRows(path, table), file, thread)
            yield writer
            writer.finish()
            with explain_write_errors(path):
                file.close()


def _require_schema(rows: pa.Table | pa.RecordBatch, table: Table) -> None:
    if not rows.schema.equals(table.schema):
        raise TableError(f"table {table.name}: expected schema {table.schema}, found {rows.schema}")


def part_facts(path: Path) -> dict[str, str]:
    """The facts a part was written with."""
    metadata = _open(path).schema_arrow.metadata or {}
    return {name.decode(): value.decode() for name, value in metadata.items() if name != b"ARROW:schema"}


def is_whole(path: Path) -> bool:
    """Whether a part is there and as long as a Parquet file says it is; its content is not looked at."""
    try:
        with path.open("rb") as file:
            begins = file.read(len(_MAGIC))
            file.seek(-_TAIL, os.SEEK_END)
            size, tail = file.tell() + _TAIL, file.read()
    except OSError:
        return False
    footer = int.from_bytes(tail[:4], "little")
    return begins == tail[4:] == _MAGIC and footer + _TAIL + len(_MAGIC) <= size


def rows_in(path: Path) -> int | None:
    """Rows of a part by its own count; None when it is not there or cannot be read."""
    try:
        return int(_open(path).metadata.num_rows)
    except TableError:
        return None


def read_part(path: Path, table: Table, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of a part in the table's schema, columns by name (some, or all); TableError for a damaged file."""
    schema = _schema_of(table, columns)
    try:
        return pq.read_table(path, columns=schema.names, partitioning=None).select(schema.names).cast(schema)
    except (pa.ArrowException, OSError, KeyError) as error:
        raise TableError(f"part {path} of table {table.name} cannot be read: {error}") from None


def part_batches(path: Path, table: Table, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """As `read_part`, some thousand rows at once."""
    schema = _schema_of(table, columns)
    try:
        for batch in _open(path).iter_batches(_BATCH, columns=schema.names):
            yield batch.select(schema.names).cast(schema)
    except (pa.ArrowException, OSError, KeyError) as error:
        raise TableError(f"part {path} of table {table.name} cannot be read: {error}") from None


def _schema_of(table: Table, columns: Sequence[str] | None) -> pa.Schema:
    return table.schema if columns is None else pa.schema([table.schema.field(name) for name in columns])


def describe_part(layout: Layout, path: Path, table: Table, label: str) -> PartFile:
    """Row count and content hash of a part, read back from the file (also proves that it can be read)."""
    count, hashes = 0, []
    for batch in part_batches(path, table):
        count += batch.num_rows
        hashes.append(content_hash(pa.Table.from_batches([batch])))
    return PartFile(layout.relative(path), count, sum_hashes(hashes), label)


def content_hash(rows: pa.Table) -> str:
    """The content hash of rows, whatever their order; an empty table hashes to zeros."""
    total = 0
    for batch in rows.to_batches(max_chunksize=_BATCH):
        total += sum(_row_hash(row) for row in batch.to_pylist())
    return f"{total % _MODULUS:064x}"


def sum_hashes(hashes: Iterable[str]) -> str:
    return f"{sum(int(value, 16) for value in hashes) % _MODULUS:064x}"


def _row_hash(row: Mapping[str, Any]) -> int:
    text = _ROW_AS_JSON(row)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), "big")


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"no plain form for {type(value).__name__}")


_ROW_AS_JSON = json.JSONEncoder(sort_keys=True, ensure_ascii=False, default=_plain).encode


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"part {path} cannot be read: {error}") from None
