"""Rows of files that hold tables: parquet, Arrow (as `save_to_disk` writes it), SQLite, DuckDB, sheets of workbooks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.foundation.errors import SourceError
from tasks.foundation.sources.formats import read_batches, to_plain
from tasks.foundation.sources.rows import SourceRow

BATCH = 1024
"""Rows held in memory at once."""
READ_AHEAD = 2**20
"""Bytes of each parquet column read at once; row groups may be far larger."""
DATABASES = (".db", ".sqlite", ".sqlite3", ".duckdb", ".ddb")
BOOKS = (".xlsx",)
FILES = (".parquet", ".arrow", *DATABASES, *BOOKS)
_SQLITE = b"SQLite format 3\x00"


def read_table(path: Path, label: str, columns: Sequence[str], table: str | None) -> Iterator[SourceRow]:
    """Rows of a file, named "<label>:<number from 1>". `columns` names what is needed, of parquet nothing else is read.

    `table` names the table of a database or the sheet of a workbook; a database of one table needs none. Raises
    SourceError for a file that is cut short or no such file, and for a table that is not there.
    """
    kind = path.suffix.lower()
    try:
        if kind == ".parquet":
            yield from _read_parquet(path, label, columns)
        elif kind == ".arrow":
            yield from _read_arrow(path, label)
        elif kind in BOOKS:
            yield from _read_book(path, label, table)
        elif _is_sqlite(path):
            yield from _read_sqlite(path, label, table)
        else:
            yield from _read_duckdb(path, label, table)
    except (pa.ArrowException, OSError, sqlite3.Error, duckdb.Error) as error:
        raise SourceError(
            f"source file {path} cannot be read as {kind.removeprefix('.')}: expected a whole {kind.removeprefix('.')} "
            f"file, found {error}. It is probably cut short: fetch it again."
        ) from None


def refuse_twice(columns: Sequence[str], name: str) -> None:
    """SourceError for a column that is there twice."""
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise SourceError(
            f"source file {name}: expected each column once, found {', '.join(map(repr, twice))} more than once. "
            "Rename one of them."
        )


def _read_parquet(path: Path, label: str, columns: Sequence[str]) -> Iterator[SourceRow]:
    with pq.ParquetFile(path, buffer_size=READ_AHEAD) as file:
        refuse_twice(file.schema_arrow.names, str(path))
        known = set(columns) <= set(file.schema_arrow.names)
        needed = list(columns) if columns and known else None
        yield from read_batches(file.iter_batches(BATCH, columns=needed), label)


def _read_arrow(path: Path, label: str) -> Iterator[SourceRow]:
    """Of either form: a stream, as `save_to_disk` writes it, or a file."""
    with pa.memory_map(str(path)) as file:
        if file.read(6) == b"ARROW1":
            whole = pa.ipc.open_file(file)
            batches = (whole.get_batch(number) for number in range(whole.num_record_batches))
        else:
            file.seek(0)
            batches = iter(pa.ipc.open_stream(file))
        yield from read_batches(batches, label)


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _read_sqlite(path: Path, label: str, table: str | None) -> Iterator[SourceRow]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        named = database.execute(
            "select name from sqlite_master where type in ('table', 'view') and name not like 'sqlite\\_%' escape '\\'"
        )
        found = database.execute(f"select * from {_quoted(_chosen([name for (name,) in named], table, path))}")
        names = [column[0] for column in found.description]
        for index, values in enumerate(found):
            row = {name: to_plain(value) for name, value in zip(names, values, strict=True)}
            yield SourceRow(index, f"{label}:{index + 1}", row)


def _read_duckdb(path: Path, label: str, table: str | None) -> Iterator[SourceRow]:
    with duckdb.connect(str(path), read_only=True) as database:
        named = database.execute("select table_name from information_schema.tables order by 1").fetchall()
        chosen = _chosen([name for (name,) in named], table, path)
        yield from read_batches(database.sql(f"select * from {_quoted(chosen)}").to_arrow_reader(BATCH), label)


def _read_book(path: Path, label: str, sheet: str | None) -> Iterator[SourceRow]:
    try:
        frame = pl.read_excel(path, sheet_name=sheet) if sheet else pl.read_excel(path)
    except ModuleNotFoundError:
        raise SourceError(
            f"source file {path} is a workbook, which polars reads with the package fastexcel: expected it to be "
            "installed. Run `pip install fastexcel`, or save the sheet as .csv."
        ) from None
    except (ValueError, pl.exceptions.PolarsError) as error:
        raise SourceError(
            f"source file {path} cannot be read as a workbook: {error}. Save the sheet as .csv."
        ) from None
    yield from read_batches(frame.to_arrow().to_batches(BATCH), label)


def _chosen(tables: Sequence[str], wanted: str | None, path: Path) -> str:
    if wanted in tables:
        return str(wanted)
    if wanted is None and len(tables) == 1:
        return tables[0]
    expected = f"the table {wanted!r}" if wanted else "the name of one table in `table`"
    raise SourceError(f"source file {path}: expected {expected}, found {', '.join(sorted(tables)) or 'no table'}.")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
