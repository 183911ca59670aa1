"""`colloquy run`: the chain, or a part of it, with its progress on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.run_flow import run_flow

if TYPE_CHECKING:
    from flows.chain import Options
    from flows.cli.screen import Screen
    from flows.options import RebuildOptions, RunOptions

Profile = Annotated[
    str | None,
    typer.Option(help="One of configs/profiles or a .yaml of yours; else the build's own, COLLOQUY_PROFILE, or demo."),
]
Build = Annotated[str, typer.Option(help="Name of the build; {date} becomes today's date.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting: section.key=value.")]


def run(
    profile: Profile = None,
    build: Build = "main",
    only: Annotated[str | None, typer.Option(metavar="STAGE", help="Run just this stage.")] = None,
    from_stage: Annotated[
        str | None, typer.Option("--from", metavar="STAGE", help="Run this stage and those after it.")
    ] = None,
    force: Annotated[
        bool, typer.Option(help="Run the named stage (or all) again though up to date; replies come from the cache.")
    ] = False,
    fresh: Annotated[bool, typer.Option(help="Draw new replies for this build; replay none.")] = False,
    set_: Set = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress; only the result and errors.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show Prefect's log lines too.")] = False,
) -> None:
    """Bring a build up to date: run what is missing, stale or failed, and nothing else.

    The same command goes on where a stopped run was. Exit code 8: done, but some rows failed in a way that may
    pass; run it again to redo just those.
    """
    from flows.cli.screen import screen
    from flows.options import RebuildOptions

    options = RebuildOptions.model_construct(
        profile=profile,
        build=build,
        only=only,
        from_stage=from_stage,
        force=force,
        fresh=fresh,
        set=list(set_ or []),
        check=False,
        report=False,
    ).on(date.today())
    shown = screen(quiet)
    options = as_made(options, shown)
    if _nothing_to_do(options, shown):
        return

    def rebuild() -> Callable[..., Any]:
        from flows import rebuild as flows

        return flows.rebuild

    raise typer.Exit(run_flow(rebuild, options, shown, verbose=verbose))


def as_made(options: Options, shown: Screen) -> Options:
    """The options with the profile and the settings that the build was made with, unless a profile is named; says so
    where that is other than the usual."""
    from flows import chain

    settled = chain.settled(options)
    if not options.profile and (settled.profile != chain.usual_profile() or len(settled.set) > len(options.set)):
        shown.say(f"build {options.build} goes on with {described(settled)}; --profile begins with another")
    return settled


def described(options: RunOptions) -> str:
    """`profile demo, --set a.b=c`."""
    return ", ".join([f"profile {options.profile}", *(f"--set {one}" for one in options.remembered)])


def _nothing_to_do(options: RebuildOptions, shown: Screen) -> bool:
    """Whether every selected stage is up to date: then Prefect need not be started. Says so.

    Raises what a run would be refused for, before anything is started.
    """
    from flows import chain
    from flows.chain.preflight import look_ahead
    from tasks.foundation.store.layout import Layout
    from tasks.foundation.store.views import rebuild_views

    todo, done = look_ahead(options, chain.selected(options), options.build)
    if not todo:
        rebuild_views(Layout.default())  # a run that was killed may have committed and not come to them
        shown.up_to_date(options.build, done, whole=not options.only and not options.from_stage)
    return not todo
