"""What several commands may be told, and what follows from it."""

from __future__ import annotations

from typing import Annotated

import typer

from flows import chain
from flows.chain import Options
from flows.chain.options import RunOptions
from flows.cli.screen import Screen

Profile = Annotated[
    str | None,
    typer.Option(help="One of configs/profiles or a .yaml of yours; else the build's own, COLLOQUY_PROFILE, or demo."),
]
Build = Annotated[str, typer.Option(help="Name of the build; {date} becomes today's date.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting: section.key=value.")]


def as_made(options: Options, shown: Screen) -> Options:
    """The options with the profile and the settings that the build was made with, unless a profile is named; says so
    where that is other than the usual."""
    settled = chain.settled(options)
    if not options.profile and (settled.profile != chain.usual_profile() or len(settled.set) > len(options.set)):
        shown.say(f"build {options.build} goes on with {described(settled)}; --profile begins with another")
    return settled


def described(options: RunOptions) -> str:
    """`profile demo, --set a.b=c`."""
    return ", ".join([f"profile {options.profile}", *(f"--set {one}" for one in options.remembered)])
