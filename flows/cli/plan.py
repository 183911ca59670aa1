"""`colloquy plan`: what a run would ask its models, cost and take, before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from importlib.metadata import version
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from flows import chain
from flows.chain.options import RebuildOptions
from flows.chain.plan import RunPlan, check, plan_build
from flows.chain.previews import previews
from flows.cli.console import terminal
from flows.cli.run import Build, Profile, Set, described
from tasks.foundation.llm.budget import Allowed
from tasks.foundation.llm.models import retirement
from tasks.foundation.run.batching import in_batches, rows_at_once
from tasks.foundation.run.context import Workspace
from tasks.foundation.run.cost_plan import (
    Expected,
    PassedBudget,
    PlannedCalls,
    by_alias,
    find_passed_budgets,
    hours_of,
    total_of,
    unpriced_in,
)
from tasks.foundation.run.dry_run import is_asked
from tasks.foundation.run.spending import limits_of
from tasks.foundation.settings import Settings
from tasks.foundation.settings.sections import PersonaSource


def plan(
    profile: Profile = None,
    build: Build = "main",
    only: Annotated[str | None, typer.Option(metavar="STAGE", help="Plan just this stage.")] = None,
    from_stage: Annotated[
        str | None, typer.Option("--from", metavar="STAGE", help="Plan this stage and those after it.")
    ] = None,
    set_: Set = None,
    tokens_per_second: Annotated[
        float | None,
        typer.Option(min=0.001, metavar="N", help="Completion tokens a second of a server without prices, altogether."),
    ] = None,
) -> None:
    """Show the calls, tokens, dollars and hours that `colloquy run` with the same options is expected to take.

    Every stage is tried on some of its rows without its models, with replies as long as they usually are. Needs no
    network and no key. Says which budgets are passed, and what the numbers rest on.
    """
    options = chain.settled(
        RebuildOptions.model_construct(
            profile=profile, build=build, only=only, from_stage=from_stage, set=list(set_ or [])
        )
    )
    name, stages = options.build_on(date.today()), chain.selected(options)
    workspace = chain.open_workspace(options)
    check(workspace, name, stages)
    shown = _first_rows(workspace.settings, stages)
    plans = plan_build(workspace, name, stages)
    terminal().print(f"plan of build {name}, {described(options)}: nothing was asked", soft_wrap=True, markup=False)
    _show(terminal(), workspace, name, plans, tokens_per_second)
    for line in shown:
        terminal().print(line, soft_wrap=True, markup=False)
    workspace.close()


def _first_rows(settings: Settings, stages: Sequence[str]) -> list[str]:
    """What the first row of each source of the stages becomes; raises the error of a source of which none is usable."""
    lines: list[str] = []
    for preview in previews(settings):
        if ("personas" if isinstance(preview.source, PersonaSource) else "scenes") not in stages:
            continue
        if preview.error is not None:
            raise preview.error
        lines.append(f"source {preview.source.name}: {preview.what}")
    return lines


def _show(
    console: Console, workspace: Workspace, build: str, plans: Sequence[RunPlan], tokens_per_second: float | None
) -> None:
    for line in headline(workspace, plans, tokens_per_second):
        console.print(line, soft_wrap=True, markup=False, style="bold")
    console.print(stages_table(plans))
    for line in (
        *budget_lines(workspace, build, plans),
        *retired_lines(workspace, plans),
        *note_lines(plans),
        *basis_lines(workspace, plans),
        *most_lines(plans),
    ):
        console.print(line, soft_wrap=True, markup=False)


def headline(workspace: Workspace, plans: Sequence[RunPlan], tokens_per_second: float | None) -> Iterator[str]:
    """What is expected altogether, with ranges."""

    calls = _calls(plans)
    total = total_of(calls)
    if not total.calls.high:
        yield "Expected: no call."
        return
    hours = _hours(workspace, plans, tokens_per_second)
    yield (
        f"Expected: {with_range(total.calls, amount)} calls, {with_range(total.prompt_tokens, amount)} prompt and "
        f"{with_range(total.completion_tokens, amount)} completion tokens, {dollars_of(calls)}, {_time(hours)}."
    )


def _hours(workspace: Workspace, plans: Sequence[RunPlan], tokens_per_second: float | None) -> Expected | None:
    """Of the runs one after another (a stage's members as well); None where a model's speed is not known."""
    hours = [
        hours_of(plan.calls, workspace.models, tokens_per_second, _rows_at_once(workspace.settings, plan.stage))
        for plan in plans
    ]
    known = [each for each in hours if each is not None]
    return Expected.total(known) if len(known) == len(hours) else None


def _rows_at_once(settings: Settings, stage: str) -> int:
    """How many rows of a stage are worked on at once."""
    section, batched = getattr(settings, stage), in_batches(settings, stage)
    of_a_shard = min(
        rows_at_once(settings, rows, batched=batched) for rows in (settings.run.rows_in_flight, section.shard_rows)
    )
    return settings.run.concurrent_shards * of_a_shard


def stages_table(plans: Sequence[RunPlan]) -> Table:
    """A line for every stage and model, and one for all stages."""

    table = Table(box=SIMPLE_HEAD)
    for name in ("stage", "state", "model"):
        table.add_column(name, overflow="fold")
    for name in ("calls", "prompt tokens", "completion tokens", "US $"):
        table.add_column(name, justify="right", overflow="fold")
    for stage, runs in _by_stage(plans).items():
        names, of_stage = [stage, _states(runs)], by_alias(_calls(runs))
        if not of_stage:
            table.add_row(*names, "asks no model" if names[1] != "up to date" else "", style="dim")
        for calls in of_stage:
            table.add_row(*names, calls.alias, *_amounts(calls), dollars_of([calls], short=True))
            names = ["", ""]
    every = _calls(plans)
    table.add_row("all stages", "", "", *_amounts(total_of(every)), dollars_of(every, short=True), style="bold")
    return table


def stage_amounts(plans: Sequence[RunPlan]) -> Iterator[dict[str, str]]:
    """The lines of that table for stages that ask: stage, model, calls, tokens and dollars with their ranges."""
    for stage, runs in _by_stage(plans).items():
        for calls in by_alias(_calls(runs)):
            names = ("calls", "prompt tokens", "completion tokens")
            amounts = dict(zip(names, _amounts(calls), strict=True))
            yield {"stage": stage, "model": calls.alias, **amounts, "US $": dollars_of([calls], short=True)}


def _amounts(calls: PlannedCalls) -> Iterator[str]:
    return (with_range(one, amount) for one in (calls.calls, calls.prompt_tokens, calls.completion_tokens))


def retired_lines(workspace: Workspace, plans: Sequence[RunPlan]) -> Iterator[str]:
    """Models of the plan that nobody can ask any more."""

    for alias in dict.fromkeys(call.alias for call in _calls(plans)):
        if gone := retirement(workspace.models[alias]):
            yield gone


def budget_lines(workspace: Workspace, build: str, plans: Sequence[RunPlan]) -> Iterator[str]:
    """Which budgets the plan passes, together with what the build has spent."""
    limits = {limit.name: limit for stage in _by_stage(plans) for limit in _limits(workspace, build, stage)}
    calls = {f"{stage}.budget": _calls(runs) for stage, runs in _by_stage(plans).items()}
    calls["run.budget"] = _calls(plans)
    found = [one for name, limit in limits.items() for one in find_passed_budgets(limit, calls[name])]
    yield from map(_passed, found)
    if not found:
        yield "No budget is passed." if limits else "No budget is set (run.budget, <stage>.budget)."


def _limits(workspace: Workspace, build: str, stage: str) -> list[Allowed]:
    """The limits that are set. The reply cache, which knows what was spent, is opened only for them."""
    budgets = (workspace.settings.run.budget, getattr(workspace.settings, stage).budget)
    if all(value is None for budget in budgets for value in budget.model_dump().values()):
        return []
    limits = limits_of(stage, build, workspace.settings, workspace.models, workspace.cache)
    return [limit for limit in limits if limit.sets_something]


def _passed(one: PassedBudget) -> str:
    if one.by == "unpriced":
        return f"Budget {one.limit} = {one.allowed:g} cannot be kept: models without a price are asked."
    how = "will be passed" if one.by == "expected" else "may be passed"
    shown = with_range(one.planned, amount)
    return f"Budget {one.limit} = {one.allowed:,g} {how}: {shown} expected, with what was spent before."


def note_lines(plans: Sequence[RunPlan]) -> Iterator[str]:
    """What is to be known of the state of a stage."""
    for stage, runs in _by_stage(plans).items():
        yield from dict.fromkeys(f"{stage}: {run.note}." for run in runs if run.note)


def basis_lines(workspace: Workspace, plans: Sequence[RunPlan]) -> Iterator[str]:
    """What the expectations rest on."""

    calls = [each for each in _calls(plans) if not is_asked(workspace.models[each.alias])]
    if not calls:
        return
    whole = sum(each.tokens.value for each in calls) or 1.0
    of_basis = {
        "own": "earlier replies of the same models here",
        "alike": "earlier replies of other models of their kind here",
        "table": "the lengths in configs/usual_usage.yaml",
    }
    shares = {basis: sum(each.tokens.value for each in calls if each.basis == basis) / whole for basis in of_basis}
    said = [f"{share:.0%} of the tokens on {of_basis[basis]}" for basis, share in shares.items() if share >= 0.005]
    yield f"Rests on some rows of each stage, and for {', '.join(said)}."
    yield "The ranges are meant to hold in four of five runs."
    listed = _listed_models(workspace, calls)
    if listed:
        yield f"Prices of {', '.join(listed)}: genai-prices {version('genai-prices')}; of others configs/models.yaml."


def _listed_models(workspace: Workspace, calls: Sequence[PlannedCalls]) -> list[str]:
    priced = dict.fromkeys(each.alias for each in calls if each.dollars is not None and each.dollars.high)
    return [alias for alias in priced if workspace.models[alias].prices is None]


def most_lines(plans: Sequence[RunPlan]) -> Iterator[str]:
    """The footnote: what no run of so many rows can pass."""

    total = total_of(_calls(plans))
    if total.calls.high:
        dollars = "" if not total.most_dollars else f" and {usd(total.most_dollars)} US dollars"
        yield (
            f"At most, if every reply to these requests is as long as it may be and asked for again each time: "
            f"{amount(total.most_tokens)} tokens{dollars}."
        )


def with_range(expected: Expected, shown: object) -> str:
    """`12`, `1,806 (1,500 – 2,100)`."""
    assert callable(shown)
    value, low, high = (shown(each) for each in expected.to_json())
    return value if low == high else f"{value} ({low} – {high})"


def dollars_of(calls: Sequence[PlannedCalls], *, short: bool = False) -> str:
    """`12.00 (9.50 – 15.00)`; with `≥` where a price is not known."""

    unpriced, dollars = unpriced_in(calls), total_of(calls).dollars
    if dollars is None:
        return "unknown" if short else "dollars unknown (no model has a price)"
    shown = with_range(dollars, usd)
    n = len(unpriced)
    more = f", {n} {'model' if n == 1 else 'models'} unpriced" if n and not short else ""
    return f"{'≥ ' if n else ''}{shown}{'' if short else ' US dollars'}{more}"


def amount(value: float) -> str:
    """Whole below ten thousand; then with three digits or so.

    >>> amount(9_999), amount(84_780), amount(1_234_567), amount(2.5e9)
    ('9,999', '85k', '1.23M', '2.5B')
    """
    for letter, size in (("B", 1e9), ("M", 1e6)):
        if value >= size:
            return f"{value / size:.3g}{letter}" if value < 1000 * size else f"{value / size:,.0f}{letter}"
    return f"{value / 1000:.0f}k" if value >= 10_000 else f"{value:,.0f}"


def usd(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 1 or value == 0 else f"{value:.4f}"


def _time(hours: Expected | None) -> str:
    if hours is None:
        return "hours unknown (--tokens-per-second says how fast a server of your own is)"
    if hours.value < 2:
        return f"about {with_range(hours * 60, amount)} minutes"
    return f"about {with_range(hours, amount)} hours"


def _states(runs: Sequence[RunPlan]) -> str:
    states = list(dict.fromkeys(run.state for run in runs))
    if len(states) == 1:
        return states[0]
    return ", ".join(f"{state}: {sum(run.state == state for run in runs)}" for state in states)


def _calls(plans: Sequence[RunPlan]) -> list[PlannedCalls]:
    return [call for plan in plans for call in plan.calls]


def _by_stage(plans: Sequence[RunPlan]) -> Mapping[str, list[RunPlan]]:
    found: dict[str, list[RunPlan]] = {}
    for plan in plans:
        found.setdefault(plan.stage, []).append(plan)
    return found
