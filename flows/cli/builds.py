"""Commands about builds as wholes: `colloquy builds`, `use`, `drop` and `gc`."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli.console import age_of, make_table, terminal
from tasks.foundation.errors import ConfigError
from tasks.foundation.store.commits import commits_of
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.removing import drop_member, remove_build, sweep
from tasks.foundation.store.views import choose_build, open_views, rebuild_views, shown_build, use_build

app = typer.Typer(
    help="The builds there are; `remove` takes one away.", invoke_without_command=True, add_completion=False
)
Yes = Annotated[bool, typer.Option("--yes", help="Delete; without it the command only says what it would delete.")]


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
    swept = remove_build(Layout.default(), build, delete=yes)
    found = f"build {build}: {swept.files:,} files, {swept.bytes / 1e6:,.1f} MB"
    typer.echo(f"removed {found}" if yes else f"{found}; `colloquy builds remove {build} --yes` deletes them")


def _show() -> None:
    numbers = ("stages", "calls", "cost $", "last commit")
    table = make_table("", "build", "state", "profile", *numbers, right=numbers)
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


def use(
    build: Annotated[str | None, typer.Argument(help="The build that SQL shows.", show_default=False)] = None,
    newest: Annotated[
        bool, typer.Option("--newest", help="Show the newest build whose chain is complete, whichever that is.")
    ] = False,
) -> None:
    """Pin the build that `colloquy sql` and colloquy.duckdb show, or unpin with --newest."""
    if newest == (build is not None):
        raise ConfigError("expected either the name of a build or --newest, for example `colloquy use 2026-12`")
    layout = Layout.default()
    if build is not None:
        use_build(layout, build)
    else:
        layout.pin.unlink(missing_ok=True)
        rebuild_views(layout)
    pinned = "pinned" if build is not None else "the newest"
    typer.echo(f"schema main shows build {shown_build(layout) or 'none: there is no build yet'} ({pinned})")


def drop(
    target: Annotated[str | None, typer.Option(metavar="ALIAS", help="What this model predicted and said.")] = None,
    judge: Annotated[str | None, typer.Option(metavar="ALIAS", help="What this model judged.")] = None,
    build: Annotated[str | None, typer.Option(help="The build; without it the one that SQL shows.")] = None,
) -> None:
    """Take a target's or a judge's rows out of a build, so that tables, metrics and the report go without.

    Nothing is deleted: naming the alias in the settings again and running the stage brings its rows back without
    a call.
    """
    from flows import chain  # the stages take a second to load, which no other command here needs

    if (target is None) == (judge is None):
        raise ConfigError("expected either --target ALIAS or --judge ALIAS, for example `colloquy drop --judge mine`")
    layout = Layout.default()
    name = choose_build(layout, build)
    role = "targets" if judge is None else "judges"
    stages = [stage.name for stage in chain.chain() if stage.fan_out == role]
    dropped = drop_member(layout, name, target or judge or "", stages)
    for commit in dropped:
        rows = ", ".join(f"{commit.rows(table):,} {table}" for table in chain.stage(commit.stage).worked)
        typer.echo(f"{commit.run:<24} no longer shown: {rows}")
    late = [stage for stage in chain.names() if any(stage in chain.downstream(one.stage) for one in dropped)]
    others = [commit for commit in commits_of(layout, name).values() if commit.stage in stages]
    how = "but without the alias" if others else "but with another alias in its place (none is left)"
    typer.echo(
        f"{' and '.join(late)} of build {name} still count it: `colloquy run --from {late[0]} --build {name}` with the "
        f"build's settings, {how}, brings them up to date (replies come from the cache)."
    )


def gc(yes: Yes = False) -> None:
    """Show the files in the store that no commit names, and with --yes delete them.

    They are what replaced, dropped and stopped runs have left. A stopped run that is to go on should do so first: its
    rows would be worked again, from the reply cache. Builds that a stage is running in are left alone.
    """
    taken, size = 0, 0
    for swept in sweep(Layout.default(), delete=yes):
        if swept.kept_because:
            typer.echo(f"{swept.build}: left alone. {swept.kept_because}", err=True)
            continue
        typer.echo(f"{swept.build:<24}{swept.files:>8,} files {swept.bytes / 1e6:>10,.1f} MB")
        taken, size = taken + swept.files, size + swept.bytes
    if not taken:
        typer.echo("every file is named by a commit")
    elif yes:
        typer.echo(f"deleted {taken:,} files, {size / 1e6:,.1f} MB")
    else:
        typer.echo(f"no commit names these {taken:,} files, {size / 1e6:,.1f} MB: `colloquy gc --yes` deletes them")
