"""`colloquy pilot`: a look at how models deal with a profile's prompts, before the whole is paid for."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from flows import chain
from flows.chain.options import RebuildOptions
from flows.chain.pilot import list_pilot_settings, write_whole
from flows.chain.plan import plan_build
from flows.chain.status import look_ahead
from flows.cli.plan import headline, stage_amounts
from flows.cli.run import PARTIAL, Profile, Set, run_flow
from flows.cli.screen import screen
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import rebuild_views

NO_BUILD = "*"
"""No build can have this name: planned for it, every stage is still to do."""


def pilot(
    profile: Profile = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows of every stage, for each language and pool.")] = 8,
    build: Annotated[str | None, typer.Option(help="The pilot's build; else pilot- and the profile's name.")] = None,
    set_: Set = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress; only the result and errors.")] = False,
) -> None:
    """Make a few rows of every stage of a profile in a build of their own, and show what its models make of them.

    The report then has, by prompt, how often models were asked again or failed, how long their replies were, three
    filled-in prompts with replies, and what the whole is expected to take. The whole run gets these replies for free.
    """
    given, layout = list(set_ or []), Layout.default()
    chosen = profile or chain.usual_profile()
    whole = chain.open_workspace(RebuildOptions.model_construct(profile=chosen, build="main", set=given))
    options = RebuildOptions.model_construct(
        profile=chosen,
        build=build or f"pilot-{_plain_name(chosen)}",
        set=[*given, *list_pilot_settings(whole.settings, rows)],
        check=False,
        report=False,
    )
    shown, stages = screen(quiet), chain.selected(options)
    todo, _ = look_ahead(options, stages, options.build)
    code = run_flow(_rebuild, options, shown) if todo else 0
    if code in (0, PARTIAL):
        plans = plan_build(whole, NO_BUILD, stages)
        lines = list(headline(whole, plans, None))
        write_whole(layout, options.build, chosen, {"expected": lines, "stages": list(stage_amounts(plans))})
        rebuild_views(layout)
        from tasks.report.build import write_report  # the charts take a second to load

        page = write_report(layout, options.build)
        typer.echo(f"The whole of profile {chosen}: {' '.join(lines)}")
        typer.echo(f"Prompts, replies and what became of them: {page}#prompts")
    whole.close()
    raise typer.Exit(code)


def _rebuild() -> Callable[..., Any]:
    from flows.runs import rebuild

    return rebuild


def _plain_name(profile: str) -> str:
    """The profile's name as part of a build's."""
    return re.sub(r"[^a-z0-9._-]+", "-", Path(profile).stem.lower()).strip("-._") or "profile"
