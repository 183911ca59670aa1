"""`colloquy report`: one page about a build, to read and to pass on."""

from __future__ import annotations

from typing import Annotated

import typer


def report(
    build: Annotated[str | None, typer.Option(help="The build; the one that SQL shows when not given.")] = None,
    transcripts: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many transcripts of each kind the page holds.")
    ] = 100,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Write artifacts/reports/BUILD/index.html: funnel, pools, labels, votes, leaderboards, faults, transcripts.

    One file that needs no network. Works on a build that is not whole; what is missing says what would fill it.
    """
    from tasks.foundation.errors import StoreError
    from tasks.foundation.store.layout import Layout
    from tasks.foundation.store.views import shown_build
    from tasks.report.build import write_report

    layout = Layout.default()
    name = build or shown_build(layout)
    if name is None:
        raise StoreError(f"there is no build in {layout.root} to report on: run `colloquy run` first")
    path = write_report(layout, name, transcripts)
    typer.echo(str(path))
    if open_:
        typer.launch(path.as_uri())
