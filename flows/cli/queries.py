"""Queries of users: what they may do, and how their answers are written (a box, CSV, JSON lines of one array, Markdown,
Parquet).

A query may read, keep temporary things, and write an answer to one file outside the artifacts folder. That is decided
on DuckDB's own statement types and tokens, so that neither comments nor quoting hide anything. Its settings are locked
besides, which stops what a function called within a query would change.
"""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
from rich.table import Table as Grid

from flows.cli.console import make_table
from tasks.foundation.errors import ConfigError
from tasks.foundation.store.files import replacing
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import explain_reading_errors, open_views
from tasks.report.questions import list_reports

HARMLESS = ("SELECT", "SET", "TRANSACTION", "EXECUTE", "DETACH", "INSERT", "UPDATE", "DELETE", "MERGE_INTO", "DROP")
"""Statement types that change nothing in files: the views are opened read-only, settings are locked, and what was
prepared was looked at then."""
BEGIN_READING = ("select", "with", "from", "pivot", "unpivot", "pivot_wider", "pivot_longer", "values", "table", "(")
TEMPORARY = ("table", "view", "macro", "function")
TELLING = (
    *("collations", "database_list", "database_size", "functions", "metadata_info", "platform", "show"),
    *("show_databases", "show_tables", "show_tables_expanded", "storage_info", "table_info", "user_agent", "version"),
)
"""Pragmas that only tell."""
COPY_OPTIONS = (
    *("array", "codec", "compression", "compression_level", "dateformat", "delim", "delimiter", "encoding", "escape"),
    *("force_quote", "format", "header", "null", "nullstr", "parquet_version", "quote", "row_group_size", "sep"),
    *("row_group_size_bytes", "timestampformat"),
)
"""Those of one file; with others `copy` makes a folder, or names files as it likes."""
OPEN_SETTINGS = ("threads", "memory_limit", "timezone")
LOCKS = (
    "set allow_community_extensions = false",
    "set autoinstall_known_extensions = false",
    "set autoload_known_extensions = false",
    "set allow_persistent_secrets = false",
    "set allowed_directories = ['/']",
    f"set allowed_configs = {list(OPEN_SETTINGS)}",
    "set enable_external_access = false",
    "set lock_configuration = true",
)
"""Files of this machine may be read, nothing of the network; no setting changes any more but those above."""

MANY_ROWS = 1000
"""Rows of a box; more are cut in the middle. CSV and JSON always hold every row."""
WIDE = 100_000
LONG_TEXT = 80
BATCH = 2000


class Format(StrEnum):
    table = "table"
    csv = "csv"
    json = "json"
    md = "md"
    parquet = "parquet"


def open_reading(layout: Layout, build: str | None) -> duckdb.DuckDBPyConnection:
    """A connection to the views for users' own statements, which may only read."""
    connection = open_views(layout, build)
    for lock in LOCKS:
        connection.execute(lock)
    return connection


def ask(connection: duckdb.DuckDBPyConnection, text: str, form: Format, layout: Layout) -> None:
    """Run every statement of `text` and write its answer; ConfigError with DuckDB's own words, or for one that writes
    into the artifacts folder."""
    try:
        with explain_reading_errors():
            for statement in connection.extract_statements(text):
                refuse_writing(statement, layout.root)
                write_answer(connection, statement, form)
    except duckdb.Error as error:
        raise ConfigError(f"the query cannot be answered. {error}") from None


def ask_into(connection: duckdb.DuckDBPyConnection, text: str, form: Format, layout: Layout, file: Path | None) -> None:
    """As `ask`, but the answer of the one statement goes to a file, which is there whole or not at all."""
    if file is None:
        if form is Format.parquet:
            raise ConfigError("expected --output FILE with --format parquet")
        ask(connection, text, form, layout)
        return
    if not _is_outside(str(file), layout.root):
        raise ConfigError(f"expected --output outside {layout.root}, which only runs may change, found {file}")
    if len(split_into_statements(text)) != 1:
        raise ConfigError("expected one statement with --output")
    with replacing(file, file.parent) as part, part.open("w", encoding="utf-8") as out, redirect_stdout(out):
        ask(connection, text, form, layout)


