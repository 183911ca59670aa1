"""What a run of the chain is expected to ask its models, without asking: a dry run of every stage that there is
something to do for, on the rows of those that are done and, else, on what the dry runs before it have made."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from flows import chain
from flows.chain.status import StageStatus, find_statuses
from tasks.foundation.errors import ColloquyError
from tasks.foundation.run.context import RunContext, Workspace
from tasks.foundation.run.cost_plan import PlannedCalls
from tasks.foundation.run.dry_inputs import DryStage, SampleRows, run_dry
from tasks.foundation.run.usual_usage import UsageHistory
from tasks.foundation.sources import find_files
from tasks.foundation.stage import Stage
from tasks.foundation.store.commits import Commit, commits_of, whole_commits
from tasks.foundation.store.layout import run_name

State = Literal["to do", "again", "failed rows", "if rows change", "up to date", "not selected"]
"""`again`: what it depends on has changed. `if rows change`: a stage before it runs again, perhaps to the same end."""

DONE: tuple[State, ...] = ("up to date", "not selected")
MOST_REQUESTS = 240
"""That a dry run of a stage asks before the rest is taken to be like it; shared by the members of a fan-out."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run of one stage (of a stage that fans out, for one member) asks. `note`: what to know of its state."""

    stage: str
    run: str
    state: State
    calls: Sequence[PlannedCalls] = ()
    note: str = ""


def plan_build(workspace: Workspace, build: str, selected: Sequence[str]) -> list[RunPlan]:
    """The plan of every run of the selected stages, in order. Reads committed rows and local files; asks nobody."""
    with TemporaryDirectory() as folder, _quiet_stages():
        return _Planner(workspace, build, frozenset(selected), Path(folder)).plan(selected)


@contextmanager
def _quiet_stages() -> Iterator[None]:
    """What stages warn of is about the few rows of the dry run."""
    log = logging.getLogger("tasks")
    level, log.level = log.level, logging.CRITICAL
    try:
        yield
    finally:
        log.setLevel(level)


@dataclass
class _Planner:
    workspace: Workspace
    build: str
    selected: Collection[str]
    folder: Path
    dry: dict[str, SampleRows] = field(default_factory=dict)
    """What dry runs have made so far, by table."""

    def plan(self, selected: Sequence[str]) -> list[RunPlan]:
        commits = commits_of(self.workspace.layout, self.build)
        made = {commit.stage for commit in commits.values()}
        names = chain.needed(self.workspace.settings, made | set(selected) | _before(selected))
        found = find_statuses(self.workspace, self.build, [name for name in names if name in made])
        status_of = {status.run: status for status in found}
        plans: list[RunPlan] = []
        changing: set[str] = set()
        for name in names:
            upstream = set(chain.upstream(name))
            states = self._states(chain.stage(name), status_of, bool(changing & upstream))
            if set(states.values()) - set(DONE):
                changing.add(name)
            plans += self._plan_stage(chain.stage(name), states, commits)
        return [plan for plan in plans if plan.stage in self.selected]

    @cached_property
    def _history(self) -> UsageHistory:
        """Read once there is something to plan."""
        return UsageHistory.of(self.workspace.layout, chain.names())

    def _states(self, stage: Stage, status_of: Mapping[str, StageStatus], changing: bool) -> dict[str | None, State]:
        return {
            member: _state(status_of.get(run_name(stage.name, member)), stage.name in self.selected, changing)
            for member in stage.members(self.workspace.settings)
        }

    def _plan_stage(
        self,
        stage: Stage,
        states: Mapping[str | None, State],
        commits: Mapping[str, Commit],
    ) -> list[RunPlan]:
        """The plans of the stage's members. What its dry runs make stands beside what the others have committed."""
        plans: list[RunPlan] = []
        makes: list[Mapping[str, SampleRows]] = []
        real = RunContext(self.workspace, stage, self.build, commits)
        for member, state in states.items():
            run = run_name(stage.name, member)
            if (state in DONE and run in commits) or not (stage.work or chain.downstream(stage.name)):
                plans.append(RunPlan(stage.name, run, state))
                makes.append(self._committed(stage, commits[run]) if run in commits else {})
                continue
            done, note = DryStage((), {}), ""
            try:
                most = max(MOST_REQUESTS // len(states), 24)
                done = run_dry(
                    *(stage, member, self.workspace, real, self.dry, self._history, self.folder), most_requests=most
                )
            except ColloquyError as error:
                note = f"not planned: {error}"
            makes.append(done.makes)
            plans.append(_run_plan(stage.name, run, state, done.calls, commits.get(run), note))
        if any(plan.state not in DONE or plan.run not in commits for plan in plans):
            for table in stage.writes:
                if several := [each[table] for each in makes if table in each]:
                    self.dry[table] = SampleRows.together(several)
        return plans

    def _committed(self, stage: Stage, commit: Commit) -> Mapping[str, SampleRows]:
        """The rows of one member, where another is still to run."""
        if stage.fan_out is None:
            return {}
        reader = RunContext(self.workspace, stage, self.build, {commit.run: commit})
        return {table: SampleRows(reader.committed(table)) for table in stage.writes}


def _before(selected: Sequence[str]) -> set[str]:
    """What a single stage rests on; of several, the first is the first that is needed."""
    return set(chain.upstream(selected[0])) if len(selected) == 1 else set()


def check(workspace: Workspace, build: str, selected: Sequence[str]) -> None:
    """ConfigError or SourceError for what no run would accept. Stages that read datasets of the hub are looked at no
    further than their local files: all else takes a network."""
    if (error := chain.left_to_scripts(workspace.profile, workspace.models)) is not None:
        raise error
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


def _state(status: StageStatus | None, selected: bool, changing: bool) -> State:
    if not selected:
        return "not selected"
    if status is None or status.state == "missing":
        return "to do"
    if status.state == "stale":
        return "again"
    if status.state == "partial":
        return "failed rows"
    return "if rows change" if changing else "up to date"


def _run_plan(
    name: str, run: str, state: State, calls: Sequence[PlannedCalls], commit: Commit | None, note: str
) -> RunPlan:
    if state == "failed rows" and commit is not None:
        failed, worked = commit.accounting.n_failed, commit.accounting.n_produced + commit.accounting.n_failed
        share = failed / worked if worked else 1.0
        note = f"{failed:,} failed rows of {worked:,}, planned as that share of the stage"
        return RunPlan(name, run, state, [each.scaled(share) for each in calls], note)
    if state == "if rows change":
        note = note or "nothing is asked where the rows before it stay the same"
        return RunPlan(name, run, state, [each.possibly() for each in calls], note)
    return RunPlan(name, run, state, calls, note)
