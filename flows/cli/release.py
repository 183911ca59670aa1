"""`colloquy release`: a build's frozen items and seeds as a folder that stands alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def release(
    folder: Annotated[Path, typer.Argument(help="A new folder for the release.", show_default=False)],
    build: Annotated[str | None, typer.Option(help="The build; without it the one that SQL shows.")] = None,
) -> None:
    """Write the benchmark of a build (items, episodes, seeds, their personas) for others to evaluate on."""
    from tasks.foundation.errors import StoreError
    from tasks.foundation.llm.providers import LOCAL_PROVIDERS
    from tasks.foundation.store.layout import Layout
    from tasks.foundation.store.release import write_release
    from tasks.foundation.store.views import shown_build

    layout = Layout.default()
    name = build or shown_build(layout)
    if name is None:
        raise StoreError("there is no build yet: `colloquy run` makes one")
    for table, rows in write_release(layout, name, folder, LOCAL_PROVIDERS).items():
        typer.echo(f"{table:<22}{rows:>8,} rows")
    typer.echo(f"released build {name} to {folder}")
