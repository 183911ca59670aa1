"""`colloquy sql`: one query with its answer, or a shell over the views."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.commands.answers import Format

if TYPE_CHECKING:
    import duckdb

    from tasks.foundation.store.layout import Layout


def sql(
    query: Annotated[str | None, typer.Argument(help="A query; a shell opens without.", show_default=False)] = None,
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
    if query is None:
        from flows.commands.shell import Shell

        Shell(Layout.default(), form).run()
        return
    from tasks.foundation.store.views import open_views

    with open_views(Layout.default()) as connection:
        ask(connection, query, form)


def ask(connection: duckdb.DuckDBPyConnection, text: str, form: Format) -> None:
    """Run every statement of `text` and write its answer; ConfigError with DuckDB's own words."""
    import duckdb

    from flows.commands.answers import write
    from tasks.foundation.errors import ConfigError
    from tasks.foundation.store.layout import Layout
    from tasks.foundation.store.views import told_of_reading

    try:
        with told_of_reading():
            for statement in connection.extract_statements(text):
                _refuse_writing(statement, Layout.default())
                write(connection, statement, form)
    except duckdb.Error as error:
        raise ConfigError(f"the query cannot be answered. {error}") from None


def _refuse_writing(statement: duckdb.Statement, layout: Layout) -> None:
    """ConfigError for what could write into the store: answers may be written to files elsewhere, named plainly."""
    import re

    from tasks.foundation.errors import ConfigError

    kind, text = statement.type.name, statement.query
    hidden = kind in ("PREPARE", "EXECUTE", "EXPLAIN") and re.search(r"\b(copy|export|execute)\b", text, re.IGNORECASE)
    if not hidden and kind not in ("COPY", "EXPORT", "COPY_DATABASE"):
        return
    named = re.findall(r"\b(?:to|database)\s+'((?:[^']|'')+)'", text, re.IGNORECASE)
    place = named[-1].replace("''", "'") if named else ""
    if hidden or not place or ":" in place or Path(place).resolve().is_relative_to(layout.root.resolve()):
        raise ConfigError(
            f"a query may write its answer with `copy (…) to 'FILE'` to a plain path outside {layout.root}, which only "
            f"runs may change; found {place or text.strip()[:80]!r}"
        )


def _text_of(file: Path) -> str:
    from tasks.foundation.errors import ConfigError

    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the file with the query, {file}, cannot be read: {error}") from None
