"""`colloquy view`: the store as pages, from a number down to the reply it rests on."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.server import environment, viewing
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import choose_build
from tasks.viewer import addresses


def view(
    build: Annotated[str | None, typer.Option(help="Begin with this build instead of the list of all.")] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Where the pages are; else 4300, or a free one.")
    ] = None,
    host: Annotated[str, typer.Option(help="Listen here; other machines cannot reach the default.")] = "127.0.0.1",
    open_: Annotated[bool, typer.Option("--open", help="Show them in the browser.")] = False,
) -> None:
    """Show builds, tables, talks, votes and judgements as pages, with the prompt and reply behind each, until Ctrl-C.

    Reads only, also while a run is writing; what a run commits is there with the next page.
    """
    environment.end_on_signals()
    layout = Layout.default()
    path = addresses.HOME if build is None else addresses.of_build(choose_build(layout, build))
    listening = viewing.listen(host, (port,) if port else (viewing.PORT, 0))
    if host not in environment.LOOPBACK:
        typer.echo(f"It listens at {host}: whoever reaches this machine can read every text, prompt and reply.")
    address = f"{viewing.address_of(listening, host)}{path}"
    typer.echo(f"viewer: {address}   Ctrl-C ends it.")
    if open_:
        typer.launch(address)
    viewing.serve_pages(layout, host, listening)
