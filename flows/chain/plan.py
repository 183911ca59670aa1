"""What a run of the chain would ask its models, without asking: the plan of every stage that there is something to do
for, from the rows of those that are done and the estimates of those that are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from flows import chain
from flows.chain.status import StageStatus, find_statuses
from tasks.foundation.planning.calls import PlannedCalls
from tasks.foundation.planning.estimate import Known, Portion, View
from tasks.foundation.planning.known import committed, known_of
from tasks.foundation.planning.span import Span
from tasks.foundation.planning.stage_plan import StagePlan, plan_of_stage
from tasks.foundation.run.context import RunContext, Workspace
from tasks.foundation.settings import Settings
from tasks.foundation.sources import find_files
from tasks.foundation.stage import Stage
from tasks.foundation.store.commits import Commit, commits_of, whole_commits
from tasks.foundation.store.layout import run_name

State = Literal["to do", "again", "failed rows", "if rows change", "up to date", "not selected"]
"""`again`: what it depends on has changed. `if rows change`: a stage before it runs again, perhaps to the same end."""

DONE: tuple[State, ...] = ("up to date", "not selected")


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run of one stage (of a stage that fans out, for one member) asks. `note`: what to know of its state."""

    stage: str
    run: str
    state: State
    calls: Sequence[PlannedCalls] = ()
    assumes: Sequence[str] = ()
    note: str = ""


def plan_build(workspace: Workspace, build: str, selected: Sequence[str]) -> list[RunPlan]:
    """The plan of every run of the selected stages, in order. Reads committed tables; asks nobody."""
    commits = commits_of(workspace.layout, build)
    made = {commit.stage for commit in commits.values()}
    names = chain.needed(workspace.settings, made | set(selected) | _before(selected))
    found = find_statuses(workspace, build, [name for name in names if name in made])
    standing_of = {standing.run: standing for standing in found}
    known: dict[str, Sequence[Portion]] = {}
    plans: list[RunPlan] = []
    changing: set[str] = set()
    for name in names:
        stage, makes = chain.stage(name), list[Known]()
        for member in stage.members(workspace.settings):
            run = run_name(name, member)
            state = _state(standing_of.get(run), name in selected, bool(changing & set(chain.upstream(name))))
            if state not in DONE:
                changing.add(name)
            plan = plan_of_stage(stage, View(workspace.settings, workspace.models, known, member))
            makes.append(_rows(workspace, stage, commits, run) if state in DONE and run in commits else plan.makes)
            if name in selected:
                plans.append(_run_plan(name, run, state, plan, commits.get(run)))
        for each in makes:
            for table, portions in each.items():
                known[table] = [*known.get(table, ()), *portions]
    return plans


def _before(selected: Sequence[str]) -> set[str]:
    """What a single stage rests on; of several, the first is the first that is needed."""
    return set(chain.upstream(selected[0])) if len(selected) == 1 else set()


def check(workspace: Workspace, build: str, selected: Sequence[str]) -> None:
    """ConfigError or SourceError for what no run would accept. Stages that read datasets of the hub are looked at no
    further than their local files: all else takes a network."""
    commits = whole_commits(workspace.layout, build)
    for stage in map(chain.stage, selected):
        sources = stage.sources(workspace.settings)
        if any(source.hub for source in sources):
            for source in sources:
                if source.file is not None:
                    find_files(source.file, source.split)
            continue
        for member in stage.members(workspace.settings):
            stage.check(RunContext(workspace, stage, build, commits, member=member))


def without_reasks(settings: Settings) -> Settings:
    """The settings under which every reply can be used at once and no call fails."""
    calm = settings.llm.model_copy(update={"max_reasks": 0, "retry_attempts": 1, "salvage_rounds": 0})
    return settings.model_copy(update={"llm": calm})


def _state(standing: StageStatus | None, selected: bool, changing: bool) -> State:
    if not selected:
        return "not selected"
    if standing is None or standing.state == "missing":
        return "to do"
    if standing.state == "stale":
        return "again"
    if standing.state == "partial":
        return "failed rows"
    return "if rows change" if changing else "up to date"


def _rows(workspace: Workspace, stage: Stage, commits: Mapping[str, Commit], run: str) -> Known:
    """What the run has committed."""
    return known_of(committed(workspace.layout, [commits[run]], commits.values()), stage.writes)


def _run_plan(name: str, run: str, state: State, plan: StagePlan, commit: Commit | None) -> RunPlan:
    if state == "up to date":
        return RunPlan(name, run, state)
    if state == "failed rows" and commit is not None:
        failed, worked = commit.accounting.n_failed, commit.accounting.n_produced + commit.accounting.n_failed
        share = Span(0, failed / worked if worked else 1)
        note = f"{failed:,} failed rows of {worked:,}, planned as that share of the stage"
        return RunPlan(name, run, state, [_scaled(each, share) for each in plan.calls], plan.assumes, note)
    if state == "if rows change":
        calls = [_scaled(each, Span(0, 1)) for each in plan.calls]
        return RunPlan(name, run, state, calls, plan.assumes, "nothing is asked where the rows before it stay the same")
    note = "what the reply cache holds already costs nothing and is not taken off" if state == "again" else ""
    return RunPlan(name, run, state, plan.calls, plan.assumes, note)


def _scaled(calls: PlannedCalls, share: Span) -> PlannedCalls:
    def scaled(span: Span) -> Span:
        return Span(span.low * share.low, span.high * share.high)

    return replace(
        calls,
        requests=scaled(calls.requests),
        calls=scaled(calls.calls),
        prompt_tokens=scaled(calls.prompt_tokens),
        completion_tokens=scaled(calls.completion_tokens),
        dollars=None if calls.dollars is None else scaled(calls.dollars),
    )
