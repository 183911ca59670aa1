"""The stages in order, and what follows from their declarations: who is before whom, who makes which table."""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Literal, TypeVar, get_args

from flows.options import EVALUATION, ONLY_DEMO, ONLY_EYT, RebuildOptions, RunOptions, StageName
from tasks.foundation.errors import ConfigError
from tasks.foundation.run import Workspace
from tasks.foundation.settings import Settings, profile_from_anywhere, refuse_twice
from tasks.foundation.stage import Stage
from tasks.foundation.store.commits import begun_with, commits_of, made_with, read_commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.release import STAGE as RELEASED

Options = TypeVar("Options", bound=RunOptions)

MODULES: dict[str, str] = {name: f"tasks.{name}.task" for name in get_args(StageName)}
"""Where each stage is declared, in the order in which they run; a module is imported when first asked for."""


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
    """The stages that a run covers, in order: one, or one and those after it, or all; of these the ones that the
    benchmark of its settings needs, and that a released benchmark leaves. ConfigError for both, or for a stage that
    would make a released benchmark again."""
    if options.only and options.from_stage:
        raise ConfigError("--only and --from cannot be given together: the first runs one stage, the second several")
    named = options.only or options.from_stage
    first = stage(named).name if named else names()[0]
    build = options.build_on(date.today())
    if named and first not in EVALUATION and is_released(Layout.default(), build):
        raise ConfigError(
            f"build {build} holds a released benchmark, which is not made again: expected one of "
            f"{', '.join(EVALUATION)}, found {first}"
        )
    if options.only:
        return (first,)
    wanted = of_build(open_workspace(options), build)
    return tuple(each for each in names()[names().index(first) :] if each in wanted)


def is_released(layout: Layout, build: str) -> bool:
    """Whether a build is an imported benchmark: it is evaluated on, and not made again."""
    return read_commit(layout, build, RELEASED) is not None


def of_build(workspace: Workspace, build: str, also: Iterable[str] = ()) -> tuple[str, ...]:
    """The stages that a build has or may get, in order: what its settings need; of a release only the evaluation."""
    found = needed(workspace.settings, also)
    return tuple(name for name in found if name in EVALUATION) if is_released(workspace.layout, build) else found


def needed(settings: Settings, also: Iterable[str] = ()) -> tuple[str, ...]:
    """The stages that the benchmark of the settings needs, in order: all but those that only the other one has; and
    `also`, which somebody wants all the same."""
    others: set[str] = set({"demo": ONLY_EYT, "eyt": ONLY_DEMO, "both": ()}[settings.run.benchmark])
    return tuple(each for each in names() if each not in others - set(also))


def half_of(layout: Layout, build: str) -> Literal["demo", "eyt"] | None:
    """The only benchmark that a build holds items of; None when it holds both, or none."""
    made = {table for commit in commits_of(layout, build).values() for table in commit.tables if commit.rows(table)}
    demo, eyt = bool(made & {"awareness_items", "interaction_episodes"}), "chat_seeds" in made
    return None if demo == eyt else "demo" if demo else "eyt"


def settled(options: Options, layout: Layout | None = None) -> Options:
    """The options with a profile: unless one is named, that of the build, with the settings it was made with below
    those of the options; for a build that is not there yet COLLOQUY_PROFILE, else demo."""
    refuse_twice(options.set)
    if options.profile:
        return options.model_copy(update={"profile": profile_from_anywhere(options.profile)})
    layout, build = layout or Layout.default(), options.build_on(date.today())
    made = made_with(commits_of(layout, build), EVALUATION) or begun_with(layout, build)
    if made is not None and made.profile.endswith(".yaml") and not Path(made.profile).is_file():
        raise ConfigError(
            f"build {build} was made with the profile {made.profile}, which is not there any more: put it back, or "
            "name another with --profile"
        )
    if made is None:
        return options.model_copy(update={"profile": usual_profile()})
    names = {one.partition("=")[0].strip() for one in options.set}
    kept = [one for one in made.overrides if not names & set(_at_and_above(one))]
    return options.model_copy(update={"profile": made.profile, "set": [*kept, *options.set]})


def usual_profile() -> str:
    """The profile of a new build for which none is named."""
    return profile_from_anywhere(os.environ.get("COLLOQUY_PROFILE") or "demo")


def _at_and_above(override: str) -> Iterator[str]:
    """`a.b.c=1` → a.b.c, a.b, a: the names whose setting replaces it."""
    parts = override.partition("=")[0].strip().split(".")
    return (".".join(parts[:count]) for count in range(len(parts), 0, -1))


def open_workspace(options: RunOptions) -> Workspace:
    """Settings, models and the artifacts folder for a run; ConfigError before anything else happens."""
    options = settled(options)
    assert options.profile is not None
    workspace = Workspace.open(options.profile, options.overrides)
    workspace.remembered, workspace.guest = options.remembered, options.target is not None
    makers: Mapping[str, str] = stage_of()
    workspace.stage_of = makers
    return workspace
