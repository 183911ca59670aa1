"""`colloquy use`: which build the schema `main` shows."""

from __future__ import annotations

from typing import Annotated

import typer


def use(
    build: Annotated[str | None, typer.Argument(help="The build that SQL shows.", show_default=False)] = None,
    newest: Annotated[
        bool, typer.Option("--newest", help="Show the newest build whose chain is complete, whichever that is.")
    ] = False,
) -> None:
    """Pin the build that `colloquy sql` and colloquy.duckdb show, or unpin with --newest."""
    from tasks.foundation.errors import ConfigError
    from tasks.foundation.store.layout import Layout
    from tasks.foundation.store.views import rebuild_views, shown_build, use_build

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
