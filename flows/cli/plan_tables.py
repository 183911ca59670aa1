"""What `colloquy plan` prints: tables by stage and by model, budgets that are passed, and what was assumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version

from rich.box import SIMPLE_HEAD
from rich.table import Table

from flows.chain.plan import RunPlan
from tasks.foundation.llm.budget import Allowed
from tasks.foundation.llm.models import ModelSpec, retirement
from tasks.foundation.planning import meter
from tasks.foundation.planning.calls import PlannedCalls, by_alias
from tasks.foundation.planning.likely import Likely, earlier_requests, likely
from tasks.foundation.planning.span import Span
from tasks.foundation.planning.totals import Passed, Total, minutes_at_least, passed, total_of
from tasks.foundation.run import Workspace
from tasks.foundation.run.batching import in_batches
from tasks.foundation.run.spending import limits_of
from tasks.foundation.settings.sections import LlmSection

COLUMNS = ("requests", "calls", "prompt tokens", "completion tokens", "US $")


def stages_table(plans: Sequence[RunPlan], models: Mapping[str, ModelSpec]) -> Table:
    """A line for every stage and model, one for a stage's total where it asks several, and one for all stages."""
    grid = _Grid(("stage", "state", "model"), models, _calls(plans))
    for stage, runs in _by_stage(plans).items():
        of_stage = by_alias(call for run in runs for call in run.calls)
        names = [stage, _states(runs)]
        if not of_stage:
            grid.say(*names, "asks no model" if names[1] != "up to date" else "")
            continue
        for calls in of_stage:
            grid.add(calls, *names, calls.alias)
            names = ["", ""]
        if len(of_stage) > 1:
            grid.add_total(total_of(of_stage), "", "", "together")
    grid.add_total(total_of(_calls(plans)), "all stages", "", "")
    return grid.table


def models_table(plans: Sequence[RunPlan], models: Mapping[str, ModelSpec]) -> Table:
    """A line for every model."""
    grid = _Grid(("model",), models, _calls(plans))
    for calls in by_alias(_calls(plans)):
        grid.add(calls, calls.alias)
    return grid.table


def calm_lines(calm: Sequence[RunPlan]) -> Iterator[str]:
    """The highest numbers of a run in which every reply can be used at once."""
    total = total_of(_calls(calm))
    if total.calls.high:
        calls, prompt, completion = (
            amount(span.high) for span in (total.calls, total.prompt_tokens, total.completion_tokens)
        )
        yield (
            f"If no reply has to be asked for again and no call fails: at most {calls} calls, {prompt} prompt and "
            f"{completion} completion tokens, {dollars_of(total, high_only=True)}."
        )


def likely_lines(workspace: Workspace, plans: Sequence[RunPlan]) -> Iterator[str]:
    """What the plan comes to if requests go as they went in the builds of this store; nothing where most of them are of
    a sort that was never asked before."""
    earlier = earlier_requests(workspace.layout)
    every: list[Likely] = []
    unknown: list[str] = []
    n_known = n_unknown = 0.0
    for plan in plans:
        batched = in_batches(workspace.settings, plan.stage)
        for calls in (each for each in plan.calls if each.requests.high):
            found = likely(plan.stage, calls, earlier, workspace.models[calls.alias], batched=batched)
            if found is None:
                unknown.append(f"{calls.purpose} ({plan.stage})")
                n_unknown += calls.requests.high
            else:
                every.append(found)
                n_known += calls.requests.high
    if not every or n_known < n_unknown:
        return
    yield _likely(every, sum(earlier[key].n for key in {key for one in every for key in one.rests_on}))
    if unknown:
        yield f"Not in that, as nobody was asked it before: {', '.join(dict.fromkeys(unknown))}."


def _likely(every: Sequence[Likely], n: int) -> str:
    calls, prompt, completion = (
        amounts(Span.total(spans))
        for spans in zip(*((one.calls, one.prompt_tokens, one.completion_tokens) for one in every), strict=True)
    )
    dollars = [one.dollars for one in every if one.dollars is not None]
    more = "" if len(dollars) == len(every) else "≥ "
    return (
        f"Likely, as {n:,} such requests went in the builds here: {calls} calls, {prompt} prompt and {completion} "
        f"completion tokens, {more}{money(Span.total(dollars))} US dollars."
    )


