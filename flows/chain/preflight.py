"""What can be refused before the first stage is paid for: settings that cannot work, families of models, source
files, keys, weights. A chain that would stop at its fifth stage for want of a key stops here instead."""

from __future__ import annotations

from collections.abc import Sequence

from flows import chain
from flows.chain.status import Standing, standings
from flows.options import RunOptions
from tasks.foundation.errors import ModelUnavailable
from tasks.foundation.llm.models import check_ready
from tasks.foundation.llm.reach import silent
from tasks.foundation.run import Workspace
from tasks.foundation.run.batching import check_mode, in_batches
from tasks.foundation.run.context import RunContext
from tasks.foundation.run.spending import check_budget
from tasks.foundation.store.commits import whole_commits


def look_ahead(options: RunOptions, stages: Sequence[str], build: str) -> tuple[list[Standing], list[Standing]]:
    """The selected stages that there is something to do for, and those that are up to date.

    Raises the ColloquyError that a run of them would end with, as far as that can be known.
    """
    workspace = chain.open_workspace(options)
    check_all(workspace, build, stages)
    every = standings(workspace, build, chain.of_build(workspace, build, stages))
    first, *_ = mine = [standing for standing in every if standing.stage in stages]
    todo = [standing for standing in mine if options.forces(standing.stage) or not standing.would_do_nothing]
    check_models(workspace, todo)
    if first.error is not None:
        raise first.error
    return todo, [standing for standing in mine if standing not in todo]


def check_all(workspace: Workspace, build: str, stages: Sequence[str]) -> None:
    """Every named stage's own check, as its run would make it first. Raises ConfigError or SourceError.

    Rows whose files are missing are as if not made yet: a run makes them again before the stage reads them.
    """
    commits = whole_commits(workspace.layout, build)
    for name in stages:
        stage = chain.stage(name)
        for member in stage.members(workspace.settings):
            stage.check(RunContext(workspace, stage, build, commits, member=member))


def check_models(workspace: Workspace, todo: Sequence[Standing]) -> None:
    """ModelUnavailable naming all that is missing for the stages that there is something to do for; ConfigError for
    budgets and modes that cannot be kept."""
    settings, missing = workspace.settings, dict[str, list[str]]()
    for standing in todo:
        stage = chain.stage(standing.stage)
        check_mode(stage, workspace)
        specs = [workspace.models[alias] for alias in stage.aliases(settings, standing.member)]
        check_budget(stage.name, settings, specs, batched=in_batches(settings, stage.name))
        if settings.llm.replay_only:
            continue
        problems = [check_ready(spec) or silent(spec) for spec in specs]
        for problem in filter(None, problems):
            missing.setdefault(problem, []).append(stage.name)
    if missing:
        lines = [f"{problem} ({', '.join(dict.fromkeys(stages))})" for problem, stages in missing.items()]
        raise ModelUnavailable("some models cannot be asked; nothing was started:\n  " + "\n  ".join(lines))
    if any(chain.stage(standing.stage).encodes for standing in todo):
        _ = workspace.encoder.weights_folder
