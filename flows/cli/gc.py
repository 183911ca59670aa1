"""`colloquy gc`: takes away the files that no commit names."""

from __future__ import annotations

from typing import Annotated

import typer

Yes = Annotated[bool, typer.Option("--yes", help="Delete; without it the command only says what it would delete.")]


def gc(yes: Yes = False) -> None:
    """Show the files in the store that no commit names, and with --yes delete them.

    They are what replaced, dropped and stopped runs have left. A stopped run that is to go on should do so first: its
    rows would be worked again, from the reply cache. Builds that a stage is running in are left alone.
    """
    from tasks.foundation.store.layout import Layout
    from tasks.foundation.store.sweeping import sweep

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
