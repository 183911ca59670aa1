"""`colloquy tour`: the whole pipeline on replies written beforehand."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli.run import Build, run
from flows.cli.screen import screen
from tasks.foundation.store.layout import Layout


def tour(
    build: Build = "tour",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress; only what is made.")] = False,
) -> None:
    """See what a build is in less than a minute: replies written beforehand go through every stage; no model is asked.

    A dialogue, a vote and a judgement are shown as they are made, then the scores (which mean nothing here) and what to
    look at next. Needs no weights, no key and no network.
    """
    screen(quiet).say(
        "A scripted tour: replies written beforehand instead of models, so labels and scores mean nothing. Half a "
        f"minute on two cores; it all goes to {Layout.default().root}."
    )
    run(profile="tour", build=build, quiet=quiet, tell=True)
