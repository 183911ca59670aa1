"""What a Prefect server needs to run us: a work pool, the deployments of prefect.yaml, an automation for dead runs.

What people have edited in the UI is theirs. A deployment is made when it is absent, and anew when what the code says
of it has changed; its version says which code that was. Schedules are never touched.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import yaml

from flows.server import environment
from tasks.foundation import FOLDER, ROOT
from tasks.foundation.errors import StoreError
from tasks.foundation.ids import digest

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.responses import DeploymentResponse
    from prefect.events.schemas.automations import AutomationCore

POOL = "colloquy"
ZOMBIES = "Mark runs whose process died as crashed"
MISSED = 5
"""So many heartbeats without a sign of life: one or two may be lost on a busy machine."""

HEARTBEAT = "PREFECT_FLOWS_HEARTBEAT_FREQUENCY"
PREFECTS_HEARTBEAT_SECONDS = 180
"""Of a deployment that does not say how often its runs send one."""

WITHOUT_PROCESS = (
    *("Completed", "Partial", "Failed", "TimedOut", "Cancelled", "Crashed"),
    *("Paused", "Suspended", "Scheduled", "AwaitingRetry"),
)
"""States in which no process works on a run, so that none sends heartbeats."""


@dataclass(frozen=True, slots=True)
class DeclaredDeployment:
    """A deployment of prefect.yaml; `version` changes with everything that the code says of it."""

    name: str
    flow: str
    version: str

    @property
    def full_name(self) -> str:
        return f"{self.flow}/{self.name}"


@dataclass(frozen=True, slots=True)
class DeploymentChanges:
    """The deployments that were absent, those that the code had changed, and those that were left as they are."""

    made: tuple[str, ...]
    changed: tuple[str, ...]
    kept: tuple[str, ...]

    def sentence(self) -> str:
        """`deployments: 17; made: metrics/colloquy-metrics; 16 left as they are in the UI`."""
        total = len(self.made) + len(self.changed) + len(self.kept)
        parts = [f"deployments: {total}"]
        for names, what in ((self.made, "made"), (self.changed, "made anew, as the code says")):
            if names:
                parts.append(f"{what}: {', '.join(names)}" if len(names) < total else f"all {what}")
        if self.kept:
            parts.append(f"{len(self.kept)} left as they are in the UI")
        return "; ".join(parts)


async def make_deployments(api: str, *, redeploy: bool = False) -> DeploymentChanges:
    """Make what is missing or was changed in the code; with `redeploy` every deployment, as the code says it.

    Raises StoreError when Prefect refuses the deployments.
    """
    from prefect.client.orchestration import get_client

    declared = declarations()
    async with get_client() as client:
        await _make_pool(client)
        there = await deployments_of(client, declared)
        wanted = [each for each in declared if redeploy or _differs(there.get(each.name), each)]
        if wanted:
            _deploy(api, wanted)
            for each in wanted:
                await _settle(client, each, None if redeploy else there.get(each.name))
        await _make_automation(client, (await deployments_of(client, declared)).values())
    changed = {each.full_name for each in wanted}
    return DeploymentChanges(
        made=tuple(each.full_name for each in wanted if each.name not in there),
        changed=tuple(each.full_name for each in wanted if each.name in there),
        kept=tuple(each.full_name for each in declared if each.full_name not in changed),
    )


def declarations() -> list[DeclaredDeployment]:
    """The deployments of prefect.yaml."""
    entries = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    return [_declared(entry) for entry in entries]


def _declared(entry: Mapping[str, Any]) -> DeclaredDeployment:
    from prefect.utilities.callables import parameter_schema

    module, _, function = entry["entrypoint"].partition(":")
    flow = getattr(importlib.import_module(module), function)
    facts = {
        "entry": entry,
        "folder": str(FOLDER),
        "form": parameter_schema(flow).model_dump(mode="json"),
        "description": flow.description,
    }
    return DeclaredDeployment(entry["name"], flow.name, f"colloquy-{digest(facts)[:12]}")


async def deployments_of(
    client: PrefectClient, declared: Sequence[DeclaredDeployment]
) -> dict[str, DeploymentResponse]:
    """Those of the declared deployments that the server has, by name."""
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName

    names = DeploymentFilterName(any_=[each.name for each in declared])
    found = await client.read_deployments(deployment_filter=DeploymentFilter(name=names))
    return {deployment.name: deployment for deployment in found}


def _differs(found: DeploymentResponse | None, declared: DeclaredDeployment) -> bool:
    return found is None or found.version != declared.version


async def _settle(client: PrefectClient, declared: DeclaredDeployment, before: DeploymentResponse | None) -> None:
    """Give a new deployment its version, and what people had set of the one `before` it that the code says nothing of:
    parameters, limits, their own tags and environment."""
    from prefect.client.schemas.actions import DeploymentUpdate

    found = await client.read_deployment_by_name(declared.full_name)
    changes: dict[str, Any] = {"version": declared.version, "tags": found.tags}
    if before is not None:
        env = {**(before.job_variables.get("env") or {}), **(found.job_variables.get("env") or {})}
        changes |= {
            "parameters": before.parameters,
            "paused": before.paused,
            "tags": list(dict.fromkeys([*found.tags, *before.tags])),
            "job_variables": {**before.job_variables, **found.job_variables, "env": env},
        }
        if before.global_concurrency_limit is not None:
            changes["concurrency_limit"] = before.global_concurrency_limit.limit
            changes["concurrency_options"] = before.concurrency_options
    await client.update_deployment(found.id, DeploymentUpdate(**changes))


async def _make_pool(client: PrefectClient) -> None:
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectNotFound
    from prefect.workers.process import ProcessWorker

    try:
        await client.read_work_pool(POOL)
    except ObjectNotFound:
        template = ProcessWorker.get_default_base_job_template()
        await client.create_work_pool(WorkPoolCreate(name=POOL, type="process", base_job_template=template))


async def _make_automation(client: PrefectClient, deployments: Iterable[DeploymentResponse]) -> None:
    """The automation for dead runs, or what has changed of it; switched off, it stays off."""
    wanted = zombie_automation(deployments)
    found = await client.read_automations_by_name(ZOMBIES)
    if not found:
        await client.create_automation(wanted)
    for automation in found:
        if _rule(automation) != _rule(wanted):
            await client.update_automation(automation.id, wanted.model_copy(update={"enabled": automation.enabled}))


def _rule(automation: AutomationCore) -> dict[str, Any]:
    """What an automation does, less what the server adds to it."""
    trigger = automation.trigger.model_dump(mode="json", exclude={"id"})
    facts = {name: sorted(value) if isinstance(value, list) else value for name, value in trigger.items()}
    actions = [action.model_dump(mode="json") for action in automation.actions]
    return {"trigger": facts, "actions": actions, "description": automation.description}


def zombie_automation(deployments: Iterable[DeploymentResponse]) -> AutomationCore:
    """A run of these deployments that has stopped sending heartbeats without ending is marked Crashed, so that it can
    be retried. Runs of others on the same server, whose heartbeats we do not know, are left alone."""
    from prefect.client.schemas.objects import StateType
    from prefect.events.actions import ChangeFlowRunState
    from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
    from prefect.events.schemas.events import ResourceSpecification

    deployments = list(deployments)
    ours = sorted(f"prefect.deployment.{deployment.id}" for deployment in deployments)
    return AutomationCore(
        name=ZOMBIES,
        description="Made by `colloquy serve`. A run whose machine or process died would stay Running for ever.",
        enabled=True,
        trigger=EventTrigger(
            posture=Posture.Proactive,
            after={"prefect.flow-run.heartbeat"},
            expect={"prefect.flow-run.heartbeat", *(f"prefect.flow-run.{state}" for state in WITHOUT_PROCESS)},
            match=ResourceSpecification({"prefect.resource.id": ["prefect.flow-run.*"]}),
            match_related=ResourceSpecification({"prefect.resource.role": ["deployment"], "prefect.resource.id": ours}),
            for_each={"prefect.resource.id"},
            threshold=1,
            within=MISSED * max(map(heartbeat_of, deployments)),
        ),
        actions=[
            ChangeFlowRunState(
                name=None,
                state=StateType.CRASHED,
                force=False,
                message="No heartbeat for a while: its process or machine died. Retry it; it goes on where it was.",
            )
        ],
    )


def heartbeat_of(deployment: DeploymentResponse) -> timedelta:
    """How often the runs of a deployment send a heartbeat, wherever its worker was started."""
    said = str((deployment.job_variables.get("env") or {}).get(HEARTBEAT, ""))
    return timedelta(seconds=int(said) if said.isdecimal() else PREFECTS_HEARTBEAT_SECONDS)


def _deploy(api: str, wanted: Sequence[DeclaredDeployment]) -> None:
    """Prefect's own `deploy` of these deployments."""
    names = [word for each in wanted for word in ("--name", each.full_name)]
    file = str(ROOT / "prefect.yaml")
    done = subprocess.run(
        [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--prefect-file", file, *names],
        cwd=FOLDER,
        env={**os.environ, environment.API_URL: api, "PWD": str(FOLDER)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = environment.without_login(done.stdout + done.stderr)
        raise StoreError(f"the deployments of prefect.yaml could not be made:\n{said}")
