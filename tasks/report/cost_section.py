"""The section on what was paid: tokens and dollars by stage and model, and the plan beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tasks.foundation.run.cost_plan import PlannedCalls, by_alias, planned_in
from tasks.foundation.store.commits import Commit
from tasks.report import charts, numbers
from tasks.report.blocks import Note, Section, Table, make_filled_table, make_section
from tasks.report.data_sections import Ask
from tasks.report.questions import QueryResult, Record

PARTS = {"prompt_tokens": "prompt", "completion_tokens": "completion"}
PANELS = {"calls": "Calls", "tokens": "Tokens", "dollars": "US dollars"}
HEADS = (
    *("stage", "model", "planned_calls", "calls", "from_cache", "planned_tokens", "tokens"),
    *("planned_dollars", "cost_usd", "as_planned"),
)


def cost(ask: Ask, commits: Mapping[str, Commit], build: str) -> Section:
    answer, uses = ask("costs"), ask("models_in_use")
    planned = compare_with_plan(commits, answer)
    drawn = charts.ranges(
        "Planned (the range meant to hold in four of five runs) and taken (the mark), by stage and model. Logarithmic "
        "scales.",
        planned,
        "asked",
        PANELS,
    )
    spent = [
        _tokens(answer, ask("funnel").values("stage")),
        make_filled_table(answer, "Requests, tokens and cost by stage and model."),
    ]
    return make_section(
        "cost",
        "Cost and tokens",
        "Calls that this build made; what came from the reply cache was paid for before. A cost is unknown where a "
        "price is: never 0.",
        [
            ("", spent),
            ("Plan and actual", [drawn, _plan_table(planned, answer)]),
            ("To score a target", [make_filled_table(ask("cost_by_target"), "What each target's scores cost.")]),
            ("What each model was asked for", [make_filled_table(uses, "Models by stage and purpose.", folded=True)]),
        ],
        Note("No model has been asked.", "missing", f"colloquy run --build {build}"),
    )


def _tokens(answer: QueryResult, stages: Sequence[str]) -> charts.Figure | None:
    """Tokens by stage; a sum that lacks some is not drawn."""
    records: dict[str, Record] = {stage: {"stage": stage, **dict.fromkeys(PARTS, 0)} for stage in stages}
    for record in answer.records:
        row = records.setdefault(record["stage"], {"stage": record["stage"], **dict.fromkeys(PARTS, 0)})
        for part in PARTS:
            row[part] = None if row[part] is None or record[part] is None else row[part] + record[part]
    asked = {record["stage"] for record in answer.records}
    shown = [row for stage, row in records.items() if stage in asked]
    lacking = [f"{row['stage']} ({name})" for row in shown for part, name in PARTS.items() if row[part] is None]
    missing = f" Not reported by every reply, so not drawn: {', '.join(lacking)}." if lacking else ""
    return charts.bars(f"Tokens by stage.{missing}", shown, "stage", PARTS, "tokens")


def compare_with_plan(commits: Mapping[str, Commit], costs: QueryResult) -> list[Record]:
    """A record for each stage and model that was planned to be asked: `calls`, `tokens` and `dollars` as they were,
    as planned (`…_planned`), and from `…_low` to `…_high` as the plan's range has it. None: not known."""
    taken = {(record["stage"], record["alias"]): record for record in costs.records}
    return [
        _record(stage, calls, taken.get((stage, calls.alias)))
        for stage, planned in _plans(commits).items()
        for calls in by_alias(planned)
    ]


def _plans(commits: Mapping[str, Commit]) -> dict[str, list[PlannedCalls]]:
    """The planned calls of each stage, over its members, in the order of the commits."""
    found: dict[str, list[PlannedCalls]] = {}
    for commit in commits.values():
        if calls := planned_in(commit.record):
            found.setdefault(commit.stage, []).extend(calls)
    return found


def _record(stage: str, planned: PlannedCalls, taken: Record | None) -> Record:
    actual = taken or {"calls": 0, "from_cache": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost_usd": 0.0}
    tokens = None if None in (parts := [actual[part] for part in PARTS]) else sum(parts)
    found: Record = {"stage": stage, "model": planned.alias, "asked": f"{stage}, {planned.alias}"}
    found |= {"calls": actual["calls"], "tokens": tokens, "dollars": actual["cost_usd"]}
    for name, amount in (("calls", planned.calls), ("tokens", planned.tokens), ("dollars", planned.dollars)):
        value, low, high = (None, None, None) if amount is None else amount.to_json()
        found |= {f"{name}_planned": value, f"{name}_low": low, f"{name}_high": high}
    return found | {"from_cache": actual["from_cache"]}


def _plan_table(planned: Sequence[Record], costs: QueryResult) -> Table | None:
    """What was planned is in the commits; what it took, in the SQL of costs."""
    rows = tuple(
        (
            *(one["stage"], one["model"]),
            *(_between(one, "calls"), one["calls"], one["from_cache"], _between(one, "tokens"), one["tokens"]),
            *(_between(one, "dollars"), one["dollars"], _verdict(one)),
        )
        for one in planned
    )
    caption = "The plan made as each stage began (from its commit) and what it took (from the SQL)."
    return make_filled_table(QueryResult(costs.name, costs.sql, HEADS, rows), caption)


def _between(record: Record, name: str) -> str:
    low, high = record[f"{name}_low"], record[f"{name}_high"]
    if high is None:
        return "unknown"
    shown = numbers.money if name == "dollars" else lambda value: numbers.count(round(value))
    value = shown(record[f"{name}_planned"])
    return value if low == high else f"{value} ({shown(low)} to {shown(high)})"


def _verdict(record: Record) -> str:
    """Whether what was taken lies within the plan; what came from the cache was not taken."""
    known = [name for name in PANELS if record[name] is not None and record[f"{name}_high"] is not None]
    more = [name for name in known if record[name] > record[f"{name}_high"]]
    less = [name for name in known if record[name] < record[f"{name}_low"]]
    if more:
        return f"more {', '.join(more)}"
    if less:
        return f"fewer {', '.join(less)}" + (" (some came from the cache)" if record["from_cache"] else "")
    return "yes"
