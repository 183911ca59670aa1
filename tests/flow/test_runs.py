"""Whole runs under Prefect, as processes: accounting, what a second run does, failures, who is first."""

from __future__ import annotations

import json
import signal
import time
import urllib.request
from datetime import date
from typing import Any

import pytest

from tests.flow.conftest import Colloquy, PrefectServer

pytestmark = pytest.mark.flow

QUESTIONS = 64


def test_every_row_is_accounted_for_and_a_second_run_asks_nothing(toy: Colloquy, prefect_server: PrefectServer) -> None:
    first = toy.run("--build", "rows")
    assert (first.returncode, len(toy.asked)) == (0, QUESTIONS), first.stderr
    commits = toy.commits("rows")
    assert commits["scenes"].accounting.to_json() == {
        "n_in": 40,
        "n_produced": 32,
        "n_filtered": 8,
        "n_failed": 0,
        "filtered": {"not_sampled": 8},
        "failed": {},
    }
    curation = commits["curation"].accounting
    assert (curation.n_in, curation.n_produced, curation.n_filtered) == (32, 28, 4)
    toy.forget()
    second = toy.run("--build", "rows", PREFECT_API_URL="http://127.0.0.1:9/api")
    assert (second.returncode, toy.asked) == (0, [])
    assert "0 model calls were made" in second.stdout
    assert "up to date" in second.stdout
    runs = asked(prefect_server, "flow_runs", {"flow_runs": {"tags": {"all_": ["build:rows"]}}})
    of_build = {"flow_run_id": {"any_": [run["id"] for run in runs]}}
    found = asked(prefect_server, "artifacts", {"artifacts": of_build})
    posted = {artifact["key"]: artifact for artifact in found}
    assert json.loads(posted["colloquy-curation"]["data"])[0]["rows in"] == 32
    assert "32 rows in = 28 produced + 4 filtered + 0 failed" in posted["colloquy-curation"]["description"]
    progress = [(artifact["key"], artifact["data"]) for artifact in found if artifact["type"] == "progress"]
    assert set(progress) == {(None, 100.0)}


def test_what_a_stage_says_stands_in_the_log_of_its_run_and_a_warning_on_the_screen(
    toy: Colloquy, prefect_server: PrefectServer
) -> None:
    loud = toy.run("--only", "scenes", "--build", "loud-{date}")
    quiet = toy.run("--only", "scenes", "--build", "quiet", "--quiet")
    assert "warning: one row in five is left out" in loud.stdout
    assert "rows are there" not in loud.stdout
    assert "warning" not in quiet.stdout
    today = date.today().isoformat()
    runs = asked(prefect_server, "flow_runs", {"flow_runs": {"tags": {"all_": [f"build:loud-{today}"]}}})
    assert {run["name"] for run in runs} == {f"loud-{today} rebuild (test)", f"loud-{today} scenes (test)"}
    logged = asked(prefect_server, "logs", {"logs": {"flow_run_id": {"any_": [run["id"] for run in runs]}}})
    ours = sorted((line["level"], line["message"]) for line in logged if line["name"] == "tasks.toy_scenes")
    assert ours == [(20, "40 rows are there"), (30, "one row in five is left out")]
    told = [line["message"] for line in logged if line["name"] == "flows.runs"]
    assert told[0].startswith(f"build loud-{today}, profile test --set ")
    assert "scenes: run; 40 rows in = 32 produced + 8 filtered + 0 failed; 0 calls" in told[1]


