"""artifacts/colloquy.duckdb: views over committed files, with what is known of the commits.

Schema `main` shows one build, schema `history` all of them with a `build` column. The file is made beside its place
and renamed over it, so a reader sees one commit or the next; it is never opened for writing in place and may be deleted
at any time. What it knows is in catalogue.

A view asks a macro for its rows, and the macro holds the list of their files. A macro that takes the folder as a
parameter is not bound when it is made, so no file of any build is opened for that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Literal

import duckdb
import pyarrow as pa

from tasks.foundation import ROOT
from tasks.foundation.errors import StoreError
from tasks.foundation.ids import digest
from tasks.foundation.store.catalogue import DECLARED, Catalogue, Listed, known_commits, stamps
from tasks.foundation.store.commits import Commit, builds, newest_build, pinned_build
from tasks.foundation.store.files import explain_write_errors, replace_file, write_text
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.locks import lock
from tasks.foundation.tables import TABLES, Table
from tasks.foundation.tables.operations import BUILDS, STAGE_RUNS

STORAGE_VERSION = "v1.0.0"
"""Written in an old format, so that any DuckDB client of the last years opens it."""

VIEWS_WAIT_SECONDS = 120.0
"""For another process that writes the views; it takes a second."""


SQL = ROOT / "sql"

SHOWN, ALL = "main", "history"
"""The schemas: one build, and all of them."""


def rebuild_views(layout: Layout) -> None:
    """Bring the database file up to date with all commits. StoreError when it cannot be written.

    One process at a time, from reading the commits to the rename: else a slower one would take away what a
    quicker one has shown.
    """
    with explain_write_errors(layout.database), lock(layout.views_lock, "the writing of the views", VIEWS_WAIT_SECONDS):
        there = _written(layout)
        if there != "current":
            with _draft() as draft:
                _write(draft, layout, layout.database, further=there == "behind")
                replace_file(layout.database, layout.scratch, partial(_copy, draft))


def _written(layout: Layout) -> Literal["not", "behind", "current"]:
    """Whether there is a database file that this code has written, and shows the commits that are there now as it would
    in this folder."""
    found = _open(layout)
    if found is None:
        return "not"
    with found:
        return "current" if _shows(layout, Catalogue(found)) else "behind"


def open_views(layout: Layout, build: str | None = None) -> duckdb.DuckDBPyConnection:
    """A read-only connection to the views, brought up to date first when they do not show the commits that are there:
    when the file is missing, the folder has moved, tables have changed, or a run was killed before it came to them.

    With a build, schema `main` shows that one; StoreError when it does not exist.
    """
    if build is not None:
        return _open_views_of(layout, build)
    if _written(layout) != "current":
        rebuild_views(layout)
    return duckdb.connect(str(layout.database), read_only=True)


def _open_views_of(layout: Layout, build: str) -> duckdb.DuckDBPyConnection:
    """Views in a file of their own: DuckDB keeps only to files what is read-only, and then all it attaches."""
    _known(layout, build)
    with _draft() as file:
        _write(file, layout, file, build, further=_written(layout) != "not")
        spill = f"{layout.database}.tmp"
        return duckdb.connect(str(file), read_only=True, config={"temp_directory": spill})


def shown_build(layout: Layout) -> str | None:
    """The build that schema `main` shows: the pinned one, else the newest whose chain is complete, else the
    newest; None when there is none."""
    commits = ((one.ends_chain, datetime.fromisoformat(one.ended_at), one.build) for one in all_commits(layout))
    return pinned_build(layout) or newest_build(commits)


def choose_build(layout: Layout, named: str | None) -> str:
    """The build that is named, else the one that schema `main` shows; StoreError where there is none yet."""
    found = named or shown_build(layout)
    if found is None:
        raise StoreError(f"there is no build in {layout.root} yet: `colloquy run` makes one")
    return found


def all_commits(layout: Layout) -> list[Commit]:
    """The commits of all builds without their files (see `Commit.summary`), also where the database file is not up to
    date. A record that cannot be read is named in the log and left out."""
    found = _open(layout)
    if found is None:
        return known_commits(layout, None)
    with found:
        return known_commits(layout, Catalogue(found))


def use_build(layout: Layout, build: str) -> None:
    """Pin the build that schema `main` shows; StoreError when it does not exist."""
    _known(layout, build)
    write_text(layout.pin, layout.scratch, build)
    rebuild_views(layout)


def _known(layout: Layout, build: str) -> None:
    known = builds(layout)
    if build not in known:
        raise StoreError(f"build {build!r} does not exist; expected one of: {', '.join(known) or 'none is there yet'}")


def _open(layout: Layout) -> duckdb.DuckDBPyConnection | None:
    """The database file, if there is one that this code has written."""
    if not layout.database.exists():
        return None
    try:
        connection = duckdb.connect(str(layout.database), read_only=True)
    except duckdb.Error:
        return None
    if Catalogue(connection).shape == _shape():
        return connection
    connection.close()
    return None


def _shows(layout: Layout, catalogue: Catalogue) -> bool:
    facts = catalogue.facts
    made_for = (facts["root"], facts["places"], facts["pinned"])
    return made_for == _made_for(layout, layout.database) and catalogue.stamps == stamps(layout)


def _made_for(layout: Layout, path: Path) -> tuple[str, str, str | None]:
    """What a file of views depends on beside the code and the commits: the folder, where it lies itself, what is
    pinned."""
    places = sorted({str(path), str(path.resolve())})
    return str(layout.root), json.dumps(places), pinned_build(layout)


def _write(draft: Path, layout: Layout, place: Path, build: str | None = None, *, further: bool) -> None:
    """Fill `draft` with the views: those that are there, taken `further`, or all anew. `place` is where it will lie,
    `build` the one to show, if it is not the layout's."""
    if further:
        _copy(layout.database, draft)
    else:
        draft.write_bytes(_empty_file())
    with explain_reading_errors(), _attached(draft) as connection:
        _bring_up_to_date(connection, layout, place, build)