def split_into_statements(text: str) -> list[duckdb.Statement]:
    """ConfigError with DuckDB's own words for what it cannot read."""
    try:
        return list(duckdb.extract_statements(text))
    except duckdb.Error as error:
        raise ConfigError(f"the query cannot be answered. {error}") from None


def named_grid() -> Grid:
    """The queries that have names, with what they ask."""
    grid = make_table("query", "asks")
    for name, question in list_reports():
        grid.add_row(f"@{name}", question)
    return grid


def split_statements(text: str) -> list[str]:
    """`text` as dot commands and the statements between them, in order.

    A line that begins with a dot is a command only where a statement may begin.
    """
    found = [""]
    for line in text.splitlines(keepends=True):
        if is_command(line) and ends_input(found[-1]):
            found += [line.strip(), ""]
        else:
            found[-1] += line
    return [part for part in found if part.strip()]


def is_command(text: str) -> bool:
    """Whether a line is ours rather than SQL; `.5` is a number."""
    return re.match(r"\s*\.[a-z]", text) is not None


def ends_input(text: str) -> bool:
    """Whether Enter ends the input: a finished statement, a dot command or nothing at all."""
    text = text.strip()
    return not text or text.startswith(".") or text.endswith(";")


def refuse_writing(statement: duckdb.Statement, root: Path) -> None:
    """ConfigError for a statement that could write a file, other than an answer outside `root`."""
    _refuse(_type_of(statement), _words(statement.query), statement.query, root)


def _refuse(kind: str, words: Sequence[str], text: str, root: Path) -> None:
    first = words[0].lower() if words else ""
    if kind in HARMLESS or (kind == "MULTI" and first in BEGIN_READING):
        return
    if first == "copy" and kind in ("COPY", "MULTI"):
        _refuse_copy(words, root)
    elif first in ("explain", "prepare"):
        _refuse_within(words, text, root)
    elif not (
        (first == "create" and _is_temporary(words))
        or (kind == "ATTACH" and _only_reads(words))
        or (kind in ("PRAGMA", "CALL") and _tells(words))
    ):
        raise ConfigError(
            f"`colloquy sql` is read-only: expected a query, temporary tables, views and macros (create temp …), or "
            f"`copy (…) to 'FILE'` outside {root}; found {text.strip()[:80]!r}"
        )


def _type_of(statement: duckdb.Statement) -> str:
    """The type's name; empty for one that DuckDB's Python does not know yet."""
    try:
        return statement.type.name
    except ValueError:
        return ""


def _words(text: str) -> list[str]:
    """The tokens of a statement without comments and semicolons, as they are written."""
    return [word for word, _ in _placed(text)]


def _placed(text: str) -> list[tuple[str, int]]:
    """Tokens, each with its place in the text's UTF-8."""
    raw = text.encode()
    tokens = [*duckdb.tokenize(text), (len(raw), duckdb.token_type.comment)]
    words = [
        (raw[start:end].decode().strip(), start)
        for (start, kind), (end, _) in pairwise(tokens)
        if kind != duckdb.token_type.comment
    ]
    return [(word, start) for word, start in words if word != ";"]


def _refuse_within(words: Sequence[str], text: str, root: Path) -> None:
    """As for the statement that an `explain` or `prepare` holds."""
    placed = _placed(text)
    if words[0].lower() == "prepare":
        begins = [word.lower() for word in words].index("as") + 1
    else:
        begins = 2 if words[1].lower() == "analyze" else 1
        begins = words.index(")") + 1 if words[1] == "(" and words[2].lower() in ("analyze", "format") else begins
    inner = text.encode()[placed[begins][1] :].decode()
    for statement in duckdb.extract_statements(inner):
        refuse_writing(statement, root)


def _refuse_copy(words: Sequence[str], root: Path) -> None:
    """ConfigError unless a `copy` reads a file, or writes one that is plainly outside `root`."""
    place = _behind_source(words)
    if words[place].lower() == "from":
        return
    file, options = words[place + 1], words[place + 2 :]
    if options and options[0].lower() == "with":
        options = options[1:]
    plain = file.startswith("'") and _is_outside(file[1:-1].replace("''", "'"), root)
    if not plain or not _options_of(options) <= set(COPY_OPTIONS):
        raise ConfigError(
            f"a query may write its answer with `copy (…) to 'FILE'` to one file, a plain path outside {root}, which "
            f"only runs may change, with options in parentheses of: {', '.join(COPY_OPTIONS)}; found "
            f"{' '.join([file, *options])!r}"
        )


