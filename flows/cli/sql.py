"""`colloquy sql`: one query with its answer, or a shell over the views."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli.console import terminal
from flows.cli.queries import Format, ask_into, is_command, named_grid, open_reading, split_statements
from tasks.foundation.errors import ConfigError
from tasks.foundation.store.commits import builds
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import shown_build
from tasks.report.questions import find_report

if TYPE_CHECKING:
    from flows.cli.shell import Shell


def sql(
    query: Annotated[
        str | None,
        typer.Argument(help="A query, or @NAME of sql/reports; a shell opens without.", show_default=False),
    ] = None,
    build: Annotated[
        str | None, typer.Option(help="The build of schema main; that of `colloquy use` when not given.")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How the answer is written.")] = Format.table,
    file: Annotated[Path | None, typer.Option(help="A file with a query, as sql/reports/funnel.sql.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file for the answer, instead of the screen.")
    ] = None,
) -> None:
    """Ask SQL of any stage's rows: schema main shows one build, schema history all of them. Read-only.

    Works while a run is writing. Without a query: a shell with history; .help there lists what it knows. @NAME asks a
    query of sql/reports; @ alone lists them.
    """
    if query is not None and file is not None:
        raise ConfigError("expected a query or --file, found both")
    if file is not None:
        query = _text_of(file)
    if query is None and not sys.stdin.isatty():
        query = sys.stdin.read()
    if query is not None and query.strip() == "@":
        terminal().print(named_grid())
        return
    if query is not None and query.lstrip().startswith("@"):
        query = find_report(query.strip().removeprefix("@").rstrip(";"))
    layout = Layout.default()
    if query is None:
        _shell(layout, form, build).run()
        return
    if form is Format.table and output is None:
        _say_build(layout, build)
    parts = split_statements(query)
    if any(is_command(part) for part in parts):
        _shell(layout, form, build).obey(parts)
        return
    with open_reading(layout, build) as connection:
        ask_into(connection, query, form, layout, output)


def _shell(layout: Layout, form: Format, build: str | None) -> Shell:
    from flows.cli.shell import Shell  # its line editor takes longer to load than most queries take

    return Shell(layout, form, build)


def _say_build(layout: Layout, build: str | None) -> None:
    """Which build answers, to standard error; nothing where there is no other."""
    there, shown = builds(layout), build or shown_build(layout)
    if len(there) > 1 and shown in there:
        typer.echo(f"schema main: build {shown}, one of {len(there)}; --build NAME asks another", err=True)


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the file with the query, {file}, cannot be read: {error}") from None
