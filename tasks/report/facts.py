"""What a reader must know before any number: build, profile, time, versions, models by role, waivers.

Read from the commit records and from `models`; nothing here is computed from rows of a stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.foundation.llm.providers import LOCAL_PROVIDERS
from tasks.foundation.store.commits import Commit, behind
from tasks.report.blocks import Benchmark
from tasks.report.questions import Record


@dataclass(frozen=True, slots=True)
class Role:
    """One model in one role; None where the build does not say."""

    role: str
    stages: str
    alias: str
    family: str | None
    provider: str | None
    name: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """`began` and `ended`: the first start and the last end of a commit, ISO 8601; None without a commit."""

    build: str
    profiles: tuple[str, ...]
    began: str | None
    ended: str | None
    versions: Mapping[str, str]
    code: Mapping[str, str]
    roles: tuple[Role, ...]
    waivers: tuple[str, ...]
    persona_to_target: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    partial: tuple[str, ...]
    behind: tuple[str, ...] = ()
    only: Benchmark | None = None
    """The one benchmark that it was made for; None: both, or not known."""

    @property
    def local_models(self) -> list[str]:
        """Aliases of embedded and scripted models, sorted."""
        return sorted({role.alias for role in self.roles if role.provider in LOCAL_PROVIDERS})

    @property
    def only_local_models(self) -> bool:
        """Whether every model there is embedded or scripted; False without any model."""
        return bool(self.roles) and all(role.provider in LOCAL_PROVIDERS for role in self.roles)


def collect_facts(
    build: str, commits: Mapping[str, Commit], models: list[Record], conversations: list[Record]
) -> Facts:
    """The facts of a build. `models`: rows of that table; `conversations`: different values of persona_to_target."""
    in_order = list(commits.values())
    newest = max(in_order, key=lambda commit: commit.ended_at, default=None)
    told = {row["persona_to_target"] for row in conversations} or {
        str(value) for value in _settings_named(in_order, "persona_to_target")
    }
    return Facts(
        build=build,
        profiles=tuple(dict.fromkeys(commit.record["profile"] for commit in in_order if "profile" in commit.record)),
        began=min((commit.started_at for commit in in_order), default=None),
        ended=newest.ended_at if newest else None,
        versions=newest.record.get("libraries", {}) if newest else {},
        code={commit.run: commit.components.get("code", "")[:12] for commit in in_order},
        roles=tuple(_roles(in_order, {row["alias"]: row for row in models})),
        waivers=tuple(dict.fromkeys(str(value) for value in _settings_named(in_order, "family_waiver") if value)),
        persona_to_target=tuple(sorted(told)),
        settings=tuple(_settings(in_order)),
        partial=tuple(commit.run for commit in in_order if commit.partial),
        behind=tuple(behind(commits)),
        only=made_for(commits),
    )


def _roles(commits: list[Commit], models: Mapping[str, Record]) -> Iterator[Role]:
    named: dict[tuple[str, str], list[str]] = {}
    known: dict[str, Mapping[str, Any]] = dict(models)
    for commit in commits:
        known = {**commit.record.get("models", {}), **known}
        for role, aliases in commit.record.get("roles", {}).items():
            for alias in aliases:
                stages = named.setdefault((role.removesuffix("s"), alias), [])
                if commit.stage not in stages:
                    stages.append(commit.stage)
    for (role, alias), stages in named.items():
        model = known.get(alias, {})
        yield Role(role, ", ".join(stages), alias, model.get("family"), model.get("provider"), model.get("name"))


def made_for(commits: Mapping[str, Commit]) -> Benchmark | None:
    """The one benchmark that all commits were made for (run.benchmark); None for both, or where they do not say."""
    found = {commit.record.get("settings", {}).get("run", {}).get("benchmark") for commit in commits.values()}
    if found == {"demo"}:
        return "demo"
    return "eyt" if found == {"eyt"} else None


def _settings_named(commits: list[Commit], name: str) -> list[Any]:
    """The values of a setting, of whichever section, in the commits that have it."""
    sections = [section for commit in commits for section in commit.record.get("settings", {}).values()]
    return [section[name] for section in sections if name in section]


_SHOWN = (
    "run.seed",
    "interaction.max_turns",
    "conversation.max_turns",
    "judging.style",
    "judging.subscore_scale",
    "judging.split",
    "judging.subsample",
    "metrics.alpha",
    "metrics.panel_rule",
)


def _settings(commits: list[Commit]) -> Iterator[tuple[str, str]]:
    """Settings that a reader of the scores asks for, each with the values that occur."""
    found: dict[str, dict[str, None]] = {}
    for commit in commits:
        for section, values in commit.record.get("settings", {}).items():
            for name, value in values.items():
                if f"{section}.{name}" in _SHOWN and value is not None:
                    found.setdefault(f"{section}.{name}", {})[str(value)] = None
    for name, values in found.items():
        yield name, ", ".join(values)