def _behind_source(words: Sequence[str]) -> int:
    """Where a `copy` says `to` or `from`: behind its query, or its table with the columns. A part of a table's name may
    be either word."""
    place = 1
    if words[place] != "(":
        place += 1
        while words[place] == ".":
            place += 2
    if words[place] == "(":
        place = next(number for number in range(place + 1, len(words)) if not _depth(words, number))
    return place


def _depth(words: Sequence[str], place: int) -> int:
    """How many parentheses are open there."""
    return words[:place].count("(") - words[:place].count(")")


def _options_of(words: Sequence[str]) -> set[str]:
    """The names in `(name value, name value)`, lower case; what is not in parentheses counts as names."""
    if not words or words[0] != "(" or words[-1] != ")":
        return {word.lower() for word in words}
    starts = [n + 1 for n, word in enumerate(words) if word in "(," and _depth(words, n + (word == "(")) == 1]
    return {words[start].lower() for start in starts}


def _is_outside(place: str, root: Path) -> bool:
    """Whether DuckDB takes `place` for a path of this machine, and it leads out of `root`."""
    if not place or place.startswith(("~", "file:")) or "://" in place or "\0" in place:
        return False
    try:
        return not Path(place).resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False


def _is_temporary(words: Sequence[str]) -> bool:
    said = [word.lower() for word in words[1:6]]
    said = said[2:] if said[:2] == ["or", "replace"] else said
    return said[0] in ("temp", "temporary") and said[1] in TEMPORARY


def _only_reads(words: Sequence[str]) -> bool:
    """Whether an `attach` asks for nothing: the file is then opened read-only, as the views are."""
    options = words[words.index("(") :] if "(" in words else ()
    return {word.lower() for word in options} <= {"(", ")", "read_only"}


def _tells(words: Sequence[str]) -> bool:
    name = words[1].lower() if len(words) > 1 else ""
    return name in TELLING or name.startswith(("duckdb_", "pragma_"))


def write_answer(connection: duckdb.DuckDBPyConnection, statement: duckdb.Statement, form: Format) -> None:
    """Run a statement and write its answer to standard output; duckdb.Error when it cannot be run."""
    if form is Format.table:
        _write_box(connection, statement)
        return
    if form is Format.parquet:
        _write_parquet(connection, statement)
        return
    connection.execute(statement)
    if connection.description is None:
        return
    names = unique_names([column[0] for column in connection.description])
    write = {Format.csv: _write_csv, Format.json: _write_json, Format.md: write_markdown}[form]
    write(names, _rows(connection))


def _write_parquet(connection: duckdb.DuckDBPyConnection, statement: duckdb.Statement) -> None:
    """Batch by batch into what standard output is: a file, never a terminal."""
    relation = connection.sql(statement.query)
    if relation is None:
        raise ConfigError("expected a statement that answers with rows, for --format parquet")
    reader = relation.to_arrow_reader(BATCH)
    with pq.ParquetWriter(sys.stdout.buffer, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def write_markdown(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table of Markdown; columns of numbers stand to the right. Nothing for null."""
    held = [list(row) for row in rows]
    numeric = [
        any(row[place] is not None for row in held)
        and all(_is_number(row[place]) for row in held if row[place] is not None)
        for place in range(len(names))
    ]
    sys.stdout.write(f"| {' | '.join(map(_markdown, names))} |\n")
    sys.stdout.write(f"|{'|'.join('---:' if right else '---' for right in numeric)}|\n")
    for row in held:
        sys.stdout.write(f"| {' | '.join(_markdown(_cell(value)) for value in row)} |\n")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _markdown(value: Any) -> str:
    """A value as a cell: one line, in which nothing is markup."""
    text = "" if value is None else " ".join(str(value).split())
    return re.sub(r"([\\|*`<>\[\]])", r"\\\1", text)


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
