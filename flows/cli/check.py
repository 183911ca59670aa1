"""`colloquy check`: what must be true of a build's rows, asked of the rows themselves."""

from __future__ import annotations

from typing import Annotated

import typer


def check(
    build: Annotated[str | None, typer.Option(help="The build; the one that SQL shows when not given.")] = None,
) -> None:
    """Run every file of sql/checks, and count the rows of every file; exit code 7 when a check returns rows."""
    from flows.chain.checks import ChecksFoundRows, check_build
    from tasks.foundation.store.commits import behind, commits_of
    from tasks.foundation.store.layout import Layout
    from tasks.foundation.store.views import shown_build

    layout = Layout.default()
    name = build or shown_build(layout)
    commits = commits_of(layout, name) if name else {}
    outcomes = check_build(layout, name)
    broken = [outcome for outcome in outcomes if outcome.rows]
    for outcome in broken:
        typer.echo(f"{outcome.name}: {outcome.rows} rows, for example")
        for example in outcome.examples:
            typer.echo("  " + ", ".join(f"{name}={value!r}" for name, value in example.items()))
    for run, tables in behind(commits).items():
        typer.echo(f"{run} was made from rows of {', '.join(tables)} that have changed since: run it again")
    typer.echo(f"{len(outcomes) - len(broken)} of {len(outcomes)} checks found nothing")
    if broken:
        raise typer.Exit(ChecksFoundRows.exit_code)