def asked(server: PrefectServer, what: str, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """What the server's API has of a kind."""
    request = urllib.request.Request(
        f"{server.api}/{what}/filter", data=json.dumps(wanted).encode(), headers={"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as reply:
        return list(json.load(reply))


def test_a_forced_run_and_a_new_build_replay_the_cache_and_make_equal_rows(toy: Colloquy) -> None:
    assert toy.run().returncode == 0
    before = toy.hashes()
    toy.forget()
    assert toy.run("--force").returncode == 0
    assert toy.run("--build", "again").returncode == 0
    assert toy.asked == []
    assert toy.hashes() == before == toy.hashes("again")
    assert [commit.revision for commit in toy.commits().values()] == [1, 1]


def test_what_follows_a_forced_stage_runs_only_if_its_rows_changed(toy: Colloquy) -> None:
    assert toy.run().returncode == 0
    assert toy.run("--from", "scenes", "--force").returncode == 0
    revisions = {stage: commit.revision for stage, commit in toy.commits().items()}
    assert revisions == {"scenes": 1, "curation": 0}
    more = toy.run("--set", "scenes.sample={en: 20, zh: 21}")
    assert more.returncode == 0
    assert toy.commits()["curation"].accounting.n_in == 33
    assert len(toy.asked) == QUESTIONS + 2


def test_rows_lost_to_a_provider_are_redone_alone(toy: Colloquy, prefect_server: PrefectServer) -> None:
    first = toy.run("--build", "losing", TOY_DOWN="sevens")
    assert first.returncode == 8, first.stderr
    assert "curation is partial" in first.stdout
    lost = toy.commits("losing")["curation"].accounting.failed
    assert lost == {"server": 4}
    runs = asked(prefect_server, "flow_runs", {"flow_runs": {"tags": {"all_": ["build:losing"]}}})
    states = {run["name"]: (run["state"]["name"], run["state"]["type"]) for run in runs}
    assert states == {
        "losing rebuild (test)": ("Partial", "FAILED"),  # of this type, so that Prefect's retries redo the rows
        "losing scenes (test)": ("Completed", "COMPLETED"),
        "losing curation (test)": ("Partial", "FAILED"),
    }
    toy.forget()
    second = toy.run("--build", "losing")
    assert second.returncode == 0
    assert len(toy.asked) == 2 * 4
    assert all("7'" in question for question in toy.asked)
    commit = toy.commits("losing")["curation"]
    assert (commit.revision, commit.accounting.n_failed, commit.partial) == (1, 0, False)


def test_a_stage_that_goes_wrong_stops_and_goes_on_once_the_provider_is_back(toy: Colloquy) -> None:
    first = toy.run(TOY_DOWN="all")
    assert first.returncode == 5
    assert "too many failures: stage curation stopped" in first.stderr
    assert "503: the toy provider is down" in first.stderr
    assert "Traceback" not in first.stderr
    assert list(toy.commits()) == ["scenes"]
    toy.forget()
    second = toy.run("--only", "curation")
    assert second.returncode == 0, second.stderr
    assert len(toy.asked) == QUESTIONS


def test_a_second_run_of_the_same_stage_is_refused_with_the_owner_named(
    toy: Colloquy, prefect_server: PrefectServer
) -> None:
    first = toy.start(COLLOQUY_SCRIPTED_LATENCY="60")
    try:
        while not toy.owner_of("curation") and first.poll() is None:
            time.sleep(0.05)
        second = toy.run("--only", "curation")
    finally:
        first.kill()
        first.communicate()
    assert second.returncode == 6
    assert f"process {first.pid} on " in second.stderr
    assert (
        f"as flow run main curation (test), {prefect_server.api.removesuffix('/api')}/runs/flow-run/" in second.stderr
    )


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_says_so_and_goes_on(toy: Colloquy, by: signal.Signals) -> None:
    output = toy.end_after(8, by)
    assert "Interrupted" in output
    assert "Traceback" not in output
    kept = len(toy.replies())
    toy.forget()
    assert toy.run().returncode == 0
    assert len(toy.asked) == QUESTIONS - kept


def test_a_stage_without_its_inputs_says_which_stage_makes_them(toy: Colloquy) -> None:
    ended = toy.run("--only", "curation")
    assert ended.returncode == 4
    assert "needs table pairings" in ended.stderr
    assert "colloquy run --from scenes" in ended.stderr


def test_without_a_server_a_temporary_one_keeps_the_records(toy: Colloquy) -> None:
    ended = toy.run("--only", "scenes", PREFECT_API_URL="", PREFECT_HOME=str(toy.folder / "home"))
    assert ended.returncode == 0, ended.stderr
    assert "a temporary one keeps the records" in ended.stdout
    assert (toy.folder / "home" / "prefect.db").exists()


def test_status_tells_what_changed_and_what_comes_after_it(toy: Colloquy) -> None:
    assert toy.run().returncode == 0
    shown = toy.command("status", "--set", "scenes.sample={en: 20, zh: 21}").stdout
    assert "changed: settings" in shown
    assert "scenes before it is not up to date" in shown
    assert toy.command("use", "main").returncode == 0
    assert toy.command("check").stdout.endswith("checks found nothing\n")