def _copy(source: Path, path: Path) -> None:
    copyfile(source, path)


@contextmanager
def _draft() -> Iterator[Path]:
    """A place to write a database in: not the artifacts folder, since DuckDB cannot write where a path has a `?`."""
    with TemporaryDirectory(prefix="colloquy-views-") as folder:
        yield Path(folder) / "colloquy.duckdb"


@contextmanager
def _attached(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """One transaction in a database file, which is whole once the block has ended."""
    with duckdb.connect() as connection:
        connection.execute(f"attach {literal(str(file))} as colloquy (storage_version '{STORAGE_VERSION}')")
        connection.execute("use colloquy")
        connection.execute("begin")
        yield connection
        connection.execute("commit")
        connection.execute("use memory")
        connection.execute("detach colloquy")


def _bring_up_to_date(connection: duckdb.DuckDBPyConnection, layout: Layout, place: Path, build: str | None) -> None:
    catalogue = Catalogue(connection)
    there, written, shown_before = stamps(layout), catalogue.stamps, catalogue.facts["shown"]
    changed = {key: there.get(key) for key in {*there, *written} if there.get(key) != written.get(key)}
    touched = catalogue.take(layout, changed)
    root, places, pinned = _made_for(layout, place)
    if (root, places) != (catalogue.facts["root"], catalogue.facts["places"]):
        for statement in place_macros(root, json.loads(places)):
            connection.execute(statement)
        touched = set(TABLES)
    shown = build or pinned or catalogue.newest()
    catalogue.note(shape=_shape(), root=root, places=places, pinned=pinned, shown=shown)
    for table, listed in catalogue.listed(touched).items():
        connection.execute(rows_macro(ALL, TABLES[table], listed, root))
    for table, listed in catalogue.listed(touched if shown == shown_before else TABLES, shown or "").items():
        connection.execute(rows_macro(SHOWN, TABLES[table], listed, root))


@cache
def _shape() -> str:
    """What all views have of the code and of sql/: with another, a file made earlier does not fit."""
    return digest(list(statements()), rows_macro(ALL, TABLES["scenes"], [Listed("b", "scenes", "{}", "f")], ""))


@cache
def _empty_file() -> bytes:
    """A file with all views, none of which has rows."""
    with _draft() as file:
        with _attached(file) as connection:
            for statement in statements():
                connection.execute(statement)
            Catalogue(connection).note(shape=_shape(), root="", places="[]", pinned=None, shown=None)
        return file.read_bytes()


@contextmanager
def explain_reading_errors() -> Iterator[None]:
    """StoreError where DuckDB cannot read a part of a build, or write its own file. Another file, which a user's query
    names, is DuckDB's to tell of."""
    try:
        yield
    except duckdb.IOException as error:
        first = str(error).partition("\n")[0]
        if "No space left" in first:
            raise StoreError(
                f"the database file cannot be written: {first}. What was committed is safe; free some space and run "
                "the same command, it goes on where it stopped."
            ) from None
        if "/build=" not in first and ".duckdb" not in first:
            raise
        raise StoreError(
            f"a file of a build cannot be read: {first}. `colloquy status` names the stages whose files are missing, "
            "and `colloquy run` makes them again (replies come from the cache)."
        ) from None


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
