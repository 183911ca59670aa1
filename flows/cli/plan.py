"""`colloquy plan`: what a run would ask its models and cost, low to high, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli.run import Build, Profile, Set, described

if TYPE_CHECKING:
    from rich.console import Console

    from flows.chain.plan import RunPlan
    from tasks.foundation.run.context import Workspace


def plan(
    profile: Profile = None,
    build: Build = "main",
    only: Annotated[str | None, typer.Option(metavar="STAGE", help="Plan just this stage.")] = None,
    from_stage: Annotated[
        str | None, typer.Option("--from", metavar="STAGE", help="Plan this stage and those after it.")
    ] = None,
    set_: Set = None,
) -> None:
    """Show the calls, tokens and dollars that `colloquy run` with the same options would take, low to high.

    Needs no network and no key. Rows that a build has are counted; those of stages still to run follow from the
    settings. Says which budgets the plan passes and everything it assumed.
    """
    from flows import chain
    from flows.chain.options import RebuildOptions
    from flows.chain.plan import check, plan_build, without_reasks
    from flows.cli.console import terminal
    from tasks.foundation.run.context import Workspace

    options = chain.settled(
        RebuildOptions.model_construct(
            profile=profile, build=build, only=only, from_stage=from_stage, set=list(set_ or [])
        )
    )
    name, stages = options.build_on(date.today()), chain.selected(options)
    workspace = chain.open_workspace(options)
    check(workspace, name, stages)
    plans = plan_build(workspace, name, stages)
    calm = Workspace(without_reasks(workspace.settings), workspace.profile, workspace.layout, workspace.models)
    terminal().print(f"plan of build {name}, {described(options)}: nothing was asked", soft_wrap=True, markup=False)
    _show(terminal(), workspace, name, plans, plan_build(calm, name, stages))
    workspace.close()


def _show(
    console: Console, workspace: Workspace, build: str, plans: Sequence[RunPlan], calm: Sequence[RunPlan]
) -> None:
    from flows.cli import plan_tables

    console.print(plan_tables.stages_table(plans, workspace.models))
    console.print(plan_tables.models_table(plans, workspace.models))
    for line in (
        *plan_tables.calm_lines(calm),
        *plan_tables.likely_lines(workspace, plans),
        *plan_tables.budget_lines(workspace, build, plans),
        *plan_tables.retired_lines(workspace, plans),
        "",
        "Assumed:",
        *plan_tables.assumptions(workspace, plans),
    ):
        console.print(line, soft_wrap=True, markup=False)