def retired_lines(workspace: Workspace, plans: Sequence[RunPlan]) -> Iterator[str]:
    """Models of the plan that nobody can ask any more."""
    for alias in dict.fromkeys(call.alias for call in _calls(plans)):
        if gone := retirement(workspace.models[alias]):
            yield gone


def budget_lines(workspace: Workspace, build: str, plans: Sequence[RunPlan]) -> Iterator[str]:
    """Which budgets the plan passes, together with what the build has spent."""
    limits = {limit.name: limit for stage in _by_stage(plans) for limit in _limits(workspace, build, stage)}
    totals = {
        f"{stage}.budget": [call for run in runs for call in run.calls] for stage, runs in _by_stage(plans).items()
    }
    totals["run.budget"] = _calls(plans)
    found = [one for name, limit in limits.items() for one in passed(limit, total_of(totals[name]))]
    yield from map(_passed, found)
    if not found:
        yield "No budget is passed." if limits else "No budget is set (run.budget, <stage>.budget)."


def _limits(workspace: Workspace, build: str, stage: str) -> list[Allowed]:
    """The limits that are set. The reply cache, which knows what was spent, is opened only for them."""
    section = getattr(workspace.settings, stage)
    budgets = (workspace.settings.run.budget, section.budget)
    if all(value is None for budget in budgets for value in budget.model_dump().values()):
        return []
    limits = limits_of(stage, build, workspace.settings, workspace.models, workspace.cache)
    return [limit for limit in limits if limit.sets_something]


def _passed(one: Passed) -> str:
    planned = f"{amounts(one.planned)} with what was spent before"
    if one.by == "unpriced":
        return f"Budget {one.limit} = {one.allowed:g} cannot be kept: models without a price are asked."
    how = "is passed in any case" if one.by == "low" else "may be passed"
    return f"Budget {one.limit} = {one.allowed:,g} {how}: planned {planned}."


def assumptions(workspace: Workspace, plans: Sequence[RunPlan]) -> Iterator[str]:
    """In words, with the numbers."""
    yield from (f"- {line}" for line in _general(workspace, plans))
    for stage, runs in _by_stage(plans).items():
        lines = dict.fromkeys(line for run in runs for line in (*run.assumes, *([run.note] if run.note else ())))
        yield from (f"- {stage}: {line}" for line in lines)


def _general(workspace: Workspace, plans: Sequence[RunPlan]) -> Iterator[str]:
    yield _low_and_high(workspace.settings.llm)
    yield "no row fails; the reply cache is empty (what it holds costs nothing); no retry of the whole run"
    used = {call.alias: workspace.models[call.alias] for call in _calls(plans)}
    if any(spec.provider != "scripted" for spec in used.values()):
        narrow, wide = meter.NARROW, meter.WIDE
        yield (
            f"tokens a character: {narrow.low:g} to {narrow.high:g} in English ({1 / narrow.high:g} to "
            f"{1 / narrow.low:g} characters a token), {wide.low:g} to {wide.high:g} in Chinese; a JSON schema that the "
            "endpoint takes apart counts as prompt (high) or not (low)"
        )
    if any(spec.provider == "scripted" for spec in used.values()):
        yield "scripted models count four characters as a token"
    batched = [
        stage for stage in _by_stage(plans) if getattr(getattr(workspace.settings, stage), "mode", "") == "batch"
    ]
    if batched:
        yield f"batch mode ({', '.join(batched)}): the batch price where it is known"
    listed = [alias for alias, spec in used.items() if spec.prices is None and spec.provider in ("openai", "google")]
    if listed:
        yield f"prices of {', '.join(listed)}: genai-prices {version('genai-prices')}; of others configs/models.yaml"
    if any(minutes_at_least(calls, workspace.models[calls.alias]) for calls in _calls(plans)):
        yield "takes at least: what the models' limits a minute allow; the time of the replies comes on top"


