"""Brings up what is missing of a Prefect server with its UI, work pool, deployments and worker.

The server and the worker are children of this process and end with it; what was there before stays.
Prefect's own `serve()` is not used: restarting it deletes the schedules that users made.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from flows import environment
from tasks.foundation.checkout import ROOT
from tasks.foundation.errors import BuildBusy, ConfigError, StoreError
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.locks import lock

if TYPE_CHECKING:
    from prefect.events.schemas.automations import AutomationCore

HOST = "127.0.0.1"
POOL = "colloquy"
ZOMBIES = "Mark runs whose process died as crashed"
MISSED_BEFORE_CRASHED = timedelta(seconds=150)
"""Five heartbeats (see flows/environment.py) without a sign of life."""

START_SECONDS = 90.0
STOP_SECONDS = 15.0

Say = Callable[[str], None]


def serve(port: int, say: Say) -> None:
    """Bring everything up, say where the UI is, and stay until interrupted. Found running: say so and return.

    Raises ConfigError when the port is another program's, StoreError when something does not start.
    """
    home = environment.server_note().parent
    try:
        with lock(home / "colloquy-serve.lock", "`colloquy serve` of this folder", 0):
            _serve(port, home, say)
    except BuildBusy as busy:
        api = environment.noted_server()
        if api is None:
            raise StoreError(f"{busy} It does not answer yet: wait, or look into {home / 'server.log'}.") from None
        _deploy(api)
        say(f"Already up; the deployments were made anew. UI: {ui_of(api)}")
        there, here = _artifacts_of_note(), str(Layout.default().root.absolute())
        if there not in (None, here):
            say(f"Its runs write to {there}, not to {here} as commands here do: end it and serve anew to change that.")


def ui_of(api: str) -> str:
    return api.removesuffix("/api")


def _serve(port: int, home: Path, say: Say) -> None:
    environment.end_on_signals()
    with _server(port, home, say) as api:
        os.environ[environment.API_URL] = api
        asyncio.run(_furnish())
        _deploy(api)
        say("work pool, deployments and the automation for dead runs are in place")
        with _child(["worker", "start", "--pool", POOL, "--type", "process"], home / "worker.log") as worker:
            say(f"worker is up (log: {home / 'worker.log'}); its runs write to {Layout.default().root.absolute()}")
            say(f"UI: {ui_of(api)}   Ctrl-C stops what was started here.")
            _wait_for(worker, home / "worker.log")


@contextmanager
def _server(port: int, home: Path, say: Say) -> Iterator[str]:
    """The API of a server that answers: the configured one, else the one at the port, else a new one."""
    configured = os.environ.get(environment.API_URL)
    api = configured or f"http://{HOST}:{port}/api"
    if environment.answers(api):
        say(f"server found at {api}")
        with _noted(api):
            yield api
        return
    if configured:
        raise ConfigError(f"nothing answers at {api} (PREFECT_API_URL): start that server, or unset the variable")
    _refuse_taken(port)
    os.environ.setdefault("PREFECT_UI_API_URL", api)  # else the page asks port 4200, whatever the server's is
    say(f"starting a server at {api} (log: {home / 'server.log'})")
    with _child(["server", "start", "--host", HOST, "--port", str(port)], home / "server.log") as server:
        _wait_until_it_answers(api, server, home / "server.log")
        with _noted(api):
            yield api


@contextmanager
def _noted(api: str) -> Iterator[None]:
    """While the block runs, other commands of this folder find the server."""
    note = environment.server_note()
    artifacts = str(Layout.default().root.absolute())
    note.write_text(json.dumps({"api": api, "pid": os.getpid(), "artifacts": artifacts}), encoding="utf-8")
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def _artifacts_of_note() -> str | None:
    """Where the runs of the server that is up write to, as far as it left word."""
    try:
        return str(json.loads(environment.server_note().read_text(encoding="utf-8"))["artifacts"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


async def _furnish() -> None:
    """The work pool and the automation, unless they are there."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectNotFound
    from prefect.workers.process import ProcessWorker

    async with get_client() as client:
        try:
            await client.read_work_pool(POOL)
        except ObjectNotFound:
            template = ProcessWorker.get_default_base_job_template()
            await client.create_work_pool(WorkPoolCreate(name=POOL, type="process", base_job_template=template))
        if not await client.read_automations_by_name(ZOMBIES):
            await client.create_automation(zombie_automation())


def zombie_automation() -> AutomationCore:
    """A run that has stopped sending heartbeats without ending is marked Crashed, so that it can be retried."""
    from prefect.client.schemas.objects import StateType
    from prefect.events.actions import ChangeFlowRunState
    from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
    from prefect.events.schemas.events import ResourceSpecification

    ended = {f"prefect.flow-run.{state}" for state in ("Completed", "Failed", "Cancelled", "Crashed")}
    return AutomationCore(
        name=ZOMBIES,
        description="Made by `colloquy serve`. A run whose machine or process died would stay Running for ever.",
        trigger=EventTrigger(
            posture=Posture.Proactive,
            after={"prefect.flow-run.heartbeat"},
            expect={"prefect.flow-run.heartbeat", *ended},
            match=ResourceSpecification({"prefect.resource.id": ["prefect.flow-run.*"]}),
            for_each={"prefect.resource.id"},
            threshold=1,
            within=MISSED_BEFORE_CRASHED,
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


def _deploy(api: str) -> None:
    """Make the deployments of prefect.yaml, again if they are there; schedules made in the UI stay."""
    done = subprocess.run(
        [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"],
        cwd=ROOT,
        env={**os.environ, environment.API_URL: api, "PWD": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise StoreError(f"the deployments of prefect.yaml could not be made:\n{done.stdout}{done.stderr}")


@contextmanager
def _child(arguments: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Prefect command as a child in a session of its own (Ctrl-C is ours to pass on); stopped at the end."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "prefect", *arguments],
            cwd=ROOT,
            env={**os.environ, "PWD": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield child
    finally:
        _stop(child)


def _stop(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is not None:
        return
    child.send_signal(signal.SIGINT)
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _wait_until_it_answers(api: str, child: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not environment.answers(api):
        if child.poll() is not None:
            raise StoreError(f"the Prefect server ended while it was starting; see {log}")
        if time.monotonic() > deadline:
            raise StoreError(f"the Prefect server did not answer within {START_SECONDS:.0f} s; see {log}")
        time.sleep(0.2)


def _wait_for(worker: subprocess.Popen[bytes], log: Path) -> None:
    """Until interrupted. StoreError when the worker ends by itself."""
    try:
        worker.wait()
    except KeyboardInterrupt:
        return
    raise StoreError(f"the worker ended by itself with code {worker.returncode}; see {log}")


def _refuse_taken(port: int) -> None:
    with socket.socket() as probe:
        if probe.connect_ex((HOST, port)) == 0:
            raise ConfigError(
                f"port {port} belongs to another program that is no Prefect server; try --port {port + 1}"
            )
