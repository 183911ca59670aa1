"""What a run is of: the stages it covers, the profile and settings it goes on with, the benchmark that a build holds.

What stages there are follows from their declarations (stages); where each of them stands is in status.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Literal, TypeVar

from flows.chain.options import RebuildOptions, RunOptions
from flows.chain.stages import (
    chain,
    downstream,
    ends_chain,
    evaluation,
    left_to_scripts,
    names,
    needed,
    roles_by_alias,
    stage,
    stage_of,
    upstream,
)
from tasks.foundation.errors import ConfigError
from tasks.foundation.run.context import Workspace
from tasks.foundation.settings import profile_from_anywhere, refuse_twice
from tasks.foundation.store.commits import begun_with, commits_of, made_with, read_commit
from tasks.foundation.store.layout import RELEASED, Layout
from tasks.release import ITEMS

__all__ = [
    "benchmark_of",
    "chain",
    "downstream",
    "ends_chain",
    "evaluation",
    "is_released",
    "left_to_scripts",
    "names",
    "needed",
    "of_build",
    "open_workspace",
    "roles_by_alias",
    "selected",
    "settled",
    "stage",
    "stage_of",
    "upstream",
    "usual_profile",
]

Options = TypeVar("Options", bound=RunOptions)


def selected(options: RebuildOptions) -> tuple[str, ...]:
    """The stages that a run covers, in order: one, or one and those after it, or all; of these the ones that the
    benchmark of its settings needs, and that a released benchmark leaves. ConfigError for both, or for a stage that
    would make a released benchmark again."""
    if options.only and options.from_stage:
        raise ConfigError("--only and --from cannot be given together: the first runs one stage, the second several")
    named = options.only or options.from_stage
    first = stage(named).name if named else names()[0]
    build = options.build_on(date.today())
    if named and first not in evaluation() and is_released(Layout.default(), build):
        raise ConfigError(
            f"build {build} holds a released benchmark, which is not made again: expected one of "
            f"{', '.join(evaluation())}, found {first}"
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
    return tuple(name for name in found if name in evaluation()) if is_released(workspace.layout, build) else found


def benchmark_of(layout: Layout, build: str) -> Literal["demo", "eyt"] | None:
    """The only benchmark that a build holds items of; None when it holds both, or none."""
    made = {table for commit in commits_of(layout, build).values() for table in commit.tables if commit.rows(table)}
    demo, eyt = bool(made & ITEMS["demo"]), bool(made & ITEMS["eyt"])
    return None if demo == eyt else "demo" if demo else "eyt"


def settled(options: Options, layout: Layout | None = None) -> Options:
    """The options with a profile: unless one is named, that of the build, with the settings it was made with below
    those of the options; for a build that is not there yet COLLOQUY_PROFILE, else demo."""
    refuse_twice(options.set)
    if options.profile:
        return options.model_copy(update={"profile": profile_from_anywhere(options.profile)})
    layout, build = layout or Layout.default(), options.build_on(date.today())
    made = made_with(commits_of(layout, build), evaluation()) or begun_with(layout, build)
    if made is not None and made.profile.endswith(".yaml") and not Path(made.profile).is_file():
        raise ConfigError(
            f"build {build} was made with the profile {made.profile}, which is not there any more: put it back, or "
            "name another with --profile"
        )
    if made is None:
        return options.model_copy(update={"profile": usual_profile()})
    given = {one.partition("=")[0].strip() for one in options.set}
    kept = [one for one in made.overrides if not given & set(_at_and_above(one))]
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
    workspace.stage_of = stage_of()
    return workspace
