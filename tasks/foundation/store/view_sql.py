"""The SQL of the views: what creates them, what gives their rows, and what says what they hold.

A view asks a macro for its rows, and the macro holds the list of their files (see catalogue). A macro that takes the
folder as a parameter is not bound when it is made, so no file of any build is opened for that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import pyarrow as pa

from tasks.foundation import ROOT
from tasks.foundation.store.catalogue import DECLARED, Listed
from tasks.foundation.tables import TABLES, Table
from tasks.foundation.tables.operations import BUILDS, STAGE_RUNS

SQL = ROOT / "sql"

SHOWN, ALL = "main", "history"
"""The schemas: one build, and all of them."""


def rows_macro(schema: str, table: Table, listed: Sequence[Listed], root: str) -> str:
    """What creates the macro that gives a table's rows in a schema, with their build."""
    name = f'catalogue."{schema}.{table.name}"'
    return f"create or replace macro {name}(root) as table {' union all '.join(_selects(table, listed, root))}"


def _selects(table: Table, listed: Sequence[Listed], root: str) -> Iterator[str]:
    """One select over all files of the same columns. The build is a part of their paths; where a folder above them
    looks as if it named a column too, each build is read by itself."""
    alone = "=" in root

    def alike(one: Listed) -> tuple[str, str]:
        return one.columns, one.build if alone else ""

    for (columns, build), some in groupby(sorted(listed, key=alike), alike):
        files = literal("\n".join(one.files for one in some))
        reading = "false" if alone else "true, hive_types = {'build': 'varchar'}"
        yield (
            f"select {_columns(table, json.loads(columns), literal(build) if alone else 'build')} from "
            f"read_parquet(catalogue.listed(root, {files}), hive_partitioning = {reading})"
        )
    if not listed:
        yield _empty(table)


def _columns(table: Table, there: Mapping[str, str], build: str) -> str:
    typed = [(field.name, duckdb_type(field.type)) for field in table.schema]
    chosen = [f"cast({name if name in there else 'null'} as {type_}) as {name}" for name, type_ in typed]
    return ", ".join([f"{build} as build", *chosen])


def _empty(table: Table) -> str:
    """No rows with every column typed: what a table shows before it has rows."""
    return f"select {_columns(table, {}, 'cast(null as varchar)')} where false"


def statements() -> Iterator[str]:
    """What creates the empty views, with the comments on them."""
    columns = ", ".join(f"{field.name} {duckdb_type(field.type)}" for field in STAGE_RUNS.schema)
    yield DECLARED.format(columns_of_runs=columns)
    yield f"create schema {ALL}"
    yield "create macro catalogue.root() as ''"
    yield "create macro catalogue.in_place() as true"
    for schema in (SHOWN, ALL):
        for table in sorted(TABLES.values(), key=lambda table: table.beside is not None):
            yield rows_macro(schema, table, [], "")
            rows = f'select * from catalogue."{schema}.{table.name}"(catalogue.root()) where catalogue.in_place()'
            yield view_sql(table, rows, schema)
            yield from _comments(schema, table)
        which = "state = 'committed' and build = (select shown from catalogue.facts)" if schema == SHOWN else "true"
        chosen = ", ".join(["build", *STAGE_RUNS.columns])
        yield f"create view {schema}.stage_runs as select {chosen} from catalogue.runs where {which}"
        yield from _comments(schema, STAGE_RUNS)
        yield f"create view {schema}.builds as {(SQL / 'builds.sql').read_text(encoding='utf-8')}"
        yield from _comments(schema, BUILDS)
    yield from shared_macros()


def shared_macros() -> list[str]:
    """What creates the macros that reports and checks share, in schema main."""
    return [file.read_text(encoding="utf-8") for file in sorted((SQL / "macros").glob("*.sql"))]


def _comments(schema: str, table: Table) -> Iterator[str]:
    """What a row of a view is, and what its columns hold, where a client shows it."""
    described = {} if "build" in table.columns else {"build": "the build"}
    for name in (table.name, table.beside):
        if name is not None:
            fields = TABLES[name].row.model_fields if name in TABLES else table.row.model_fields
            described |= {column: field.description or "" for column, field in fields.items()}
    said = f"{table.grain}; key {', '.join(table.key)}"
    yield f"comment on view {schema}.{table.name} is {literal(said)}"
    for column, said in described.items():
        yield f"comment on column {schema}.{table.name}.{column} is {literal(said)}"


def view_sql(table: Table, rows: str, schema: str = SHOWN) -> str:
    """What creates the view of a table over the rows, with their build, that the query `rows` gives; beside them stand
    the other columns of the table that shares its key, null where that has no such row."""
    columns = [f"rows.{column}" for column in ("build", *table.columns)]
    source = f"({rows}) as rows"
    if table.beside:
        columns += [f"beside.{column}" for column in TABLES[table.beside].columns if column not in table.columns]
        source += f" left join {schema}.{table.beside} as beside using (build, {', '.join(table.key)})"
    return f"create view {schema}.{table.name} as select {', '.join(columns)} from {source}"


def place_macros(root: str, places: Sequence[str]) -> tuple[str, str]:
    """What says where the files are, and where this file must lie for them to be those that it means."""
    said = f"these views were made for {root} and have been moved or copied: open {places[0]}, or let `colloquy sql` "
    said += "with COLLOQUY_ARTIFACTS set to the folder make them anew"
    here = f"path in ({', '.join(map(literal, places))})"
    return (
        f"create or replace macro catalogue.root() as {literal(_globbed(root) + '/')}",
        "create or replace macro catalogue.in_place() as coalesce("
        f"(select bool_or(true) from duckdb_databases() where {here} or path[1] <> '/'), error({literal(said)}))",
    )


def _globbed(path: str) -> str:
    """A path that DuckDB takes for itself, though it has the signs of a pattern in it."""
    return re.sub(r"[\[?*]", lambda found: f"[{found[0]}]", path)


def duckdb_type(type_: pa.DataType) -> str:
    """The DuckDB type that an Arrow type reads as."""
    if pa.types.is_list(type_):
        return f"{duckdb_type(type_.value_type)}[]"
    if pa.types.is_struct(type_):
        return f"struct({', '.join(f'{field.name} {duckdb_type(field.type)}' for field in type_)})"
    names = {
        pa.utf8(): "varchar",
        pa.bool_(): "boolean",
        pa.int32(): "integer",
        pa.int64(): "bigint",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.timestamp("us", tz="UTC"): "timestamptz",
    }
    return names[type_]


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
