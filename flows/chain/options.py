"""What a run may be told: the form behind every flow in the Prefect UI, and behind `colloquy run`."""

from __future__ import annotations

import json
from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from flows.chain import stages
from tasks.foundation.settings import profile_names
from tasks.foundation.store.layout import build_name


def _known_stage(name: str) -> str:
    if name not in stages.names():
        raise ValueError(f"expected one of {', '.join(stages.names())}, found {name!r}")
    return name


def _list_stages(schema: dict[str, Any]) -> None:
    schema["enum"] = list(stages.names())


StageName = Annotated[str, AfterValidator(_known_stage), Field(json_schema_extra=_list_stages)]
"""One of the stages that there are; the form offers them in the order in which they run."""

FRESH = "run.fresh=true"

BuildName = Annotated[str, Field(pattern=r"^([a-z0-9]|\{date\})([a-z0-9._-]|\{date\}){0,63}$")]
"""As `build_name` has it once `{date}` is filled in: the form refuses any other before a run is accepted."""

ProfileName = Annotated[str, Field(pattern=rf"^({'|'.join(profile_names())}|.+\.yaml)$")]


class BuildOptions(BaseModel):
    """Of which build something is wanted; all have defaults."""

    model_config = ConfigDict(extra="forbid")

    build: BuildName = Field(
        default="main", description="name of the build; {date} becomes the day that the run is scheduled for"
    )

    def build_on(self, day: date) -> str:
        """The name of the build; ConfigError for one that cannot be a folder's."""
        return build_name(self.build, day)

    def on(self, day: date) -> Self:
        """These options with the day filled in: whatever is asked of them later, it is that day's build."""
        return self.model_copy(update={"build": self.build_on(day)})


class ReportOptions(BuildOptions):
    """Options of a report."""

    transcripts: int = Field(default=100, ge=0, description="how many transcripts of each kind the page holds")


class ReleaseOptions(BuildOptions):
    """Options of a release."""

    folder: str | None = Field(default=None, description="a new folder for it; none: artifacts/releases/BUILD")


class RunOptions(BuildOptions):
    """Options of one stage's run; all have defaults."""

    profile: ProfileName | None = Field(
        default=None,
        description="a file of configs/profiles, without .yaml, or the path of your own; none: the build's, else demo",
    )
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
        only = tuple(f"{stage}.targets={targets}" for stage in stages.with_targets()) if self.target else ()
        return (*self.remembered, *only)

    def of_stage(self, stage: str) -> RunOptions:
        """The options of one stage of this run."""
        given = self.model_dump(include=set(RunOptions.model_fields))
        return RunOptions(**{**given, "force": self.forces(stage)})

    def forces(self, stage: str) -> bool:
        """Whether a selected stage is to run even if it is up to date."""
        return self.force


class RebuildOptions(RunOptions):
    """Options of the whole chain. `only` and `from_stage` name where to begin; `force` means the stages named
    by them, or all when neither is given."""

    only: StageName | None = Field(default=None, description="run just this stage")
    from_stage: StageName | None = Field(default=None, description="run this stage and those after it")
    check: bool = Field(default=True, description="check the build's rows at the end")
    report: bool = Field(default=True, description="write the build's report at the end")

    def forces(self, stage: str) -> bool:
        named = self.only or self.from_stage
        return self.force and named in (None, stage)


class EvaluateOptions(RunOptions):
    """Options of an evaluation. `benchmark` leaves the other one out; None: whatever the build holds items of."""

    benchmark: Literal["demo", "eyt"] | None = Field(default=None, description="only this benchmark")

    def stages(self) -> tuple[str, ...]:
        """The stages to run, in order."""
        return stages.evaluation(self.benchmark or "both")
