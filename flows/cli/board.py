"""`colloquy board`: a benchmark's targets as a wide table, for a paper, a sheet or a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tasks.foundation.store.files import write_text
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import choose_build, explain_reading_errors, open_views
from tasks.report.board_files import Form, TableName, read_wide, write_table
from tasks.report.conversation_blocks import ALL


def board(
    table: Annotated[
        TableName,
        typer.Argument(
            help="demo is Table 2 of its paper, eyt-objective and eyt-subjective are Tables 3 and 4 of EYT-Bench; eyt "
            "has what EYT-Bench is decided by."
        ),
    ],
    build: Annotated[str | None, typer.Option(help="The build; the one that SQL shows when not given.")] = None,
    form: Annotated[Form, typer.Option("--format", help="How it is written; CSV and JSON hold n, too.")] = "md",
    language: Annotated[str, typer.Option(help="One language; else all together.")] = ALL,
    pool: Annotated[str | None, typer.Option(help="One persona pool; else each.")] = None,
    metrics: Annotated[str, typer.Option(metavar="A,B,…", help="These metrics, in the place of the table's own.")] = "",
    intervals: Annotated[bool, typer.Option(help="With 95 % intervals.")] = True,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file for it, instead of the screen.")] = None,
) -> None:
    """Write a board as a table: ranks, scores, intervals, and which targets may be the best."""
    layout = Layout.default()
    name = choose_build(layout, build)
    named = [each.strip() for each in metrics.split(",") if each.strip()]
    with open_views(layout, name) as connection, explain_reading_errors():
        found = read_wide(connection, table, language=language, pool=pool, metrics=named)
    text = write_table(found, form, intervals=intervals)
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, output.parent, text)
