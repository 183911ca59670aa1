"""What the service does without a server: the days and names of runs, which deployments and heartbeats are meant."""

from __future__ import annotations

import copy
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
import yaml
from pydantic import ValidationError

from flows import chain
from flows.chain.options import BuildOptions, EvaluateOptions, RebuildOptions, RunOptions
from flows.server import deployments, environment
from tasks.foundation import ROOT
from tasks.foundation.errors import ConfigError
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.locks import at_work, lock, signing

LATE = datetime(2026, 12, 1, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "day"),
    [("UTC", 1), ("Asia/Shanghai", 2), ("Pacific/Kiritimati", 2), ("America/New_York", 1), ("Pacific/Pago_Pago", 1)],
)
def test_the_day_of_a_run_is_that_of_its_schedules_zone(zone: str, day: int) -> None:
    from flows.identity import day_of

    assert day_of(LATE, zone) == date(2026, 12, day)


def test_options_with_a_day_are_of_that_days_build_whenever_they_are_asked(tmp_path: Path) -> None:
    dated = EvaluateOptions(build="nightly-{date}", target="mine", profile="test").on(date(2026, 11, 30))
    assert dated.build == dated.build_on(date(2026, 12, 1)) == "nightly-2026-11-30"
    assert chain.settled(dated, Layout(tmp_path)).build == "nightly-2026-11-30"
    assert (dated.target, type(dated)) == ("mine", EvaluateOptions)


@pytest.mark.parametrize(
    "given",
    [
        *({"build": name} for name in ("no/good", "Main", "-b", "", "{date", "{day}", "b" * 65, "a b", "../b")),
        *({"profile": name} for name in ("tset", "Demo", "demo.yml", "")),
        {"only": "votin"},
    ],
    ids=str,
)
def test_the_form_refuses_what_no_run_could_use(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        RebuildOptions.model_validate(given)


async def test_an_evaluation_of_no_target_is_refused() -> None:
    from flows.runs import evaluate

    with pytest.raises(ConfigError, match="expected the alias of a model as `target`, found none"):
        await evaluate.fn(EvaluateOptions(profile="test", build="b1"))


@pytest.mark.parametrize(
    "given",
    [
        *({"build": name} for name in ("main", "{date}", "nightly-{date}", "2026.12_b-1", "b" * 64)),
        *({"profile": name} for name in ("demo", "test", "/data/mine.yaml", None)),
    ],
    ids=str,
)
def test_the_form_takes_what_a_run_can_use(given: dict[str, str]) -> None:
    assert RunOptions.model_validate(given).model_dump(include=set(given)) == given


def deployment(number: int, **env: str) -> Any:
    return SimpleNamespace(id=UUID(int=number), job_variables={"env": env} if env else {})


def rule(*made: Any) -> Any:
    return deployments.zombie_automation(made).trigger


def test_only_runs_of_our_deployments_are_taken_for_dead() -> None:
    related = rule(deployment(1), deployment(2)).match_related
    assert related["prefect.resource.role"] == ["deployment"]
    assert related["prefect.resource.id"] == [f"prefect.deployment.{UUID(int=number)}" for number in (1, 2)]


@pytest.mark.parametrize(
    ("env", "beat"),
    [({deployments.HEARTBEAT: "30"}, 30), ({deployments.HEARTBEAT: "600"}, 600), ({}, 180), ({"OTHER": "1"}, 180)],
)
def test_a_run_may_miss_heartbeats_before_it_is_taken_for_dead(env: dict[str, str], beat: int) -> None:
    within = rule(deployment(1, **{deployments.HEARTBEAT: "30"}), deployment(2, **env)).within
    assert 3 * timedelta(seconds=beat) <= within <= 6 * timedelta(seconds=beat)


def test_a_run_in_a_state_without_a_process_is_not_taken_for_dead() -> None:
    from prefect import states

    from flows.stage_flow import PARTIAL

    ends = [made().name for made in (states.Completed, states.Failed, states.Cancelled, states.Crashed)]
    assert {f"prefect.flow-run.{name}" for name in (*ends, PARTIAL, "TimedOut", "Suspended")} <= rule(
        deployment(1)
    ).expect


def test_a_deployments_version_changes_with_what_the_code_says_of_it_and_with_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))["deployments"][0]
    more_env, tagged = copy.deepcopy(entry), {**entry, "tags": ["other"]}
    more_env["work_pool"]["job_variables"]["env"]["MORE"] = "1"
    first, *others = [deployments._declared(each).version for each in (entry, more_env, tagged)]
    assert first == deployments._declared(copy.deepcopy(entry)).version
    assert len({first, *others}) == 3
    monkeypatch.setattr(deployments, "FOLDER", Path("/elsewhere"))
    assert deployments._declared(entry).version != first


def test_every_flow_is_deployed_under_a_name_of_its_own_with_heartbeats_and_a_form_for_its_upcoming_runs() -> None:
    from flows.identity import FORMS

    declared = deployments.declarations()
    assert {each.name for each in declared} == {f"colloquy-{each.flow}" for each in declared}
    assert (
        {each.flow for each in declared}
        == set(FORMS)
        == {*chain.names(), "rebuild", "evaluate", "report", "check", "release"}
    )
    for entry in yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]:
        env = entry["work_pool"]["job_variables"]["env"]
        assert deployments.HEARTBEAT in env
        ours = {name: value for name, value in env.items() if name != "PYTHONPATH"}
        assert ours.items() <= environment.DEFAULTS.items(), "a worker started by hand runs them as ours does"
        assert "schedules" not in entry, "it would wipe those of the UI"


def test_a_lock_says_as_which_flow_run_it_is_held(tmp_path: Path) -> None:
    with signing("flow run first voting (demo), http://127.0.0.1:4200/runs/flow-run/1"), lock(tmp_path / "a", "a", 0):
        assert (at_work(tmp_path / "a") or "").endswith(
            "as flow run first voting (demo), http://127.0.0.1:4200/runs/flow-run/1"
        )
    with lock(tmp_path / "b", "b", 0):
        assert " as " not in (at_work(tmp_path / "b") or "")


def test_who_finds_a_stage_taken_sees_no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect.client.schemas.objects import FlowRun
    from prefect.settings import PREFECT_API_URL, temporary_settings

    from flows import identity

    run = FlowRun(id=UUID(int=1), flow_id=UUID(int=2), name="first voting (demo)")
    monkeypatch.setattr(identity, "_run", lambda: run)
    with temporary_settings({PREFECT_API_URL: "http://me:secret@host:4200/api"}):
        assert identity.signature() == f"flow run first voting (demo), http://host:4200/runs/flow-run/{run.id}"


def test_a_report_has_an_address_that_a_browser_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.prefect_artifacts import report_url

    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    assert report_url("b") == "http://127.0.0.1:4201/b/index.html"
    (tmp_path / "colloquy-serve.json").write_text('{"reports": "http://127.0.0.1:5000"}', encoding="utf-8")
    assert report_url("b") == "http://127.0.0.1:5000/b/index.html"


def test_a_build_without_a_date_is_the_same_on_every_day() -> None:
    assert BuildOptions(build="b").on(date(2026, 1, 1)) == BuildOptions(build="b")
