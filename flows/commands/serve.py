"""`colloquy serve`: the Prefect UI with everything that runs from it."""

from __future__ import annotations

from typing import Annotated

import typer


def serve(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where the server listens when one is started.")] = 4200,
) -> None:
    """Bring up server, UI, work pool, deployments and a worker, whichever is missing, and stay until Ctrl-C.

    Runs of `colloquy run` go to this server while it is up. Schedules made in the UI survive a restart.
    """
    from flows.serving import serve as bring_up

    bring_up(port, typer.echo)
