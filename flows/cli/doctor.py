"""`colloquy doctor`: what is missing on this machine, and how to get it."""

from __future__ import annotations

import typer

from flows.cli.run import Profile


def doctor(profile: Profile = None) -> None:
    """Look at Python, packages, disk, settings, models, keys, weights and Prefect; say what to do."""
    from flows.chain import usual_profile
    from flows.chain.findings import examine

    code = 0
    for finding in examine(profile or usual_profile()):
        typer.echo(f"{finding.mark:<9}{finding.topic:<10}{finding.what}")
        code = code or finding.exit_code
    raise typer.Exit(code)
