"""Asks the files of sql/reports; an answer keeps the SQL that made it, so that a reader can ask it again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import compress
from typing import Any

import duckdb

from tasks.foundation import ROOT
from tasks.foundation.errors import ConfigError

REPORTS = ROOT / "sql" / "reports"

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What one file returned. `name` is the file's, without `.sql`; values are DuckDB's Python values."""

    name: str
    sql: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def question(self) -> str:
        """The question of the file's first line, without its grain: `whose fault ended a simulation?`."""
        return question_of(self.sql)

    @property
    def records(self) -> list[Record]:
        """The rows by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def where(self, **values: Any) -> QueryResult:
        """Only the rows that have these values."""
        return self._kept([self._has(row, values) for row in self.rows])

    def without(self, **values: Any) -> QueryResult:
        """All rows but those that have these values."""
        return self._kept([not self._has(row, values) for row in self.rows])

    def _has(self, row: tuple[Any, ...], values: Mapping[str, Any]) -> bool:
        return all(row[self.columns.index(name)] == value for name, value in values.items())

    def _kept(self, kept: Sequence[bool]) -> QueryResult:
        return QueryResult(self.name, self.sql, self.columns, tuple(compress(self.rows, kept)))

    def values(self, column: str) -> list[Any]:
        """The different values of a column, in the order in which they come."""
        place = self.columns.index(column)
        return list(dict.fromkeys(row[place] for row in self.rows))


def find_report(name: str) -> str:
    """The query of sql/reports of that name; ConfigError that names the nearest ones."""
    there = [each for each, _ in list_reports()]
    if name not in there:
        near = get_close_matches(name, there, 3, 0.4)
        raise ConfigError(
            f"expected the name of a query of sql/reports, found {name!r}"
            f"{'; the nearest: ' + ', '.join(near) if near else ''}. `colloquy sql @` lists all {len(there)}."
        )
    return (REPORTS / f"{name}.sql").read_text(encoding="utf-8")


def list_reports() -> Iterator[tuple[str, str]]:
    """Name and question of each query of sql/reports."""
    for file in sorted(REPORTS.glob("*.sql")):
        yield file.stem, question_of(file.read_text(encoding="utf-8"))


def question_of(sql: str) -> str:
    """The question of a query's first line."""
    first = sql.partition("\n")[0].removeprefix("--").strip()
    return first[: first.find("?") + 1] or first


def ask(connection: duckdb.DuckDBPyConnection, name: str) -> QueryResult:
    """The answer of sql/reports/<name>.sql."""
    sql = find_report(name)
    found = connection.execute(sql)
    columns = tuple(column[0] for column in found.description or ())
    return QueryResult(name, sql, columns, tuple(found.fetchall()))


def rows(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Any] = ()) -> list[Record]:
    """The rows of a query by column."""
    found = connection.execute(sql, list(parameters))
    columns = [column[0] for column in found.description or ()]
    return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]
