"""`colloquy status`: where each stage of a build stands and why; which builds there are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from flows import chain
from flows.chain.options import RunOptions
from flows.chain.status import StageStatus, find_statuses
from flows.cli.console import age_of, make_table, terminal
from flows.cli.run import described
from tasks.foundation.store.commits import Commit, behind, builds, commits_of
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import all_commits, shown_build

STYLES = {
    "up to date": "green",
    "partial": "yellow",
    "stale": "yellow",
    "behind": "yellow",
    "running": "cyan",
    "missing": "dim",
}


def status(
    build: Annotated[str | None, typer.Option(help="The build; the one that SQL shows when not given.")] = None,
    profile: Annotated[str | None, typer.Option(help="Compare with this profile, not that of the build.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Compare with this setting on top.")
    ] = None,
) -> None:
    """Show every stage of a build: done, partial, stale (and what changed), or missing; and all builds."""
    layout = Layout.default()
    shown = shown_build(layout)
    options = chain.settled(
        RunOptions.model_construct(profile=profile, build=build or shown or "main", set=list(set_ or []))
    )
    name = options.build_on(date.today())
    workspace = chain.open_workspace(options)
    made = {commit.stage for commit in commits_of(layout, name).values()}
    found = find_statuses(workspace, name, chain.of_build(workspace, name, made), guests=True)
    console = terminal()
    console.print(f"build {name}, compared with {described(options)}", soft_wrap=True, markup=False)
    console.print(stages_table(found))
    known = builds(layout)
    if known:
        console.print(builds_table(layout, known, shown))
    else:
        console.print("There is no build yet: run `colloquy run`.")


def stages_table(found: Sequence[StageStatus]) -> Table:
    """One line a stage."""
    numbers = ("in", "produced", "filtered", "failed", "calls", "cost $", "age")
    table = make_table("stage", "state", *numbers, "why", right=numbers)
    for each in found:
        state = Text(each.state, STYLES[each.state])
        table.add_row(each.run, state, *_cells(each.commit), each.why)
    return table


def builds_table(layout: Layout, known: Sequence[str], shown: str | None) -> Table:
    """One line a build, oldest first; the one that SQL shows is marked."""
    table = make_table("", "build", "stages", "last commit", "complete", title="builds")
    by_run: dict[str, dict[str, Commit]] = {build: {} for build in known}
    for commit in all_commits(layout):
        by_run.setdefault(commit.build, {})[commit.run] = commit
    last = {build: max((each.ended_at for each in runs.values()), default="") for build, runs in by_run.items()}
    for build in sorted(by_run, key=lambda build: last[build]):
        commits, late = by_run[build], behind(by_run[build])
        whole = any(commit.ends_chain for commit in commits.values())
        complete = f"no: {', '.join(late)} behind" if whole and late else "yes" if whole else "no"
        age = age_of(last[build]) if commits else "unreadable"
        table.add_row("→" if build == shown else "", build, str(len(commits)), age, complete)
    return table


def _cells(commit: Commit | None) -> tuple[str, ...]:
    if commit is None:
        return ("",) * 7
    accounting, cost = commit.accounting, commit.usage.get("cost_usd")
    counts = (accounting.n_in, accounting.n_produced, accounting.n_filtered, accounting.n_failed)
    return (
        *(f"{count:,}" for count in (*counts, commit.usage.get("calls", 0))),
        "unknown" if cost is None else f"{cost:.4f}",
        age_of(commit.ended_at),
    )
