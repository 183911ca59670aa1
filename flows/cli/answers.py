"""Answers of a query as a box, as CSV or as JSON lines of one array."""

from __future__ import annotations

import csv
import json
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

MANY_ROWS = 1000
"""Rows of a box; more are cut in the middle. CSV and JSON always hold every row."""
WIDE = 100_000
LONG_TEXT = 80
BATCH = 2000


class Format(StrEnum):
    table = "table"
    csv = "csv"
    json = "json"


def write(connection: duckdb.DuckDBPyConnection, statement: duckdb.Statement, form: Format) -> None:
    """Run a statement and write its answer to standard output; duckdb.Error when it cannot be run."""
    if form is Format.table:
        _write_box(connection, statement)
        return
    connection.execute(statement)
    if connection.description is None:
        return
    names = unique_names([column[0] for column in connection.description])
    (_write_csv if form is Format.csv else _write_json)(names, _rows(connection))


def _write_box(connection: duckdb.DuckDBPyConnection, statement: duckdb.Statement) -> None:
    """As DuckDB draws it: cut to the terminal's width, whole in a file or pipe."""
    relation = connection.sql(statement.query)
    if relation is None:
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE
    relation.show(max_width=width, max_rows=MANY_ROWS, max_col_width=width if sys.stdout.isatty() else LONG_TEXT)


def _rows(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while rows := connection.fetchmany(BATCH):
        yield from rows


def _write_csv(names: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(value) for value in row] for row in rows)


def _write_json(names: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    """One array with an object a line, written as the rows come."""
    before = "["
    for row in rows:
        sys.stdout.write(f"{before}{_json(dict(zip(names, row, strict=True)))}")
        before = ",\n "
    sys.stdout.write("[]\n" if before == "[" else "]\n")


def unique_names(names: Sequence[str]) -> list[str]:
    """Column names as DuckDB tells equal ones apart (upper case and lower are equal): n, n_1, n_2."""
    taken: dict[str, int] = {}
    found: list[str] = []
    for name in names:
        unique = name
        while unique.lower() in taken:
            unique = f"{name}_{taken[name.lower()]}"
            taken[name.lower()] += 1
        taken[unique.lower()] = 1
        found.append(unique)
    return found


def _cell(value: Any) -> Any:
    """Nothing for null, JSON for lists and structs, true and false as SQL spells them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict | tuple):
        return _json(value)
    return value.isoformat() if isinstance(value, datetime) else value


def _json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """As JSON can say it: null for numbers that are none or infinite, text for what it has no form for."""
    if isinstance(value, Decimal | float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _key(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return value if value is None or isinstance(value, str | int) else str(value)


def _key(value: Any) -> str:
    """A key of a map that is no text."""
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
