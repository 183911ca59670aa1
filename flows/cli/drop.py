"""`colloquy drop`: takes a target or a judge out of a build."""

from __future__ import annotations

from typing import Annotated

import typer


def drop(
    target: Annotated[str | None, typer.Option(metavar="ALIAS", help="What this model predicted and said.")] = None,
    judge: Annotated[str | None, typer.Option(metavar="ALIAS", help="What this model judged.")] = None,
    build: Annotated[str | None, typer.Option(help="The build; without it the one that SQL shows.")] = None,
) -> None:
    """Take a target's or a judge's rows out of a build, so that tables, metrics and the report go without.

    Nothing is deleted: naming the alias in the settings again and running the stage brings its rows back without
    a call.
    """
    from flows import chain
    from tasks.foundation.errors import ConfigError, StoreError
    from tasks.foundation.store.commits import commits_of
    from tasks.foundation.store.dropping import drop_member
    from tasks.foundation.store.layout import Layout
    from tasks.foundation.store.views import shown_build

    if (target is None) == (judge is None):
        raise ConfigError("expected either --target ALIAS or --judge ALIAS, for example `colloquy drop --judge mine`")
    layout = Layout.default()
    name = build or shown_build(layout)
    if name is None:
        raise StoreError("there is no build yet: `colloquy run` makes one")
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
