"""What a run may be told: the form behind every flow in the Prefect UI, and behind `colloquy run`."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tasks.foundation.store.layout import build_name

StageName = Literal[
    "personas",
    "scenes",
    "conflicts",
    "dialogues",
    "voting",
    "curation",
    "chatseeds",
    "awareness",
    "interaction",
    "conversation",
    "judging",
    "metrics",
]
"""All stages, in the order in which they run."""


class RunOptions(BaseModel):
    """Options of one stage's run; all have defaults."""

    model_config = ConfigDict(extra="forbid")

    profile: str = Field(default="demo", description="a file of configs/profiles, without .yaml")
    build: str = Field(default="main", description="name of the build; {date} becomes today's date")
    force: bool = Field(default=False, description="run again what is up to date; replies come from the cache")
    fresh: bool = Field(default=False, description="draw new replies for this build instead of replaying the cache")
    set: list[str] = Field(default=[], description="settings, each as section.key=value")

    @property
    def overrides(self) -> tuple[str, ...]:
        return (*self.set, "run.fresh=true") if self.fresh else tuple(self.set)

    def build_on(self, today: date) -> str:
        """The name of the build; ConfigError for one that cannot be a folder's."""
        return build_name(self.build, today)


class RebuildOptions(RunOptions):
    """Options of the whole chain. `only` and `from_stage` name where to begin; `force` means the stages named
    by them, or all when neither is given."""

    only: StageName | None = Field(default=None, description="run just this stage")
    from_stage: StageName | None = Field(default=None, description="run this stage and those after it")

    def of(self, *, build: str, force: bool) -> RunOptions:
        """The options of one stage of this run."""
        return RunOptions(profile=self.profile, build=build, force=force, fresh=self.fresh, set=self.set)

    def forces(self, stage: str) -> bool:
        """Whether a selected stage is to run even if it is up to date."""
        named = self.only or self.from_stage
        return self.force and named in (None, stage)
