"""artifacts/colloquy.duckdb: views over committed files, and nothing else.

Schema `main` shows one build, schema `history` all of them with a `build` column. The file is made anew
beside its place and renamed over it, so a reader sees one commit or the next; it is never opened for
writing in place and may be deleted at any time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa

from tasks.foundation.checkout import ROOT
from tasks.foundation.errors import StoreError
from tasks.foundation.ids import digest
from tasks.foundation.store.commits import Commit, builds, commits_of, shown_build
from tasks.foundation.store.durable import replace_file, told_of
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.locks import lock
from tasks.foundation.tables import TABLES, Table

SQL = ROOT / "sql"
STORAGE_VERSION = "v1.0.0"
"""Written in an old format, so that any DuckDB client of the last years opens it."""

VIEWS_WAIT_SECONDS = 120.0
"""For another process that writes the views; it takes seconds."""

_STAGE_RUN_COLUMNS = (
    ("build", "varchar"),
    ("stage", "varchar"),
    ("member", "varchar"),
    ("fingerprint", "varchar"),
    ("revision", "integer"),
    ("partial", "boolean"),
    ("n_in", "bigint"),
    ("n_produced", "bigint"),
    ("n_filtered", "bigint"),
    ("n_failed", "bigint"),
    ("filtered_by", "varchar"),
    ("failed_by", "varchar"),
    ("calls", "bigint"),
    ("cost_usd", "double"),
    ("started_at", "timestamptz"),
    ("ended_at", "timestamptz"),
)


def rebuild_views(layout: Layout) -> None:
    """Write the database file anew from all commits. StoreError when it cannot be written.

    One process at a time, from reading the commits to the rename: else a slower one would take away what a
    quicker one has shown.
    """

    def write(path: Path) -> None:
        _write_views(path, layout, shown_build(layout))

    with told_of(layout.database), lock(layout.views_lock, "the writing of the views", VIEWS_WAIT_SECONDS):
        replace_file(layout.database, layout.scratch, write)


def _write_views(path: Path, layout: Layout, shown: str | None) -> None:
    with told_of_reading(), duckdb.connect() as connection:
        connection.execute(f"attach '{_quoted(str(path))}' as colloquy (storage_version '{STORAGE_VERSION}')")
        connection.execute("use colloquy")
        _create_views(connection, layout, shown)
        connection.execute("use memory")
        connection.execute("detach colloquy")


@contextmanager
def told_of_reading() -> Iterator[None]:
    """StoreError where DuckDB cannot read a part of a build, or write its own file."""
    try:
        yield
    except duckdb.IOException as error:
        first = str(error).partition("\n")[0]
        if "No space left" in first:
            raise StoreError(
                f"the database file cannot be written: {first}. What was committed is safe; free some space and run "
                "the same command, it goes on where it stopped."
            ) from None
        raise StoreError(
            f"a file of a build cannot be read: {first}. `colloquy status` names the stages whose files are missing, "
            "and `colloquy run` makes them again (replies come from the cache)."
        ) from None


def open_views(layout: Layout, build: str | None = None) -> duckdb.DuckDBPyConnection:
    """A read-only connection to the views, made anew first when they are missing, when the folder has moved, or when
    tables have changed since.

    With a build, schema `main` shows that one; StoreError when it does not exist.
    """
    if build is not None:
        return _open_views_of(layout, build)
    if not _fits(layout):
        rebuild_views(layout)
    return duckdb.connect(str(layout.database), read_only=True)


def _open_views_of(layout: Layout, build: str) -> duckdb.DuckDBPyConnection:
    """Views in a file of their own: DuckDB keeps only to files what is read-only, and then all it attaches."""
    _known(layout, build)
    with TemporaryDirectory(prefix="colloquy-views-") as folder:
        file = Path(folder) / layout.database.name
        _write_views(file, layout, build)
        spill = f"{layout.database}.tmp"
        return duckdb.connect(str(file), read_only=True, config={"temp_directory": spill})


def views_of(layout: Layout, build: str) -> duckdb.DuckDBPyConnection:
    """The same views in memory, with schema `main` showing this build; StoreError when it does not exist."""
    _known(layout, build)
    connection = duckdb.connect()
    with told_of_reading():
        _create_views(connection, layout, build)
    return connection


def use_build(layout: Layout, build: str) -> None:
    """Pin the build that schema `main` shows; StoreError when it does not exist."""
    _known(layout, build)
    from tasks.foundation.store.durable import write_text

    write_text(layout.pin, layout.scratch, build)
    rebuild_views(layout)


def _known(layout: Layout, build: str) -> None:
    known = builds(layout)
    if build not in known:
        raise StoreError(f"build {build!r} does not exist; expected one of: {', '.join(known) or 'none is there yet'}")


def view_sql(table: Table, parts: str, schema: str = "main") -> str:
    """What creates the view of a table over the rows that the query `parts` gives: the text of sql/tables, which is a
    select over rows named `parts`, and over the table beside it."""
    named = {"parts": parts}
    if table.beside:
        named[table.beside] = f"select * from {schema}.{table.beside}"
    given = ", ".join(f"{name} as ({rows})" for name, rows in named.items())
    text = (SQL / "tables" / f"{table.name}.sql").read_text(encoding="utf-8")
    return f"create view {schema}.{table.name} as with {given}\n{text}"


def _fits(layout: Layout) -> bool:
    if not layout.database.exists():
        return False
    try:
        with duckdb.connect(str(layout.database), read_only=True) as connection:
            found = connection.execute("select main.store_root(), main.shape_of_views()").fetchone()
    except duckdb.Error:
        return False
    return found == (str(layout.root), _shape())


@cache
def _shape() -> str:
    """What all views have of the code and of sql/tables: with another, a file made earlier does not fit."""
    tables = [f"{_empty(table)}\n{view_sql(table, 'parts')}" for table in TABLES.values()]
    return digest(tables, _stage_runs({}))


def _create_views(connection: duckdb.DuckDBPyConnection, layout: Layout, shown: str | None) -> None:
    every = {build: commits_of(layout, build) for build in builds(layout)}
    current = {shown: every[shown]} if shown in every else {}
    connection.execute("create schema history")
    for table in sorted(TABLES.values(), key=lambda table: table.beside is not None):
        _create_view(connection, layout, "main", table, current)
        _create_view(connection, layout, "history", table, every)
    for schema, commits in (("main", current), ("history", every)):
        connection.execute(f"create view {schema}.stage_runs as {_stage_runs(commits)}")
    connection.execute(f"create macro main.shape_of_views() as '{_shape()}'")
    connection.execute(f"create macro main.store_root() as '{_quoted(str(layout.root))}'")


def _create_view(
    connection: duckdb.DuckDBPyConnection,
    layout: Layout,
    schema: str,
    table: Table,
    commits: Mapping[str, Mapping[str, Commit]],
) -> None:
    sources = [_empty(table)]
    for build, by_stage in commits.items():
        files = [part.path for commit in by_stage.values() for part in commit.tables.get(table.name, ())]
        if files:
            sources.append(f"select '{build}' as build, * from {_read_parquet(layout, files)}")
    connection.execute(view_sql(table, " union all by name ".join(sources), schema))


def _read_parquet(layout: Layout, files: Sequence[str]) -> str:
    listed = ", ".join(f"'{_quoted(str(layout.root / file))}'" for file in files)
    return f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"


def _empty(table: Table) -> str:
    """No rows with every column typed: what a table shows before it has rows, and what an old build lacks."""
    columns = [f"cast(null as {duckdb_type(field.type)}) as {field.name}" for field in table.schema]
    return f"select {', '.join(['cast(null as varchar) as build', *columns])} where false"


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


def _stage_runs(commits: Mapping[str, Mapping[str, Commit]]) -> str:
    columns = ", ".join(f"cast({name} as {type_}) as {name}" for name, type_ in _STAGE_RUN_COLUMNS)
    names = ", ".join(name for name, _ in _STAGE_RUN_COLUMNS)
    rows = [_stage_run(commit) for by_stage in commits.values() for commit in by_stage.values()]
    nothing = f"({', '.join('null' for _ in _STAGE_RUN_COLUMNS)})"
    where = "" if rows else " where false"
    return f"select {columns} from (values {', '.join(rows or [nothing])}) as runs({names}){where}"


def _stage_run(commit: Commit) -> str:
    accounting = commit.accounting
    values = (
        commit.build,
        commit.stage,
        commit.member,
        commit.fingerprint,
        commit.revision,
        commit.partial,
        accounting.n_in,
        accounting.n_produced,
        accounting.n_filtered,
        accounting.n_failed,
        json.dumps(dict(accounting.filtered), ensure_ascii=False),
        json.dumps(dict(accounting.failed), ensure_ascii=False),
        commit.usage.get("calls"),
        commit.usage.get("cost_usd"),
        commit.started_at,
        commit.ended_at,
    )
    return f"({', '.join(_literal(value) for value in values)})"


def _literal(value: str | int | float | bool | None) -> str:
    if value is None:
        return "null"
    return f"'{_quoted(value)}'" if isinstance(value, str) else str(value).lower()


def _quoted(text: str) -> str:
    return text.replace("'", "''")
