"""`colloquy builds`: which builds there are, and the removal of one."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli.gc import Yes

app = typer.Typer(help="The builds there are; `remove` takes one away.", invoke_without_command=True)


@app.callback()
def list_builds(context: typer.Context) -> None:
    """Show the builds there are, oldest first; `remove` takes one away."""
    if context.invoked_subcommand is None:
        _show()


@app.command()
def remove(
    build: Annotated[str, typer.Argument(help="The build to remove.", show_default=False)],
    yes: Yes = False,
) -> None:
    """Show what a build takes up, and with --yes delete it. Replies stay, so making it again costs nothing."""
    from tasks.foundation.store.layout import Layout
    from tasks.foundation.store.sweeping import remove_build

    swept = remove_build(Layout.default(), build, delete=yes)
    told = f"build {build}: {swept.files:,} files, {swept.bytes / 1e6:,.1f} MB"
    typer.echo(f"removed {told}" if yes else f"{told}; `colloquy builds remove {build} --yes` deletes them")


def _show() -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from flows.cli.screen import terminal
    from flows.cli.status import age_of
    from tasks.foundation.store.layout import Layout
    from tasks.foundation.store.views import open_views

    table = Table(box=SIMPLE_HEAD)
    for column in ("", "build", "state", "profile"):
        table.add_column(column)
    for column in ("stages", "calls", "cost $", "last commit"):
        table.add_column(column, justify="right")
    query = (
        "select build, state, profile, shown, stages, calls, cost_usd, last_commit_at from builds "
        "order by last_commit_at nulls first, build"
    )
    with open_views(Layout.default()) as connection:
        rows = connection.execute(query).fetchall()
    for build, state, profile, shown, stages, calls, cost, last in rows:
        asked, money = ("unknown" if n is None else f"{n:{form}}" for n, form in ((calls, ","), (cost, ".4f")))
        age = "" if last is None else age_of(last.isoformat())
        table.add_row("→" if shown else "", build, state, profile or "–", str(stages), asked, money, age)
    if rows:
        terminal().print(table)
    else:
        typer.echo("There is no build yet: run `colloquy run`.")
