"""What a run of a build takes over from how the build was made."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
from pathlib import Path

import pytest

from flows import chain
from flows.chain.options import EvaluateOptions, RebuildOptions, RunOptions
from flows.chain.status import find_statuses
from tasks.foundation.errors import ConfigError
from tasks.foundation.run.context import Workspace
from tasks.foundation.settings import load_settings
from tasks.foundation.store.commits import begin_with, builds, write_commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.locks import at_work, lock
from tests.unit.bare_commits import bare_commit

MADE = bare_commit(
    "b",
    "scenes",
    record={"profile": "test", "overrides": ["scenes.sample.en=4", "voting.arbiter=scripted-b"], "guest": False},
)


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.delenv("COLLOQUY_PROFILE", raising=False)
    layout = Layout(tmp_path)
    write_commit(layout, MADE)
    return layout


def later(layout: Layout, stage: str, **record: object) -> None:
    ended = {"started_at": "2026-11-02T10:00:00+00:00", "ended_at": "2026-11-02T10:00:00+00:00"}
    write_commit(layout, dataclasses.replace(MADE, stage=stage, record=record, **ended))


def test_a_build_goes_on_with_the_profile_and_settings_it_was_made_with(layout: Layout) -> None:
    found = chain.settled(RebuildOptions(build="b", set=["judging.temperature=1"]), layout)
    assert found.profile == "test"
    assert found.set == ["scenes.sample.en=4", "voting.arbiter=scripted-b", "judging.temperature=1"]


def test_a_named_profile_begins_with_that_profile_alone(layout: Layout) -> None:
    found = chain.settled(RunOptions(build="b", profile="demo", set=["run.seed=1"]), layout)
    assert (found.profile, found.set) == ("demo", ["run.seed=1"])


@pytest.mark.parametrize("given", ["scenes.sample.en=9", "scenes.sample={en: 9, zh: 9}"])
def test_a_setting_replaces_the_remembered_one_and_what_is_below_it(layout: Layout, given: str) -> None:
    found = chain.settled(RunOptions(build="b", set=[given]), layout)
    assert found.set == ["voting.arbiter=scripted-b", given]
    assert load_settings("test", found.set).scenes.sample.en == 9


def test_a_new_build_has_the_usual_profile(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chain.settled(RunOptions(build="other"), layout).profile == "demo"
    monkeypatch.setenv("COLLOQUY_PROFILE", "local")
    assert chain.settled(RunOptions(build="other"), layout).profile == "local"
    assert chain.settled(RunOptions(build="b"), layout).profile == "test"


def test_a_build_whose_first_stage_failed_goes_on_with_what_it_was_begun_with(layout: Layout) -> None:
    begin_with(layout, "begun", "test", ["run.seed=5"])
    found = chain.settled(RunOptions(build="begun", set=["run.seed=6"]), layout)
    assert (found.profile, found.set) == ("test", ["run.seed=6"])
    assert chain.settled(RunOptions(build="begun"), layout).set == ["run.seed=5"]
    assert "begun" not in builds(layout)
    begin_with(layout, "b", "local", [])
    assert chain.settled(RunOptions(build="b"), layout).profile == "test", "commits know better"
    layout.begun("begun").write_text("{", encoding="utf-8")
    assert chain.settled(RunOptions(build="begun"), layout).profile == "demo"


def test_a_profile_that_is_gone_is_named_with_what_to_do(layout: Layout, tmp_path: Path) -> None:
    begin_with(layout, "begun", str(tmp_path / "gone.yaml"), [])
    with pytest.raises(ConfigError, match=r"the profile .*gone\.yaml, which is not there any more: put it back"):
        chain.settled(RunOptions(build="begun"), layout)
    assert chain.settled(RunOptions(build="begun", profile="test"), layout).profile == "test"


def test_a_note_that_says_nothing_is_none(layout: Layout) -> None:
    for note in ('{"profile": "test", "overrides": [1]}', '{"profile": "test", "overrides": "abc"}', "[]"):
        layout.begun("b2").parent.mkdir(exist_ok=True)
        layout.begun("b2").write_text(note, encoding="utf-8")
        assert chain.settled(RunOptions(build="b2"), layout).profile == "demo"


def test_a_released_benchmark_is_not_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLLOQUY_ARTIFACTS", str(tmp_path))
    write_commit(Layout(tmp_path), dataclasses.replace(MADE, stage="release", record={}))
    everything = RebuildOptions(build="b", profile="test")
    assert chain.selected(everything) == chain.evaluation()
    assert chain.selected(everything.model_copy(update={"from_stage": "judging"})) == ("judging", "metrics")
    for options in ({"only": "curation"}, {"from_stage": "scenes"}):
        with pytest.raises(ConfigError, match="holds a released benchmark, which is not made again"):
            chain.selected(everything.model_copy(update=options))


def test_a_stage_without_its_inputs_waits_for_the_stage_that_makes_them(layout: Layout) -> None:
    workspace = Workspace.open("test", layout=Layout(layout.root / "other"))
    workspace.stage_of = chain.stage_of()
    found = find_statuses(workspace, "none", ["scenes", "conflicts", "dialogues"])
    assert [(one.state, one.why) for one in found] == [
        *(("missing", "not run yet"), ("missing", "after scenes"), ("missing", "after conflicts")),
    ]


def test_one_target_more_does_not_change_what_a_build_was_made_with(layout: Layout) -> None:
    later(layout, "judging", profile="local", overrides=["judging.temperature=1"], guest=True)
    assert chain.settled(RunOptions(build="b"), layout).profile == "test"
    later(layout, "judging", profile="local", overrides=["judging.temperature=1"], guest=False)
    assert chain.settled(RunOptions(build="b"), layout).set == ["judging.temperature=1"]


def test_commits_that_do_not_say_whose_they_are_count_by_their_stage(layout: Layout) -> None:
    later(layout, "judging", profile="local")
    assert chain.settled(RunOptions(build="b"), layout).profile == "test"
    later(layout, "voting", profile="local")
    assert chain.settled(RunOptions(build="b"), layout).profile == "local"


def test_a_fresh_build_stays_fresh() -> None:
    options = RunOptions(profile="test", fresh=True, set=["run.seed=3"])
    assert options.remembered == options.overrides == ("run.seed=3", "run.fresh=true")
    assert RunOptions(profile="test", fresh=True, set=list(options.remembered)).remembered == options.remembered


def test_a_target_is_of_one_run_and_not_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLLOQUY_ARTIFACTS", str(tmp_path))
    options = EvaluateOptions(profile="test", build="b", target="scripted-b", set=["run.seed=3"])
    workspace: Workspace = chain.open_workspace(options)
    assert workspace.settings.conversation.targets == workspace.settings.awareness.targets == ["scripted-b"]
    assert (workspace.remembered, workspace.guest) == (("run.seed=3",), True)


@pytest.mark.parametrize(
    ("benchmark", "missing"),
    [("demo", {"chatseeds", "conversation"}), ("eyt", {"scenes", "curation", "interaction"}), ("both", set())],
)
def test_a_benchmark_leaves_out_what_only_the_other_needs(benchmark: str, missing: set[str]) -> None:
    options = RebuildOptions(profile="test", set=[f"run.benchmark={benchmark}"])
    assert missing.isdisjoint(chain.selected(options))
    assert {"personas", "judging", "metrics"} <= set(chain.selected(options))
    assert "personas" not in chain.selected(options.model_copy(update={"from_stage": "chatseeds"}))
    assert chain.selected(options.model_copy(update={"only": "conversation"})) == ("conversation",)


@pytest.mark.parametrize(("profile", "benchmark"), [("demo-paper", "demo"), ("eyt-paper", "eyt"), ("demo", "both")])
def test_the_profiles_of_the_papers_run_one_benchmark(profile: str, benchmark: str) -> None:
    assert load_settings(profile).run.benchmark == benchmark


def test_who_is_at_work_is_seen_without_taking_the_lock(tmp_path: Path) -> None:
    path = tmp_path / ".voting.lock"
    assert at_work(path) is None
    with lock(path, "stage voting", 0):
        assert f"process {os.getpid()} on {socket.gethostname()}" in (at_work(path) or "")
    assert at_work(path) is None
    path.write_text(json.dumps({"pid": 2**22 + 1, "host": socket.gethostname(), "command": "c", "since": "s"}))
    assert at_work(path) is None, "of a process that was killed the file stays"
