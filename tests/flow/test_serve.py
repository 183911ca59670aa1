"""`colloquy serve` from nothing: what it brings up, what a second one does, what a restart leaves alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from flows import chain, environment
from flows.local_server import free_port
from tasks.foundation.checkout import ROOT
from tests.flow.conftest import PATIENCE_SECONDS

pytestmark = pytest.mark.flow

BUSY_TRIES = 40


class Served:
    """A home for Prefect, a port, and the API behind it."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.api = f"http://127.0.0.1:{self.port}/api"
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != environment.API_URL},
            "PREFECT_HOME": str(folder / "prefect"),
            "COLLOQUY_ARTIFACTS": str(folder / "artifacts"),
        }

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "flows.cli", "serve", "--port", str(self.port)]

    @contextmanager
    def up(self) -> Iterator[None]:
        """While the block runs, `colloquy serve` is up."""
        process = subprocess.Popen(
            self.command, env=self.environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        said = []
        try:
            for line in process.stdout:
                said.append(line)
                if line.startswith("UI: "):
                    break
            assert process.poll() is None, "".join(said)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_SECONDS)

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

    def end_of_run(self, deployment: str, options: dict[str, Any]) -> dict[str, Any]:
        """The final state of a run made from a deployment."""
        found = self.ask("GET", f"/deployments/name/{deployment}/colloquy")
        run = self.ask("POST", f"/deployments/{found['id']}/create_flow_run", {"parameters": {"options": options}})
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            state = self.ask("GET", f"/flow_runs/{run['id']}")["state"]
            if state["type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED"):
                return dict(state)
            time.sleep(0.5)
        raise AssertionError(f"the run of {deployment} did not end: {state}")


def test_serve_brings_everything_up_and_leaves_schedules_alone(tmp_path: Path) -> None:
    served = Served(tmp_path)
    nightly = [{"schedule": {"cron": "0 3 * * *", "timezone": "UTC"}, "active": True}]
    with served.up():
        with urllib.request.urlopen(served.api.removesuffix("api") + "ui-settings", timeout=30) as reply:
            assert json.loads(reply.read())["api_url"] == served.api, "the page asks the server it came from"
        names = {deployment["entrypoint"] for deployment in served.ask("POST", "/deployments/filter", {})}
        assert names == {
            "flows.rebuild:rebuild",
            "flows.evaluate:evaluate",
            *(f"flows.stages:{stage}" for stage in chain.names()),
        }
        assert served.ask("GET", "/work_pools/colloquy")["type"] == "process"
        assert [rule["name"] for rule in served.ask("POST", "/automations/filter", {})] == [
            "Mark runs whose process died as crashed"
        ]
        rebuild = served.ask("GET", "/deployments/name/rebuild/colloquy")
        served.ask("POST", f"/deployments/{rebuild['id']}/schedules", nightly)

        elsewhere = {**served.environment, "COLLOQUY_ARTIFACTS": str(tmp_path / "other")}
        again = subprocess.run(served.command, env=elsewhere, cwd=ROOT, capture_output=True, text=True)
        assert again.returncode == 0, again.stderr
        assert "Already up" in again.stdout
        assert f"Its runs write to {tmp_path / 'artifacts'}, not to {tmp_path / 'other'}" in again.stdout

        for deployment, options, complaint in (
            ("rebuild", {"profile": "test", "build": "no/good"}, "build name 'no/good'"),
            ("evaluate", {"profile": "test", "build": "b1"}, "expected the alias of a model as `target`"),
        ):
            refused = served.end_of_run(deployment, options)
            assert refused["type"] == "FAILED"
            assert complaint in refused["message"]
    with pytest.raises(urllib.error.URLError):
        served.ask("GET", "/health")
    with served.up():
        schedules = served.ask("GET", "/deployments/name/rebuild/colloquy")["schedules"]
        assert [schedule["schedule"]["cron"] for schedule in schedules] == ["0 3 * * *"]
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
