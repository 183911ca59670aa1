"""What a flow run is of: which build, on which day, with which profile. Settled by the run's first attempt and kept
with the run, so that a retry, however late, is of the same build, and everyone sees which that is."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    WorkPoolFilter,
    WorkPoolFilterName,
)
from prefect.client.schemas.objects import StateType
from prefect.context import FlowRunContext
from prefect.settings import get_current_settings
from prefect.utilities.urls import url_for
from pydantic import ValidationError

from flows import chain
from flows.chain.options import (
    BuildOptions,
    EvaluateOptions,
    RebuildOptions,
    ReleaseOptions,
    ReportOptions,
    RunOptions,
)
from flows.server.deployments import POOL
from flows.server.environment import without_login
from tasks.foundation.errors import ColloquyError

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.objects import FlowRun

Options = TypeVar("Options", bound=BuildOptions)
Running = TypeVar("Running", bound=RunOptions)

FORMS: dict[str, type[BuildOptions]] = {
    "rebuild": RebuildOptions,
    "evaluate": EvaluateOptions,
    "report": ReportOptions,
    "check": BuildOptions,
    "release": ReleaseOptions,
    **dict.fromkeys(chain.names(), RunOptions),
}
"""The options of every flow, by its name."""

BUILD_TAG = "build:"
SCHEDULE = "SCHEDULE"
"""What Prefect calls the maker of a run that no person or program started."""


async def settled_run(options: Running, what: str) -> Running:
    """The options with the build of the run's day and the profile it goes on with; the run is named and tagged so.

    Raises ConfigError for a build or profile that cannot be.
    """
    dated = await dated_run(options)
    settled = await asyncio.to_thread(chain.settled, dated)
    await _identify(options, settled, what, profile=settled.profile)
    return settled


async def named_run(options: Options, what: str) -> Options:
    """As `settled_run`, for what needs no profile: the options with the build of the run's day."""
    dated = await dated_run(options)
    await _identify(options, dated, what)
    return dated


async def dated_run(options: Options) -> Options:
    """The options with the day filled in that the run is of."""
    if "{date}" not in options.build:
        return options.on(date.today())  # checks the name
    run = _run()
    if run is None or run.expected_start_time is None:
        return options.on(date.today())
    async with get_client() as client:
        return options.on(day_of(run.expected_start_time, await _zone_of(client, run)))


def day_of(scheduled: datetime, zone: str | None) -> date:
    """The day on which a moment falls, in a time zone; None: in this machine's."""
    return scheduled.astimezone(ZoneInfo(zone) if zone else None).date()


def run_name(build: str, what: str, profile: str | None = None) -> str:
    """
    >>> run_name("nightly-2026-12-01", "voting", "/data/profiles/mine.yaml")
    'nightly-2026-12-01 voting (mine)'
    """
    return f"{build} {what}" + (f" ({_short(profile)})" if profile else "")


def _short(profile: str) -> str:
    return Path(profile).stem if profile.endswith(".yaml") else profile


def _run() -> FlowRun | None:
    """The flow run that this is; None where a flow is called as a plain function."""
    context = FlowRunContext.get()
    return context.flow_run if context else None


def signature() -> str:
    """The flow run and where it can be seen, for those who find its stage taken: `flow run first voting (demo), http://…`.
    Empty outside of a flow run; a server without pages shows nothing."""
    run = _run()
    if run is None:
        return ""
    address = url_for(run) if get_current_settings().server.ui.enabled else None
    return ", ".join(filter(None, (f"flow run {run.name}", address and without_login(address))))


async def _zone_of(client: PrefectClient, run: FlowRun) -> str | None:
    """The time zone of the schedule that made a run, UTC where it names none; None for a run that no schedule made, or
    one that is gone."""
    if run.deployment_id is None or run.created_by is None or run.created_by.type != SCHEDULE:
        return None
    for schedule in await client.read_deployment_schedules(run.deployment_id):
        if schedule.id == run.created_by.id:
            return getattr(schedule.schedule, "timezone", None) or "UTC"
    return None


async def name_upcoming() -> None:
    """Give the scheduled runs of our deployments the names and tags that they will have, where they lack them: Prefect
    calls them after animals until they start."""
    pools = WorkPoolFilter(name=WorkPoolFilterName(any_=[POOL]))
    scheduled = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED])))
    async with get_client() as client:
        for run in await client.read_flow_runs(work_pool_filter=pools, flow_run_filter=scheduled):
            if not any(tag.startswith(BUILD_TAG) for tag in run.tags):
                with suppress(ColloquyError, ValidationError):  # it will say what is wrong when it starts
                    await _name_upcoming(client, run)


async def _name_upcoming(client: PrefectClient, run: FlowRun) -> None:
    given = run.parameters.get("options", {})
    flow = (await client.read_flow(run.flow_id)).name
    if run.expected_start_time is None or flow not in FORMS:
        return
    day = day_of(run.expected_start_time, await _zone_of(client, run))
    options: BuildOptions = FORMS[flow].model_validate(given).on(day)
    profile = (await asyncio.to_thread(chain.settled, options)).profile if isinstance(options, RunOptions) else None
    what = f"{flow} {options.target}" if isinstance(options, EvaluateOptions) else flow
    await client.update_flow_run(run.id, **_name_and_tags(run, options.build, what, profile))


def _name_and_tags(run: FlowRun, build: str, what: str, profile: str | None) -> dict[str, Any]:
    """The name and the tags of a run."""
    flow, *_ = what.split()
    kind = "stage" if flow in chain.names() else "flow"
    facts = {"build": build, kind: flow, "profile": profile and _short(profile)}
    tags = [*run.tags, "colloquy", *(f"{name}:{fact}" for name, fact in facts.items() if fact)]
    return {"name": run_name(build, what, profile), "tags": list(dict.fromkeys(tags))}


async def _identify(given: BuildOptions, settled: BuildOptions, what: str, profile: str | None = None) -> None:
    """Name and tag the run; where it was asked for a `{date}`, its parameters say the build from now on."""
    run = _run()
    if run is None:
        return
    changes = _name_and_tags(run, settled.build, what, profile)
    if given.build != settled.build:
        options = {**run.parameters.get("options", {}), "build": settled.build}
        changes["parameters"] = {**run.parameters, "options": options}
    async with get_client() as client:
        await client.update_flow_run(run.id, **changes)
    run.name = changes["name"]