def _low_and_high(llm: LlmSection) -> str:
    return (
        "low: every reply can be used at once and is short, and what a long prompt repeats is read from the provider's "
        "cache where that is cheaper; high: every reply has as many tokens as it may (max_tokens; when asked again, "
        f"twice that) and is asked for again until llm.max_reasks = {llm.max_reasks} is used up. Tries that bring no "
        "reply are not counted: refusals cost nothing, a call that was given up may be billed"
    )


class _Grid:
    """A table of plans; times stand in it where a model has limits a minute."""

    def __init__(self, names: Sequence[str], models: Mapping[str, ModelSpec], every: Sequence[PlannedCalls]) -> None:
        self.table = Table(box=SIMPLE_HEAD)
        self._models = models
        self._timed = any(minutes_at_least(calls, models[calls.alias]) for calls in every)
        for name in names:
            self.table.add_column(name, overflow="fold")
        for name in (*COLUMNS, *(["takes at least"] if self._timed else [])):
            self.table.add_column(name, justify="right", overflow="fold")

    def add(self, calls: PlannedCalls, *names: str) -> None:
        cost = "unknown" if calls.dollars is None else money(calls.dollars)
        time = _time(minutes_at_least(calls, self._models[calls.alias]))
        self._row(names, calls, cost, time)

    def add_total(self, total: Total, *names: str) -> None:
        self._row(names, total, dollars_of(total).replace(", ", "\n", 1), "", style="bold")

    def say(self, *words: str) -> None:
        self.table.add_row(*words, style="dim")

    def _row(self, names: Sequence[str], of: PlannedCalls | Total, cost: str, time: str, style: str = "") -> None:
        spans = (of.requests, of.calls, of.prompt_tokens, of.completion_tokens)
        self.table.add_row(*names, *map(amounts, spans), cost, *([time] if self._timed else []), style=style)


def dollars_of(total: Total, *, high_only: bool = False) -> str:
    """`12.00 – 80.00`; `≥ 12.00 – 80.00, 1 model unpriced` where a price is not known."""
    shown = f"{_usd(total.dollars.high)} US dollars" if high_only else money(total.dollars)
    n = len(total.unpriced)
    return f"≥ {shown}, {n} {'model' if n == 1 else 'models'} unpriced" if n else shown


def amounts(span: Span) -> str:
    """`12`, `12 – 240`, `1,806 – 685k`."""
    return _between(amount(span.low), amount(span.high))


def amount(value: float) -> str:
    """Whole below ten thousand; then with three digits or so.

    >>> amount(9_999), amount(84_780), amount(1_234_567), amount(2.5e9)
    ('9,999', '85k', '1.23M', '2.5B')
    """
    for letter, size in (("B", 1e9), ("M", 1e6)):
        if value >= size:
            return f"{value / size:.3g}{letter}" if value < 1000 * size else f"{value / size:,.0f}{letter}"
    return f"{value / 1000:.0f}k" if value >= 10_000 else f"{value:,.0f}"


def money(span: Span) -> str:
    return _between(_usd(span.low), _usd(span.high))


def _usd(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 1 or value == 0 else f"{value:.4f}"


def _between(low: str, high: str) -> str:
    """With spaces, so that a narrow table breaks there and not within a number."""
    return low if low == high else f"{low} – {high}"


def _time(minutes: Span | None) -> str:
    if minutes is None:
        return ""
    low, high = (f"{value:.0f} min" if value < 120 else f"{value / 60:.1f} h" for value in (minutes.low, minutes.high))
    return _between(low, high)


def _states(runs: Sequence[RunPlan]) -> str:
    states = list(dict.fromkeys(run.state for run in runs))
    if len(states) == 1:
        return states[0]
    return ", ".join(f"{state}: {sum(run.state == state for run in runs)}" for state in states)


def _by_stage(plans: Sequence[RunPlan]) -> dict[str, list[RunPlan]]:
    found: dict[str, list[RunPlan]] = {}
    for each in plans:
        found.setdefault(each.stage, []).append(each)
    return found


def _calls(plans: Sequence[RunPlan]) -> list[PlannedCalls]:
    return [call for each in plans for call in each.calls]
