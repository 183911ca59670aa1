"""What a run may be told: the form behind every flow in the Prefect UI, and behind `colloquy run`."""

from __future__ import annotations

import json
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

ONLY_DEMO: tuple[StageName, ...] = (
    "scenes",
    "conflicts",
    "dialogues",
    "voting",
    "curation",
    "awareness",
    "interaction",
)
ONLY_EYT: tuple[StageName, ...] = ("chatseeds", "conversation")
"""Stages that the other benchmark does without."""

DEMO_TARGETS: tuple[StageName, ...] = ("awareness", "interaction")
EYT_TARGETS: tuple[StageName, ...] = ("conversation",)
WITH_TARGETS = (*DEMO_TARGETS, *EYT_TARGETS)
SCORING: tuple[StageName, ...] = ("judging", "metrics")
EVALUATION = (*WITH_TARGETS, *SCORING)
"""What an evaluation of one more target runs."""

FRESH = "run.fresh=true"


class RunOptions(BaseModel):
    """Options of one stage's run; all have defaults."""

    model_config = ConfigDict(extra="forbid")

    profile: str | None = Field(
        default=None,
        description="a file of configs/profiles, without .yaml, or the path of your own; none: the build's, else demo",
    )
    build: str = Field(default="main", description="name of the build; {date} becomes today's date")
    force: bool = Field(default=False, description="run again what is up to date; replies come from the cache")
    fresh: bool = Field(default=False, description="draw new replies for this build instead of replaying the cache")
    set: list[str] = Field(default=[], description="settings, each as section.key=value")
    target: str | None = Field(default=None, description="of the stages that have targets, only this one")

    @property
    def remembered(self) -> tuple[str, ...]:
        """The settings, on top of the profile, that the build is made with."""
        return (*self.set, FRESH) if self.fresh and FRESH not in self.set else tuple(self.set)

    @property
    def overrides(self) -> tuple[str, ...]:
        """Those, and the target, which is this run's alone: the rows of other targets stay."""
        targets = json.dumps([self.target])
        only = tuple(f"{stage}.targets={targets}" for stage in WITH_TARGETS) if self.target else ()
        return (*self.remembered, *only)

    @property
    def todays_build(self) -> str:
        """How a run is called: the build's name with today's date, unchecked."""
        return self.build.replace("{date}", date.today().isoformat())

    def build_on(self, today: date) -> str:
        """The name of the build; ConfigError for one that cannot be a folder's."""
        return build_name(self.build, today)

    def of(self, *, build: str, force: bool) -> RunOptions:
        """The options of one stage of this run."""
        return RunOptions(
            profile=self.profile, build=build, force=force, fresh=self.fresh, set=self.set, target=self.target
        )

    def forces(self, stage: str) -> bool:
        """Whether a selected stage is to run even if it is up to date."""
        return self.force


class RebuildOptions(RunOptions):
    """Options of the whole chain. `only` and `from_stage` name where to begin; `force` means the stages named
    by them, or all when neither is given."""

    only: StageName | None = Field(default=None, description="run just this stage")
    from_stage: StageName | None = Field(default=None, description="run this stage and those after it")

    def forces(self, stage: str) -> bool:
        named = self.only or self.from_stage
        return self.force and named in (None, stage)


class EvaluateOptions(RunOptions):
    """Options of an evaluation. `benchmark` leaves one half out; None: whatever the build holds items of."""

    benchmark: Literal["demo", "eyt"] | None = Field(default=None, description="only this benchmark")

    def stages(self) -> tuple[StageName, ...]:
        """The stages to run, in order."""
        demo = () if self.benchmark == "eyt" else DEMO_TARGETS
        eyt = () if self.benchmark == "demo" else EYT_TARGETS
        return (*demo, *eyt, *SCORING)
