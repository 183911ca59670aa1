"""A Prefect server that goes away, for good or for a while, or that was never there."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from flows.server.local_server import free_port
from tests.flow.conftest import PATIENCE_SECONDS, Colloquy, server_at, until
from tests.flow.warm import Process

pytestmark = pytest.mark.flow

QUESTIONS = 64


def child_of(process: Process, module: str) -> int:
    found = subprocess.run(["pgrep", "-P", str(process.pid), "-f", module], capture_output=True, text=True, check=True)
    return int(found.stdout)


def test_a_temporary_server_that_dies_ends_the_run_which_goes_on_later(toy: Colloquy) -> None:
    alone = {"PREFECT_API_URL": "", "PREFECT_HOME": str(toy.folder / "home")}
    run = toy.start(COLLOQUY_SCRIPTED_LATENCY="0.5", **alone)
    until(lambda: len(toy.replies()) >= 8, run)
    os.kill(child_of(run, "flows.server.local_server"), signal.SIGKILL)
    output = run.communicate(timeout=PATIENCE_SECONDS)[0]
    assert run.returncode == 4, output
    assert "the temporary Prefect server has ended (code -9). What was answered is kept" in output
    assert "Traceback" not in output
    assert list(toy.commits()) == ["scenes"]
    kept = len(toy.replies())
    toy.forget()
    assert toy.run().returncode == 0
    assert len(toy.asked) == QUESTIONS - kept


def test_a_server_that_comes_back_ends_no_run(toy: Colloquy, tmp_path: Path) -> None:
    port, home = free_port(), tmp_path / "home"
    home.mkdir()
    api = f"http://127.0.0.1:{port}/api"
    own = replace(toy, environment={"PREFECT_HOME": str(home), "PREFECT_API_URL": api})
    with server_at(port, home) as server:
        run = own.start(COLLOQUY_SCRIPTED_LATENCY="0.5")
        until(lambda: "scenes" in own.commits(), run)
        server.kill()
        server.wait()
        until(lambda: "does not answer" in run.out.read_text(encoding="utf-8"), run)
    with server_at(port, home):
        output = run.communicate(timeout=PATIENCE_SECONDS)[0]
    assert run.returncode == 0, output
    assert "Traceback" not in output
    assert set(own.commits()) == {"scenes", "curation"}
