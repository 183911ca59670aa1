"""Where each stage of a build stands, without running anything: done, partial, stale (and why), or missing; and what a
run of them would be refused for.

What can be refused is refused before the first stage is paid for: settings that cannot work, families of models, source
files, keys, weights. A chain that would stop at its fifth stage for want of a key stops here instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from flows import chain
from flows.chain.options import RunOptions
from tasks.foundation.errors import ColloquyError, ModelUnavailable
from tasks.foundation.llm.models import check_reachable, check_ready
from tasks.foundation.run.batching import check_mode, in_batches
from tasks.foundation.run.context import MissingInput, RunContext, Workspace
from tasks.foundation.run.fingerprints import changed
from tasks.foundation.run.opening import decide, inputs_of
from tasks.foundation.run.spending import check_budget
from tasks.foundation.stage import Stage
from tasks.foundation.store.commits import Commit, commits_of, missing_parts, whole_commits
from tasks.foundation.store.layout import run_name
from tasks.foundation.store.locks import at_work

State = Literal["up to date", "partial", "stale", "missing", "behind", "running"]


@dataclass(frozen=True, slots=True)
class StageStatus:
    """One stage of a build (of a stage that fans out, one member); `why` is a phrase for people, or empty.

    `behind`: nothing of the stage itself has changed, but a stage before it is not up to date; `running`: another
    process is at it.
    `error`: what a run of this stage alone would end with at once. `would_do_nothing`: such a run would find it
    up to date.
    """

    stage: str
    member: str | None
    run: str
    state: State
    why: str
    commit: Commit | None
    error: ColloquyError | None = None

    @property
    def would_do_nothing(self) -> bool:
        return self.state in ("up to date", "behind")


def find_statuses(workspace: Workspace, build: str, names: Sequence[str], *, guests: bool = False) -> list[StageStatus]:
    """The status of each named stage under the workspace's settings, in the given order; with `guests`, of members
    that the build holds and the settings do not name, too."""
    commits = commits_of(workspace.layout, build)
    found: list[StageStatus] = []
    for name in names:
        stage = chain.stage(name)
        before = [each for each in found if each.stage in chain.upstream(name)]
        members = stage.members(workspace.settings)
        others = [commit.member for commit in commits.values() if commit.stage == name and commit.member not in members]
        for member in (*members, *(others if guests else ())):
            found.append(_after(_alone(stage, member, workspace, build, commits), before))
    return found


def _alone(
    stage: Stage, member: str | None, workspace: Workspace, build: str, commits: Mapping[str, Commit]
) -> StageStatus:
    """The status of a stage, given what is committed of its inputs."""
    run = run_name(stage.name, member)
    commit = commits.get(run)

    def status(state: State, why: str, error: ColloquyError | None = None) -> StageStatus:
        return StageStatus(stage.name, member, run, state, why, commit, error)

    if busy := at_work(workspace.layout.lock(build, run)):
        return status("running", f"by {busy}")
    try:
        inputs = inputs_of(stage, workspace, commits, build, member)
    except ColloquyError as error:
        made_by = error.made_by if isinstance(error, MissingInput) else None
        why = f"after {made_by}" if made_by else str(error)
        return status("missing" if commit is None else "stale", why, error)
    if commit is None:
        return status("missing", "not run yet")
    if gone := missing_parts(workspace.layout, commit):
        files = ", ".join(f"{count} of {table}" for table, count in gone.items())
        return status("stale", f"files are missing: {files}; a run makes them again from the cache")
    decision, _ = decide(commit, inputs.fingerprint, force=False)
    if decision == "run":
        return status("stale", f"changed: {', '.join(changed(commit.components, inputs.components))}")
    if decision == "redo failed rows":
        return status("partial", f"{commit.accounting.n_failed} failed rows, some of which may pass when tried again")
    return status("up to date", "")


def _after(status: StageStatus, before: Sequence[StageStatus]) -> StageStatus:
    late = [each.run for each in before if each.state not in ("up to date", "running")]
    if status.state != "up to date" or not late:
        return status
    return replace(status, state="behind", why=f"{', '.join(late)} before it is not up to date")


def look_ahead(options: RunOptions, stages: Sequence[str], build: str) -> tuple[list[StageStatus], list[StageStatus]]:
    """The selected stages that there is something to do for, and those that are up to date.

    Raises the ColloquyError that a run of them would end with, as far as that can be known.
    """
    workspace = chain.open_workspace(options)
    check_all(workspace, build, stages)
    every = find_statuses(workspace, build, chain.of_build(workspace, build, stages))
    first, *_ = mine = [status for status in every if status.stage in stages]
    todo = [status for status in mine if options.forces(status.stage) or not status.would_do_nothing]
    check_models(workspace, todo)
    if first.error is not None:
        raise first.error
    return todo, [status for status in mine if status not in todo]


def check_all(workspace: Workspace, build: str, stages: Sequence[str]) -> None:
    """Every named stage's own check, as its run would make it first. Raises ConfigError or SourceError.

    Rows whose files are missing are as if not made yet: a run makes them again before the stage reads them.
    """
    commits = whole_commits(workspace.layout, build)
    for name in stages:
        stage = chain.stage(name)
        for member in stage.members(workspace.settings):
            stage.check(RunContext(workspace, stage, build, commits, member=member))


def check_models(workspace: Workspace, todo: Sequence[StageStatus]) -> None:
    """ModelUnavailable naming all that is missing for the stages that there is something to do for; ConfigError for
    budgets and modes that cannot be kept."""
    settings, missing = workspace.settings, dict[str, list[str]]()
    for status in todo:
        stage = chain.stage(status.stage)
        check_mode(stage, workspace)
        specs = [workspace.models[alias] for alias in stage.aliases(settings, status.member)]
        check_budget(stage.name, settings, specs, batched=in_batches(settings, stage.name))
        if settings.llm.replay_only:
            continue
        problems = [check_ready(spec) or check_reachable(spec) for spec in specs]
        for problem in filter(None, problems):
            missing.setdefault(problem, []).append(stage.name)
    if missing:
        lines = [f"{problem} ({', '.join(dict.fromkeys(stages))})" for problem, stages in missing.items()]
        raise ModelUnavailable("some models cannot be asked; nothing was started:\n  " + "\n  ".join(lines))
    if any(chain.stage(status.stage).encodes for status in todo):
        _ = workspace.encoder.weights_folder
