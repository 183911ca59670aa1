"""One row: all its columns, what it refers to, what refers to it, and the requests that were made for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.foundation.tables import TABLES
from tasks.foundation.tables.references import (
    ASKED_FOR,
    AskedFor,
    Reference,
    asked_for,
    id_column,
    references,
    referred_by,
    table_of_id,
)
from tasks.report.questions import Record
from tasks.viewer.reading import NotThere, Reading, known_table
from tasks.viewer.tables import find_row

FEW = 10
"""Rows that refer to a row which its page shows; the table has them all."""

CALL = ("request_id", "stage", "row_key", "purpose", "revision", "alias", "attempts", "error_kind", "cost_usd")
"""Columns of a request as it is listed."""


@dataclass(frozen=True, slots=True)
class Parent:
    """What a row refers to; `row` None: it is not in the build."""

    columns: tuple[str, ...]
    table: str
    row: Record | None


@dataclass(frozen=True, slots=True)
class Children:
    """The rows of a table that refer to a row: how many, and the first of them. `filters` choose them."""

    table: str
    filters: Mapping[str, Any]
    total: int
    rows: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class RowPage:
    """`calls` are the requests that were made for the row, in the order in which they were answered."""

    table: str
    grain: str
    row: Record
    parents: tuple[Parent, ...]
    children: tuple[Children, ...]
    calls: tuple[Record, ...]


def read_row(reading: Reading, name: str, key: Mapping[str, str]) -> RowPage:
    """The row of a table with a key. NotThere where there is none."""
    row = find_row(reading, name, key)
    declared = name in TABLES
    return RowPage(
        table=name,
        grain=known_table(name).grain,
        row=row,
        parents=tuple(_parents(reading, name, row)) if declared else (),
        children=tuple(_children(reading, name, row)) if declared else (),
        calls=tuple(find_calls(reading, name, row)),
    )


def find_by_id(reading: Reading, content_id: str) -> tuple[str, Record]:
    """The table and the row of an id that stands alone. NotThere for what is no id, and where there is no such row."""
    table = table_of_id(content_id)
    if table is None:
        raise NotThere(
            f"{content_id[:80]!r} is no id of a row: expected a word and 16 hex digits, as scene_0123456789abcdef; "
            "any other row is found by its table and key"
        )
    column = id_column(table)
    chosen = ", ".join(TABLES[table].columns)
    row = reading.one(f"select {chosen} from {table} where {column} = ? limit 1", [content_id])
    if row is None:
        raise NotThere(
            f"{table} of build {reading.build!r} has no row {content_id!r}. It may be of another build, or its stage "
            "was run again since"
        )
    return table, row


def _parents(reading: Reading, name: str, row: Record) -> Iterator[Parent]:
    for one in references(name):
        values = [row[column] for column in one.columns]
        if None not in values:
            chosen = ", ".join(TABLES[one.to].columns)
            tests = " and ".join(f"{column} = ?" for column in one.to_columns)
            yield Parent(
                one.columns, one.to, reading.one(f"select {chosen} from {one.to} where {tests} limit 1", values)
            )


def _children(reading: Reading, name: str, row: Record) -> Iterator[Children]:
    if name == "models":  # everything that a model did: the tables tell that better
        return
    for other, one in referred_by(name):
        filters = _filters(one, row)
        tests = " and ".join(f"{column} = ?" for column in filters)
        given = list(filters.values())
        total = int(reading.rows(f"select count(*) as n from {other} where {tests}", given)[0]["n"])
        if total:
            chosen, order = ", ".join(TABLES[other].columns), ", ".join(TABLES[other].key)
            sql = f"select {chosen} from {other} where {tests} order by {order} limit {FEW}"
            yield Children(other, filters, total, tuple(reading.rows(sql, given)))


def _filters(reference: Reference, row: Record) -> dict[str, Any]:
    return {column: row[to] for column, to in zip(reference.columns, reference.to_columns, strict=True)}


def find_calls(reading: Reading, name: str, row: Mapping[str, Any]) -> list[Record]:
    """The requests that were made for a row, in the order in which they were answered. What a table does not have of
    their keys is looked up in the row that it refers to."""
    found: list[Record] = []
    if name == "rejects":
        found = _calls(reading, {"stage": row["stage"], "row_key": row["row_key"]})
    for way in ASKED_FOR.get(name, ()):
        if all(row.get(column) is not None for column in way.columns):
            found += _calls_by(reading, way, row)
    return list({(call["request_id"], call["row_key"], call["revision"]): call for call in found}.values())


def _calls_by(reading: Reading, way: AskedFor, row: Mapping[str, Any]) -> list[Record]:
    tests: dict[str, Any] = {"stage": way.stage, "row_key": way.key_of(row)}
    if way.alias:
        tests["alias"] = row[way.alias]
    calls = _calls(reading, tests)
    return [call for call in calls if not way.purposes or call["purpose"] in way.purposes]


def _calls(reading: Reading, tests: Mapping[str, Any]) -> list[Record]:
    condition = " and ".join(f"{column} = ?" for column in tests)
    sql = f"select {', '.join(CALL)} from llm_calls where {condition} order by created_at, purpose, request_id"
    return reading.rows(sql, list(tests.values()))


def find_asked_rows(reading: Reading, call: Mapping[str, Any]) -> list[tuple[str, Record]]:
    """The rows that a request was made for, each with its table."""
    found: list[tuple[str, Record]] = []
    for table, values in asked_for(call["stage"], call["row_key"]):
        columns = TABLES[table].columns
        tests = " and ".join(f"cast({column} as varchar) = ?" for column in values)
        ways = [way for way in ASKED_FOR[table] if way.alias and (not way.purposes or call["purpose"] in way.purposes)]
        alias = f" and {ways[0].alias} = ?" if ways else ""
        if not ways and any(way.purposes for way in ASKED_FOR[table]):
            continue
        given = [*values.values(), *([call["alias"]] if alias else [])]
        sql = f"select {', '.join(columns)} from {table} where {tests}{alias} order by all limit {FEW}"
        found += [(table, row) for row in reading.rows(sql, given)]
    return found
