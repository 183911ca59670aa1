"""The stages in order, and what follows from their declarations: who is before whom, who makes which table."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import get_args

from flows.options import RebuildOptions, RunOptions, StageName
from tasks.foundation.errors import ConfigError
from tasks.foundation.run import Workspace
from tasks.foundation.stage import Stage

MODULES: dict[str, str] = {name: f"tasks.{name}.task" for name in get_args(StageName)}
"""Where each stage is declared, in the order in which they run; a module is imported when first asked for."""


EVALUATION = ("awareness", "interaction", "conversation", "judging", "metrics")
"""The stages that `colloquy evaluate` runs."""


def names() -> tuple[str, ...]:
    """The names of all stages, in order."""
    return tuple(MODULES)


def stage(name: str) -> Stage:
    """The stage of this name; ConfigError for one that does not exist."""
    if name not in MODULES:
        near = difflib.get_close_matches(name, MODULES, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ConfigError(f"stage {name!r} does not exist{hint}; expected one of: {', '.join(MODULES)}")
    found = importlib.import_module(MODULES[name]).STAGE
    assert isinstance(found, Stage)
    return found


def chain() -> tuple[Stage, ...]:
    """All stages, in order."""
    return tuple(stage(name) for name in names())


def ends_chain(name: str) -> bool:
    """Whether a build is complete once this stage is committed."""
    return name == names()[-1]


def stage_of() -> dict[str, str]:
    """The stage that makes each table (of a table that two stages write, the first)."""
    makers: dict[str, str] = {}
    for each in chain():
        for table in each.writes:
            makers.setdefault(table, each.name)
    return makers


def upstream(name: str) -> tuple[str, ...]:
    """The stages whose rows this one depends on, directly or not, in order."""
    makers = stage_of()
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for table in stage(waiting.pop()).reads:
            maker = makers.get(table)
            if maker is not None and maker not in found:
                found.add(maker)
                waiting.append(maker)
    return tuple(each for each in names() if each in found)


def downstream(name: str) -> tuple[str, ...]:
    """The stages that depend on this one, directly or not, in order."""
    return tuple(each for each in names() if name in upstream(each))


def selected(options: RebuildOptions) -> tuple[str, ...]:
    """The stages that a run covers, in order: one, one and those after it, or all. ConfigError for both."""
    if options.only and options.from_stage:
        raise ConfigError("--only and --from cannot be given together: the first runs one stage, the second several")
    if options.only:
        return (stage(options.only).name,)
    if options.from_stage:
        first = stage(options.from_stage).name
        return names()[names().index(first) :]
    return names()


def open_workspace(options: RunOptions) -> Workspace:
    """Settings, models and the artifacts folder for a run; ConfigError before anything else happens."""
    workspace = Workspace.open(options.profile, options.overrides)
    makers: Mapping[str, str] = stage_of()
    workspace.stage_of = makers
    return workspace
