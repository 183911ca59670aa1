"""Any table of a build: its rows filtered by column, searched, ordered, a page at a time.

A filter is what the column is equal to. What begins with a sign is a comparison: `>=5`, `<0.5`, `!infra`, `~text` for a
text that is contained; `null` and `!null` ask for nothing and something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

import duckdb
import pyarrow as pa

from tasks.foundation.tables import TABLES, Table
from tasks.foundation.tables.references import references
from tasks.foundation.tables.types import is_optional
from tasks.report.questions import Record
from tasks.viewer.reading import BadAsk, NotThere, Reading, known_table

PAGE_ROWS = 50
DEEPEST = 10_000_000
"""Rows that can be turned over."""

RESERVED = ("q", "sort", "page", "commit")
"""Names in an address that are no columns."""

_SIGNED = re.compile(r"(>=|<=|>|<|!|~)?(.*)", re.DOTALL)
_OPERATORS = {">=": ">=", "<=": "<=", ">": ">", "<": "<", "!": "<>"}


@dataclass(frozen=True, slots=True)
class Asked:
    """Which rows of a table. `sort` is a column, with a minus sign before it from the top; empty: as they are
    stored."""

    filters: Mapping[str, str] = field(default_factory=dict)
    search: str = ""
    sort: str = ""
    page: int = 1

    @staticmethod
    def of(query: Mapping[str, str]) -> Asked:
        """From the query of an address. BadAsk for a page that is no number."""
        filters = {name: value for name, value in query.items() if name not in RESERVED and value != ""}
        return Asked(filters, query.get("q", "").strip(), query.get("sort", ""), page_of(query))


def page_of(query: Mapping[str, str]) -> int:
    """The page that the query of an address names, from 1."""
    found = query.get("page", "1")
    if not re.fullmatch("[0-9]{1,9}", found) or not 1 <= int(found) <= DEEPEST // PAGE_ROWS:
        raise BadAsk(f"page: expected a number from 1 on, found {found[:40]!r}")
    return int(found)


@dataclass(frozen=True, slots=True)
class Column:
    """A column as it can be asked for. `choices`: the values it may have, where those are few and known."""

    name: str
    about: str
    numeric: bool
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TablePage:
    """A page of a table. `total` counts the rows that fit; None where counting them would need a search through all."""

    table: str
    grain: str
    columns: tuple[Column, ...]
    asked: Asked
    rows: tuple[Record, ...]
    total: int | None
    more: bool

    @property
    def first(self) -> int:
        return (self.asked.page - 1) * PAGE_ROWS + 1


def read_page(reading: Reading, name: str, asked: Asked) -> TablePage:
    """The rows of a table that fit. NotThere for an unknown table, BadAsk for a filter that no column can meet."""
    table = known_table(name)
    test, given = _where(table, asked)
    order = _order(table, asked.sort)
    chosen = ", ".join(table.columns)
    page = f"limit {PAGE_ROWS + 1} offset {(asked.page - 1) * PAGE_ROWS}"
    try:
        found = reading.rows(f"select {chosen} from {name}{test}{order} {page}", given)
        total = None if asked.search else int(reading.rows(f"select count(*) as n from {name}{test}", given)[0]["n"])
    except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
        raise BadAsk(f"a filter does not fit its column: {str(error).splitlines()[0]}") from None
    return TablePage(
        table=name,
        grain=table.grain,
        columns=tuple(_columns(reading, table)),
        asked=asked,
        rows=tuple(found[:PAGE_ROWS]),
        total=total,
        more=len(found) > PAGE_ROWS,
    )


def count_tables(reading: Reading) -> list[tuple[Table, int]]:
    """Every table with its rows in the build."""
    names = list(TABLES)
    counts = reading.rows(" union all ".join(f"select '{name}' as name, count(*) as n from {name}" for name in names))
    by_name = {record["name"]: record["n"] for record in counts}
    return [(TABLES[name], by_name[name]) for name in names]


def _columns(reading: Reading, table: Table) -> Iterator[Column]:
    aliases = {one.columns[0] for one in references(table.name) if one.to == "models"} if table.name in TABLES else ()
    models = [record["alias"] for record in reading.rows("select alias from models order by alias")] if aliases else []
    for name, info in table.row.model_fields.items():
        choices = tuple(models) if name in aliases else _choices(info.annotation)
        yield Column(name, str(info.description), _is_number(table.schema.field(name).type), choices)


def _choices(annotation: Any) -> tuple[str, ...]:
    if is_optional(annotation):
        annotation = next(each for each in get_args(annotation) if each is not type(None))
    if annotation is bool:
        return ("true", "false")
    return tuple(str(each) for each in get_args(annotation)) if get_origin(annotation) is Literal else ()


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _where(table: Table, asked: Asked) -> tuple[str, list[Any]]:
    tests, given = [], []
    for name, value in asked.filters.items():
        _known_column(table, name)
        test, values = _test(name, table.schema.field(name).type, value)
        tests.append(test)
        given += values
    if asked.search:
        texts = [name for name in table.columns if not _is_number(table.schema.field(name).type)]
        tests.append("(" + " or ".join(f"contains(lower(cast({name} as varchar)), lower(?))" for name in texts) + ")")
        given += [asked.search] * len(texts)
    return (f" where {' and '.join(tests)}" if tests else ""), given


def _test(name: str, type_: pa.DataType, value: str) -> tuple[str, list[Any]]:
    """One filter as SQL, with its parameters."""
    if value in ("null", "!null"):
        return f"{name} is {'not ' if value[0] == '!' else ''}null", []
    found = _SIGNED.fullmatch(value)
    assert found is not None
    sign, rest = found[1] or "", found[2].strip() if found[1] else found[2]
    plain = pa.types.is_string(type_)
    nested = pa.types.is_list(type_) or pa.types.is_struct(type_)
    if sign == "~" or nested:
        return f"contains(lower(cast({name} as varchar)), lower(?))", [rest]
    if sign == "!":
        return f"{name} is distinct from {_typed(name, type_, rest, plain)}", [rest]
    return f"{name} {_OPERATORS.get(sign, '=')} {_typed(name, type_, rest, plain)}", [rest]


def _typed(name: str, type_: pa.DataType, value: str, plain: bool) -> str:
    """The parameter as the column's type; BadAsk for what is no number where one is needed."""
    if plain:
        return "?"
    if _is_number(type_):
        try:
            float(value)
        except ValueError:
            raise BadAsk(
                f"{name}: expected a number, after >, <, >=, <= or ! if you like; found {value[:40]!r}"
            ) from None
        return "cast(? as double)"
    return "cast(? as boolean)" if pa.types.is_boolean(type_) else "cast(? as timestamptz)"


