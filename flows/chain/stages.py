"""Which stages there are, and what follows from their declarations: in which order they run, who makes which table,
which are an evaluation's.

A stage is a package of `tasks` whose module `task` declares `STAGE`; nothing else says that it is there.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import tasks
from tasks.foundation.errors import ConfigError
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.settings import Settings, load_settings, values_of_profile
from tasks.foundation.stage import Benchmark, Stage

MODULES: dict[str, str] = {
    package.name: f"tasks.{package.name}.task"
    for package in pkgutil.iter_modules(tasks.__path__)
    if (Path(tasks.__path__[0]) / package.name / "task.py").is_file()
}
"""Where each stage is declared, by its name."""


def names() -> tuple[str, ...]:
    """The names of all stages, in the order in which they run."""
    return tuple(each.name for each in chain())


def stage(name: str) -> Stage:
    """The stage of this name; ConfigError for one that does not exist."""
    if name not in MODULES:
        near = difflib.get_close_matches(name, MODULES, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ConfigError(f"stage {name!r} does not exist{hint}; expected one of: {', '.join(names())}")
    found = importlib.import_module(MODULES[name]).STAGE
    assert isinstance(found, Stage)
    return found


def chain() -> tuple[Stage, ...]:
    """All stages, in the order in which they run: each after those whose tables it reads. Where that leaves a choice,
    what makes a benchmark comes before its targets, DEMO before EYT, and else the alphabet decides."""
    return _in_order(tuple(MODULES))


@cache
def _in_order(declared: tuple[str, ...]) -> tuple[Stage, ...]:
    waiting = sorted(map(stage, declared), key=lambda one: (one.fan_out is not None, one.benchmark == "eyt", one.name))
    found: list[Stage] = []
    while waiting:
        found.append(_next_of(waiting))
        waiting.remove(found[-1])
    return tuple(found)


def _next_of(waiting: list[Stage]) -> Stage:
    """The first stage that reads nothing which another of the waiting ones makes."""
    for each in waiting:
        to_come = {table for other in waiting if other is not each for table in other.writes}
        if to_come.isdisjoint(each.reads):
            return each
    raise ValueError(f"stages read one another's tables in a circle: {', '.join(each.name for each in waiting)}")


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


def with_targets() -> tuple[str, ...]:
    """The stages that run once for every model under test, in order."""
    return tuple(each.name for each in chain() if each.fan_out == "targets")


def evaluation(benchmark: Benchmark = "both") -> tuple[str, ...]:
    """The stages that score one target more on a benchmark, in order: those with targets, and all that read theirs."""
    asked = set(with_targets())
    return tuple(
        each.name
        for each in chain()
        if each.serves(benchmark) and (each.name in asked or asked.intersection(upstream(each.name)))
    )


def needed(settings: Settings, also: Iterable[str] = ()) -> tuple[str, ...]:
    """The stages that the benchmark of the settings needs, in order: all but those that only the other one has; and
    `also`, which somebody wants all the same."""
    wanted = set(also)
    return tuple(each.name for each in chain() if each.serves(settings.run.benchmark) or each.name in wanted)


def left_to_scripts(profile: str, models: Mapping[str, ModelSpec]) -> ConfigError | None:
    """The error of a profile that gives some roles to models and leaves others to scripted ones, which it does not name
    itself: their answers mean nothing. None for a profile with real models only, or none."""
    settings = load_settings(profile)
    serving = needed(settings)
    roles = {
        alias: own
        for alias, every in roles_by_alias(settings).items()
        if alias in models and (own := [role for role in every if role.split()[0] in serving])
    }
    scripted = {alias: own for alias, own in roles.items() if models[alias].provider == "scripted"}
    named = values_of_profile(profile)
    left = [role for alias, own in scripted.items() if alias not in named for role in own]
    if len(scripted) == len(roles) or not left:
        return None
    return ConfigError(
        f"profile {profile}: expected a model for every role, since it has some for others; found these left to "
        f"scripted models, whose answers mean nothing: {', '.join(left)}. Name a model for each."
    )


def roles_by_alias(settings: Settings) -> dict[str, list[str]]:
    """Each model alias of the settings with what it does, as "voting arbiter"; in the order of the chain."""
    found: dict[str, list[str]] = {}
    for each in chain():
        for role, aliases in each.roles(settings).items():
            for alias in aliases:
                found.setdefault(alias, []).append(f"{each.name} {role}")
    return found
