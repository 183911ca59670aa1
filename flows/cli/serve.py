"""`colloquy serve`: the Prefect UI with everything that runs from it."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.server import serving


def serve(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where the server listens when one is started.")] = 4200,
    reports_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Where the reports can be read; else the next port, or a free one."),
    ] = None,
    viewer_port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, help="Where the viewer's pages are; else the port after the reports', or a free one."
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Listen here; other machines cannot reach the default.")] = "127.0.0.1",
    redeploy: Annotated[
        bool, typer.Option(help="Make every deployment as the code says it, over what was edited in the UI.")
    ] = False,
) -> None:
    """Bring up server, UI, work pool, deployments, worker and viewer, whichever is missing, and keep them up until
    Ctrl-C.

    Runs of `colloquy run` go to this server while it is up. What was edited in the UI stays, and so do schedules.
    """
    serving.serve(serving.Places(port, reports_port, host, viewer_port), typer.echo, redeploy=redeploy)
