"""Where each stage of a build stands, without running anything: done, partial, stale (and why), or missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from flows import chain
from tasks.foundation.errors import ColloquyError
from tasks.foundation.run import Workspace
from tasks.foundation.run.context import MissingInput
from tasks.foundation.run.fingerprints import changed
from tasks.foundation.run.opening import decide, inputs_of
from tasks.foundation.stage import Stage
from tasks.foundation.store.commits import Commit, commits_of, missing_parts
from tasks.foundation.store.layout import run_name
from tasks.foundation.store.locks import at_work

State = Literal["up to date", "partial", "stale", "missing", "behind", "running"]


@dataclass(frozen=True, slots=True)
class Standing:
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


def standings(workspace: Workspace, build: str, names: Sequence[str], *, guests: bool = False) -> list[Standing]:
    """The standing of each named stage under the workspace's settings, in the given order; with `guests`, of members
    that the build holds and the settings do not name, too."""
    commits = commits_of(workspace.layout, build)
    found: list[Standing] = []
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
) -> Standing:
    """The standing of a stage, given what is committed of its inputs."""
    run = run_name(stage.name, member)
    commit = commits.get(run)

    def standing(state: State, why: str, error: ColloquyError | None = None) -> Standing:
        return Standing(stage.name, member, run, state, why, commit, error)

    if busy := at_work(workspace.layout.lock(build, run)):
        return standing("running", f"by {busy}")
    try:
        inputs = inputs_of(stage, workspace, commits, build, member)
    except ColloquyError as error:
        made_by = error.made_by if isinstance(error, MissingInput) else None
        why = f"after {made_by}" if made_by else str(error)
        return standing("missing" if commit is None else "stale", why, error)
    if commit is None:
        return standing("missing", "not run yet")
    if gone := missing_parts(workspace.layout, commit):
        files = ", ".join(f"{count} of {table}" for table, count in gone.items())
        return standing("stale", f"files are missing: {files}; a run makes them again from the cache")
    decision, _ = decide(commit, inputs.fingerprint, force=False)
    if decision == "run":
        return standing("stale", f"changed: {', '.join(changed(commit.components, inputs.components))}")
    if decision == "redo failed rows":
        return standing("partial", f"{commit.accounting.n_failed} failed rows, some of which may pass when tried again")
    return standing("up to date", "")


def _after(standing: Standing, before: Sequence[Standing]) -> Standing:
    late = [each.run for each in before if each.state not in ("up to date", "running")]
    if standing.state != "up to date" or not late:
        return standing
    return replace(standing, state="behind", why=f"{', '.join(late)} before it is not up to date")