def _order(table: Table, sort: str) -> str:
    if not sort:
        return ""
    name = sort.removeprefix("-")
    _known_column(table, name)
    ties = [column for column in table.key if column != name]
    way = "desc" if sort.startswith("-") else "asc"
    return f" order by {', '.join([f'{name} {way} nulls last', *ties])}"


def _known_column(table: Table, name: str) -> None:
    if name not in table.columns:
        raise BadAsk(f"table {table.name} has no column {name[:40]!r}; expected one of: {', '.join(table.columns)}")


def find_row(reading: Reading, name: str, key: Mapping[str, str]) -> Record:
    """The row of a table with this key; parts that are not named are null. NotThere where there is none."""
    table = known_table(name)
    for column in key:
        _known_column(table, column)
    tests, given = [], list[Any]()
    for column in table.key:
        type_ = table.schema.field(column).type
        if key.get(column) is None:
            tests.append(f"{column} is null")
            continue
        tests.append(f"{column} = {'cast(? as timestamptz)' if pa.types.is_timestamp(type_) else '?'}")
        if _is_number(type_):
            tests[-1] = f"cast({column} as varchar) = ?"
        given.append(key[column])
    chosen = ", ".join(table.columns)
    try:
        found = reading.one(f"select {chosen} from {name} where {' and '.join(tests)} limit 1", given)
    except duckdb.ConversionException:  # what is no time is no row's
        found = None
    if found is None:
        told = ", ".join(f"{column}={value!r}" for column, value in key.items()) or "no key"
        raise NotThere(
            f"{name} of build {reading.build!r} has no row with {told[:200]}. It may be of another build, or its "
            f"stage was run again since; the key is {', '.join(table.key)}"
        )
    return found


def rows_where(reading: Reading, name: str, values: Mapping[str, Any], order: Sequence[str] = ()) -> list[Record]:
    """The rows of a table whose columns are equal to these values, in key order or another."""
    table = known_table(name)
    tests = " and ".join(f"{column} = ?" for column in values)
    columns = ", ".join(table.columns)
    sql = f"select {columns} from {name} where {tests} order by {', '.join(order or table.key)}"
    return reading.rows(sql, list(values.values()))
