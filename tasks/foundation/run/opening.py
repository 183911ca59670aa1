"""What a stage run depends on, and what there is to do for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.ids import digest
from tasks.foundation.llm.models import check_ready
from tasks.foundation.run.context import MissingInput, Workspace, makers, may_be_missing, members_with
from tasks.foundation.run.fingerprints import code_identity, combine, files_identity
from tasks.foundation.settings import without_knobs
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.sources.hub import Revisions
from tasks.foundation.stage import Stage
from tasks.foundation.store.commits import Commit
from tasks.foundation.store.parts import sum_hashes

Decision = Literal["up to date", "run", "redo failed rows", "run again"]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Hashes of everything a stage run depends on, by name, and of its input tables."""

    components: Mapping[str, str]
    parents: Mapping[str, str]

    @property
    def fingerprint(self) -> str:
        return combine(self.components)


def inputs_of(
    stage: Stage, workspace: Workspace, commits: Mapping[str, Commit], build: str, member: str | None = None
) -> Inputs:
    """The fingerprint's components. StoreError when an input table is not there yet."""
    settings = workspace.settings
    parents = {table: _parent_hash(stage, workspace, commits, table) for table in stage.reads}
    components = {
        "member": member or "",
        "settings": digest(_section(stage, workspace, member)),
        "seed": digest(settings.run.seed),
        "text limits": digest(_limits_used(stage, workspace)),
        "asking": digest(without_knobs(settings.llm)) if stage.work else "",
        "fresh": digest(build) if settings.run.fresh else "",
        "prompts": digest({prompt.path: prompt.fingerprint for prompt in stage.prompts}),
        "taxonomies": digest({name: taxonomy(name).fingerprint for name in stage.taxonomies}),
        "models": digest({alias: workspace.models[alias].identity() for alias in stage.aliases(settings, member)}),
        "model facts": digest(stage.model_facts(settings, workspace.models, _used(commits, stage))),
        "encoder": digest(_compared_with(workspace)) if stage.encodes else "",
        "files": files_identity(stage.files(settings)),
        "sources": files_identity(Revisions.of(workspace.layout, build).identities(stage.sources(settings))),
        "inputs": digest(parents),
        "code": code_identity(stage.package),
    }
    if stage.asks_members:
        components["members"] = digest({table: members_with(commits, table) for table in stage.asks_members})
    return Inputs(components, parents)


def _used(commits: Mapping[str, Commit], stage: Stage) -> set[str]:
    """The models that the other stages of the build have asked."""
    return {
        alias for commit in commits.values() if commit.stage != stage.name for alias in commit.record.get("models", {})
    }


def _compared_with(workspace: Workspace) -> dict[str, str]:
    return {language: similarity.fingerprint for language, similarity in workspace.similarities.items()}


def decide(commit: Commit | None, fingerprint: str, force: bool, *, whole: bool = True) -> tuple[Decision, int]:
    """What to do, and under which revision: 0 for new inputs, the next one where a commit is replaced. `whole`: all
    files of the commit are there; else it is made again."""
    if commit is None or commit.fingerprint != fingerprint:
        return "run", 0
    if force or not whole:
        return "run again", commit.revision + 1
    if commit.partial:
        return "redo failed rows", commit.revision + 1
    return "up to date", commit.revision


def _limits_used(stage: Stage, workspace: Workspace) -> dict[str, int]:
    return workspace.settings.text_limits.model_dump(include=set(stage.limits))


def _section(stage: Stage, workspace: Workspace, member: str | None) -> dict[str, object]:
    """The stage's settings as they concern the member, without knobs, and without the list it fans out over."""
    section = without_knobs(stage.section_of(workspace.settings).of(member))
    return {name: value for name, value in section.items() if name != stage.fan_out}


def check_models(stage: Stage, workspace: Workspace, member: str | None = None) -> None:
    """ModelUnavailable naming everything that is missing (keys, weights) for the models of a stage."""
    settings = workspace.settings
    problems = [check_ready(workspace.models[alias]) for alias in stage.aliases(settings, member)]
    missing = [problem for problem in problems if problem]
    if missing:
        raise ModelUnavailable(f"stage {stage.name} cannot ask its models:\n  " + "\n  ".join(missing))


def _parent_hash(stage: Stage, workspace: Workspace, commits: Mapping[str, Commit], table: str) -> str:
    holding = makers(commits, table)
    if holding:
        return sum_hashes(commit.table_hash(table) for commit in holding)
    if may_be_missing(stage, table):
        return ""
    raise MissingInput(stage.name, table, workspace.stage_of.get(table))


def plain_settings(stage: Stage, workspace: Workspace) -> dict[str, object]:
    """The settings a commit records: the stage's section, the run's, and the text limits that it uses; there are no
    secrets in settings."""
    settings = workspace.settings
    sections = {
        stage.name: stage.section_of(settings).model_dump(),
        "run": settings.run.model_dump(),
        "text_limits": _limits_used(stage, workspace),
    }
    return json.loads(json.dumps(sections, default=str))
