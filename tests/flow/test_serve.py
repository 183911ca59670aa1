"""`colloquy serve` from nothing: what it brings up, what a second one does, what a restart leaves alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from flows import chain
from flows.server import environment
from flows.server.local_server import free_port
from tasks.foundation import ROOT
from tests.flow.conftest import PATIENCE_SECONDS, heed_the_terminal, until

pytestmark = pytest.mark.flow

BUSY_TRIES = 40
FINAL = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
ELSEWHERE = "http://elsewhere.example"


class Served:
    """A home for Prefect, a port, and the API behind it."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.api = f"http://127.0.0.1:{self.port}/api"
        self.said: list[str] = []
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != environment.API_URL},
            "PREFECT_HOME": str(folder / "prefect"),
            "COLLOQUY_ARTIFACTS": str(folder / "artifacts"),
            "HTTP_PROXY": "http://127.0.0.1:9",
            "http_proxy": "http://127.0.0.1:9",
            "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "2",
        }

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "flows.cli.main", "serve", "--port", str(self.port)]

    def begin(self) -> None:
        """`colloquy serve`, once it is up."""
        self.said.clear()
        self._process = process = subprocess.Popen(
            self.command,
            env=self.environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=heed_the_terminal,
        )
        self._reader = threading.Thread(target=lambda: self.said.extend(process.stdout or ()), daemon=True)
        self._reader.start()
        until(lambda: self.has_said("UI: ") or process.poll() is not None)
        assert process.poll() is None, "".join(self.said)

    def end(self, by: signal.Signals) -> None:
        self._process.send_signal(by)
        self._process.wait(PATIENCE_SECONDS)
        self._reader.join()

    def has_said(self, words: str) -> bool:
        return any(words in line for line in self.said)

    def again(self, **environment: str) -> str:
        """What a second `colloquy serve` says."""
        ended = subprocess.run(
            self.command, env={**self.environment, **environment}, cwd=ROOT, capture_output=True, text=True
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self.api}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json"},
        )
        for _ in range(BUSY_TRIES):
            try:
                with urllib.request.urlopen(request, timeout=30) as reply:
                    return json.loads(reply.read() or b"null")
            except urllib.error.HTTPError as error:
                if error.code != 503:  # as Prefect's own client does: its database was busy for a moment
                    raise
            time.sleep(0.5)
        raise AssertionError(f"the server has been busy for {BUSY_TRIES} tries: {path}")

    def deployment(self, flow: str) -> dict[str, Any]:
        return dict(self.ask("GET", f"/deployments/name/{flow}/colloquy-{flow}"))

    def start(self, flow: str, options: dict[str, Any]) -> dict[str, Any]:
        """A run made from a deployment."""
        path = f"/deployments/{self.deployment(flow)['id']}/create_flow_run"
        return dict(self.ask("POST", path, {"parameters": {"options": options}}))

    def ended(self, run: dict[str, Any]) -> dict[str, Any]:
        """The run, once it is in a final state."""
        until(lambda: self.ask("GET", f"/flow_runs/{run['id']}")["state"]["type"] in FINAL)
        return dict(self.ask("GET", f"/flow_runs/{run['id']}"))

    def pid(self, of: str) -> int:
        """The process of this server's port, or of the worker."""
        home = self.environment["PREFECT_HOME"].encode()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                called = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                if of.encode() in called and home in (folder / "environ").read_bytes():
                    return int(folder.name)
            except OSError:
                continue
        raise AssertionError(f"no process {of}")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One that is up for the tests of this file."""
    served = Served(tmp_path_factory.mktemp("served"))
    try:
        served.begin()
        yield served
    finally:
        served.end(signal.SIGTERM)


def test_serve_brings_everything_up(served: Served) -> None:
    with urllib.request.urlopen(served.api.removesuffix("api") + "ui-settings", timeout=30) as reply:
        assert json.loads(reply.read())["api_url"] == served.api, "the page asks the server it came from"
    deployments = served.ask("POST", "/deployments/filter", {})
    assert {(deployment["name"], deployment["entrypoint"]) for deployment in deployments} == {
        ("colloquy-rebuild", "flows.runs:rebuild"),
        ("colloquy-evaluate", "flows.runs:evaluate"),
        *((f"colloquy-{stage}", f"flows.stages:{stage}") for stage in chain.names()),
        *((f"colloquy-{flow}", f"flows.builds:{flow}") for flow in ("report", "check", "release")),
    }
    assert served.ask("GET", "/work_pools/colloquy")["type"] == "process"
    rule, *others = served.ask("POST", "/automations/filter", {})
    assert (rule["name"], others) == ("Mark runs whose process died as crashed", [])
    ours = {f"prefect.deployment.{deployment['id']}" for deployment in deployments}
    assert set(rule["trigger"]["match_related"]["prefect.resource.id"]) == ours
    beats = {int(each["job_variables"]["env"]["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"]) for each in deployments}
    assert rule["trigger"]["within"] >= 3 * max(beats)


def test_a_page_of_elsewhere_is_not_answered(served: Served) -> None:
    page = served.api.removesuffix("/api")
    for headers in ({"Origin": ELSEWHERE}, {"Origin": "null"}, {"Host": "elsewhere.example"}):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(urllib.request.Request(f"{served.api}/flows/count", b"{}", headers), timeout=30)
    own = urllib.request.Request(f"{served.api}/health", headers={"Origin": page})
    with urllib.request.urlopen(own, timeout=30) as reply:
        assert reply.headers["Access-Control-Allow-Origin"] == page
    events = served.api.replace("http", "ws") + "/events/out"
    with pytest.raises(InvalidStatus):
        connect(events, origin=ELSEWHERE, subprotocols=["prefect"], proxy=None)
    connect(events, origin=page, subprotocols=["prefect"], proxy=None).close()


def test_what_cannot_be_a_build_or_a_profile_is_refused_before_it_is_a_run(served: Served) -> None:
    for options in ({"build": "no/good"}, {"build": "Main"}, {"profile": "tset"}, {"only": "votin"}, {"speed": 1}):
        with pytest.raises(urllib.error.HTTPError, match="409"):
            served.start("rebuild", options)


def test_a_run_with_lost_rows_is_partial_and_its_build_has_a_report_that_a_browser_opens(served: Served) -> None:
    run = served.ended(served.start("scenes", {"profile": "test", "build": "lost"}))
    assert (run["name"], run["state"]["name"], run["state"]["type"]) == ("lost scenes (test)", "Partial", "COMPLETED")
    assert "rows failed, for good" in run["state"]["message"]
    assert {"colloquy", "build:lost", "stage:scenes", "profile:test"} <= set(run["tags"])
    seen: list[dict[str, Any]] = []
    until(lambda: bool(seen.extend(events_of_losses(served)) or seen))
    assert (seen[0]["resource"]["colloquy.build"], seen[0]["payload"]["may_pass"]) == ("lost", False)

    both = [served.start(flow, {"build": "lost"}) for flow in ("report", "check")]
    assert [served.ended(each)["state"]["name"] for each in both] == ["Completed"] * 2
    posted = {artifact["key"]: artifact for artifact in served.ask("POST", "/artifacts/latest/filter", {})}
    assert set(posted) >= {"colloquy-scenes", "colloquy-report", "colloquy-check"}
    link = posted["colloquy-report"]["data"].partition("](")[2].rstrip(")")
    with urllib.request.urlopen(link, timeout=30) as page:
        assert b"<html" in page.read(1000)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(urllib.request.Request(link, headers={"Host": "elsewhere.example"}), timeout=30)
    (viewer,) = [line.split()[1] for line in served.said if line.startswith("viewer: ")]
    with urllib.request.urlopen(f"{viewer}/builds/lost/tables/rejects", timeout=30) as page:
        assert b"rejects" in page.read()
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(urllib.request.Request(viewer, headers={"Host": "elsewhere.example"}), timeout=30)


def events_of_losses(served: Served) -> list[dict[str, Any]]:
    wanted = {"filter": {"event": {"name": ["colloquy.stage.partial"]}}}
    return list(served.ask("POST", "/events/filter", wanted)["events"])


def test_the_date_of_a_build_is_the_scheduled_day_of_the_schedules_zone_also_of_a_retry(served: Served) -> None:
    now = datetime.now(UTC)
    zones = ("Pacific/Kiritimati", "Pacific/Pago_Pago")  # at any moment one of them has another day than UTC
    zone = next(zone for zone in zones if (now + timedelta(hours=2)).astimezone(ZoneInfo(zone)).date() != now.date())
    deployment = served.deployment("check")["id"]
    in_two_hours = {"interval": 7200, "anchor_date": (now - timedelta(seconds=60)).isoformat(), "timezone": zone}
    options = {"options": {"build": "none-{date}"}}
    schedule = {"schedule": in_two_hours, "active": True, "parameters": options}
    served.ask("POST", f"/deployments/{deployment}/schedules", [schedule])
    of_deployment = {
        "deployments": {"id": {"any_": [deployment]}},
        "flow_runs": {"state": {"name": {"any_": ["Scheduled"]}}},
    }

    def upcoming() -> list[dict[str, Any]]:
        found = served.ask("POST", "/flow_runs/filter", {**of_deployment, "sort": "EXPECTED_START_TIME_ASC"})
        return [run for run in found if run["name"].startswith("none-")]

    until(lambda: bool(upcoming()))
    run = upcoming()[0]
    day = datetime.fromisoformat(run["expected_start_time"]).astimezone(ZoneInfo(zone)).date()
    assert run["name"] == f"none-{day} check", "named before it starts"
    at_once = {"state": {"type": "SCHEDULED", "state_details": {"scheduled_time": now.isoformat()}}}
    served.ask("POST", f"/flow_runs/{run['id']}/set_state", at_once)
    first = served.ended(run)
    for each in served.ask("GET", f"/deployments/{deployment}/schedules"):
        served.ask("DELETE", f"/deployments/{deployment}/schedules/{each['id']}")
    assert (first["parameters"]["options"]["build"], first["name"]) == (f"none-{day}", f"none-{day} check")
    served.ask("POST", f"/flow_runs/{run['id']}/set_state", {"state": {"type": "SCHEDULED", "name": "AwaitingRetry"}})
    until(lambda: served.ask("GET", f"/flow_runs/{run['id']}")["run_count"] == 2)
    assert f"build 'none-{day}' does not exist" in served.ended(run)["state"]["message"]


def test_what_was_edited_stays_and_what_is_missing_is_made(served: Served, tmp_path: Path) -> None:
    nightly = [{"schedule": {"cron": "0 3 * * *", "timezone": "UTC"}, "active": True}]
    edited = {
        "description": "mine",
        "tags": ["mine"],
        "parameters": {"options": {"build": "mine"}},
        "concurrency_limit": 3,
        "job_variables": {"env": {"MINE": "1", "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "60"}},
    }
    of_older_code = {**edited, "version": "of older code"}
    for flow, changes in (("rebuild", edited), ("evaluate", of_older_code)):
        served.ask("PATCH", f"/deployments/{served.deployment(flow)['id']}", changes)
        served.ask("POST", f"/deployments/{served.deployment(flow)['id']}/schedules", nightly)
    served.ask("DELETE", f"/deployments/{served.deployment('metrics')['id']}")

    said = served.again(COLLOQUY_ARTIFACTS=str(tmp_path / "other"))
    assert "Already up" in said
    assert "made: metrics/colloquy-metrics" in said
    assert "made anew, as the code says: evaluate/colloquy-evaluate; 15 left as they are" in said
    assert "workers of pool colloquy: " in said
    assert f"not to {tmp_path / 'other'}" in said
    kept, renewed = served.deployment("rebuild"), served.deployment("evaluate")
    assert (kept["description"], kept["tags"]) == ("mine", ["mine"])
    assert (renewed["description"] != "mine", set(renewed["tags"])) == (True, {"colloquy", "flow:evaluate", "mine"})
    for each in (kept, renewed):
        assert each["parameters"] == {"options": {"build": "mine"}}
        assert each["global_concurrency_limit"]["limit"] == 3
        assert each["job_variables"]["env"]["MINE"] == "1"
        assert [schedule["schedule"]["cron"] for schedule in each["schedules"]] == ["0 3 * * *"]
    (rule,) = served.ask("POST", "/automations/filter", {})
    assert rule["trigger"]["within"] >= 3 * 60, "three of the heartbeats that a deployment was told to send"
    metrics = f"prefect.deployment.{served.deployment('metrics')['id']}"
    assert metrics in rule["trigger"]["match_related"]["prefect.resource.id"]


def test_a_server_or_worker_that_dies_is_started_again(served: Served) -> None:
    os.kill(served.pid("worker start --pool colloquy"), signal.SIGKILL)
    until(lambda: served.has_said("the worker ended by itself (code -9"))
    os.kill(served.pid(f"flows.server.local_server {served.port}"), signal.SIGKILL)
    until(lambda: served.has_said("the server ended by itself (code -9"))
    until(lambda: environment.answers(served.api))
    run = served.ended(served.start("check", {"build": "nobody-made-it"}))
    assert "does not exist" in run["state"]["message"], "the new worker takes runs from the new server"


def test_serve_ends_with_its_terminal_and_leaves_schedules_alone(served: Served) -> None:
    nightly = [{"schedule": {"cron": "0 4 * * *", "timezone": "UTC"}, "active": True}]
    served.ask("POST", f"/deployments/{served.deployment('release')['id']}/schedules", nightly)
    served.end(signal.SIGHUP)
    with pytest.raises(urllib.error.URLError):
        served.ask("GET", "/health")
    served.begin()
    assert served.has_said("17 left as they are in the UI")
    schedules = served.deployment("release")["schedules"]
    assert [schedule["schedule"]["cron"] for schedule in schedules] == ["0 4 * * *"]
    assert len(served.ask("POST", "/automations/filter", {})) == 1


def test_a_port_of_another_program_is_refused(tmp_path: Path) -> None:
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        served = Served(tmp_path)
        command = [*served.command[:-1], str(other.getsockname()[1])]
        ended = subprocess.run(command, env=served.environment, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2
    assert "belongs to another program that is no Prefect server" in ended.stderr
