"""`colloquy sql`: one query with its answer, or a shell over the views."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli.answers import Format

if TYPE_CHECKING:
    import duckdb

    from tasks.foundation.store.layout import Layout


def sql(
    query: Annotated[str | None, typer.Argument(help="A query; a shell opens without.", show_default=False)] = None,
    build: Annotated[
        str | None, typer.Option(help="The build of schema main; that of `colloquy use` when not given.")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How the answer is written.")] = Format.table,
    file: Annotated[Path | None, typer.Option(help="A file with a query, as sql/reports/funnel.sql.")] = None,
) -> None:
    """Ask SQL of any stage's rows: schema main shows one build, schema history all of them. Read-only.

    Works while a run is writing. Without a query: a shell with history; .help there lists what it knows.
    """
    from tasks.foundation.errors import ConfigError
    from tasks.foundation.store.layout import Layout

    if query is not None and file is not None:
        raise ConfigError("expected a query or --file, found both")
    if file is not None:
        query = _text_of(file)
    if query is None and not sys.stdin.isatty():
        query = sys.stdin.read()
    layout = Layout.default()
    if query is None:
        from flows.cli.shell import Shell

        Shell(layout, form, build).run()
        return
    if form is Format.table:
        _say_build(layout, build)
    parts = pieces(query)
    if any(is_command(part) for part in parts):
        from flows.cli.shell import Shell

        Shell(layout, form, build).obey(parts)
        return
    with open_reading(layout, build) as connection:
        ask(connection, query, form, layout)


def open_reading(layout: Layout, build: str | None) -> duckdb.DuckDBPyConnection:
    """A connection to the views for users' own statements, which may only read."""
    from flows.cli.reading import only_reading
    from tasks.foundation.store.views import open_views

    return only_reading(open_views(layout, build))


def _say_build(layout: Layout, build: str | None) -> None:
    """Which build answers, to standard error; nothing where there is no other."""
    from tasks.foundation.store.commits import builds
    from tasks.foundation.store.views import shown_build

    there, shown = builds(layout), build or shown_build(layout)
    if len(there) > 1 and shown in there:
        typer.echo(f"schema main: build {shown}, one of {len(there)}; --build NAME asks another", err=True)


def pieces(text: str) -> list[str]:
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


def ask(connection: duckdb.DuckDBPyConnection, text: str, form: Format, layout: Layout) -> None:
    """Run every statement of `text` and write its answer; ConfigError with DuckDB's own words, or for one that writes
    into the artifacts folder."""
    import duckdb

    from flows.cli.answers import write
    from flows.cli.reading import refuse_writing
    from tasks.foundation.errors import ConfigError
    from tasks.foundation.store.views import told_of_reading

    try:
        with told_of_reading():
            for statement in connection.extract_statements(text):
                refuse_writing(statement, layout.root)
                write(connection, statement, form)
    except duckdb.Error as error:
        raise ConfigError(f"the query cannot be answered. {error}") from None


def _text_of(file: Path) -> str:
    from tasks.foundation.errors import ConfigError

    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the file with the query, {file}, cannot be read: {error}") from None
