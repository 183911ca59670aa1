"""`colloquy evaluate` on a released benchmark: a real small model behind a real OpenAI-compatible server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tasks.foundation import ROOT, weights
from tasks.foundation.errors import ConfigError, SourceError, StoreError
from tasks.foundation.llm.own_models import add_model, adding, all_models
from tasks.foundation.llm.providers import LOCAL_PROVIDERS
from tasks.foundation.llm.providers.embedded import load_server
from tasks.foundation.store.commits import commits_of, write_commit
from tasks.foundation.store.layout import Layout
from tasks.release.folder import write_release
from tasks.release.imports import import_release
from tests.flow.conftest import PrefectServer
from tests.unit.evaluation_build import Bench, episode, item, persona, seed

KEY = "local-test-key"
SMALL = (
    "interaction.max_turns=2",
    "interaction.max_tokens=40",
    "conversation.max_turns=1",
    "conversation.max_tokens=40",
    "awareness.max_tokens=60",
)


@pytest.fixture
async def release(tmp_path: Path) -> Path:
    """A released benchmark of one utterance item, one episode and one seed."""
    bench = Bench(tmp_path / "maker")
    gold = json.dumps({"intent": "to greet", "sentiment": "Positive", "emotion": "Enjoyment"})
    await bench.give("curation", {"awareness_items": [item("utterance", gold)], "interaction_episodes": [episode()]})
    await bench.give("personas", {"persona_candidates": [persona(), persona(2)]})
    await bench.give("chatseeds", {"chat_seeds": [seed()]})
    folder = tmp_path / "released"
    rows = write_release(bench.workspace().layout, "b1", folder, LOCAL_PROVIDERS)
    assert rows == {"awareness_items": 1, "interaction_episodes": 1, "chat_seeds": 1, "persona_candidates": 1}
    return folder


@pytest.fixture
def url() -> Iterator[str]:
    if weights.missing("smollm2-135m") or weights.missing("all-minilm-l6-v2"):
        pytest.skip("colloquy models pull --demo")
    server = load_server(weights.path_of("smollm2-135m"), slots=2, threads=1, context_tokens=2048, http_key=KEY)
    yield f"{server.listening_address}/v1"


def evaluate(artifacts: Path, server: PrefectServer, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **server.environment, "COLLOQUY_ARTIFACTS": str(artifacts), "LOCAL_KEY": KEY}
    settings = [word for setting in SMALL for word in ("--set", setting)]
    command = [sys.executable, "-m", "flows.cli.main", "evaluate", "--profile", "test", *arguments, *settings]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)


@pytest.mark.live
def test_a_model_behind_a_server_is_scored_on_a_release_and_nothing_else_is_made(
    release: Path, url: str, tmp_path: Path, prefect_server: PrefectServer
) -> None:
    artifacts = tmp_path / "mine"
    own = ("--base-url", url, "--model", "smollm2", "--family", "smollm", "--key-env", "LOCAL_KEY")
    done = evaluate(
        artifacts, prefect_server, "--target", "my-model", "--benchmark", str(release), "--build", "b", *own
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "my-model" in done.stdout and "overall_pooled" in done.stdout
    commits = commits_of(Layout(artifacts), "b")
    targets = [f"{stage}@my-model" for stage in ("awareness", "interaction", "conversation")]
    assert set(commits) == {"release", *targets, "judging@scripted-a", "metrics"}
    assert commits["awareness@my-model"].usage["calls"] >= 1
    assert commits["metrics"].rows("metrics") > 0

    other = evaluate(artifacts, prefect_server, "--target", "scripted-c", "--benchmark", "b", "--only", "demo")
    assert other.returncode == 0, other.stderr + other.stdout
    after = commits_of(Layout(artifacts), "b")
    assert all(after[name].to_json() == commits[name].to_json() for name in ("release", *targets)), "adds, never redoes"
    assert after["judging@scripted-a"].usage["from_cache"] == commits["judging@scripted-a"].usage["requests"]
    assert not [path for path in artifacts.rglob("*") if path.suffix in (".json", ".yaml") and KEY in path.read_text()]


def test_a_changed_release_is_refused(release: Path, tmp_path: Path) -> None:
    manifest = json.loads((release / "manifest.json").read_text())
    manifest["tables"]["chat_seeds"]["rows"] = 2
    (release / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(SourceError, match=r"table chat_seeds: expected what the manifest says"):
        import_release(Layout(tmp_path / "mine"), release, "b")
    with pytest.raises(SourceError, match=r"is no released benchmark"):
        import_release(Layout(tmp_path / "mine"), tmp_path, "b")


def test_a_release_is_imported_once_and_never_over_other_rows(release: Path, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "mine")
    assert import_release(layout, release, "b").to_json() == import_release(layout, release, "b").to_json()
    with pytest.raises(StoreError, match=r"is not empty"):
        write_release(layout, "b", release, LOCAL_PROVIDERS)
    with pytest.raises(StoreError, match=r"build 'c' does not exist; expected one of: b"):
        write_release(layout, "c", tmp_path / "other", LOCAL_PROVIDERS)


def test_an_own_model_is_kept_and_takes_nobodys_name(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    entry = {"provider": "openai", "name": "m", "family": "f", "base_url": "http://localhost:1/v1"}
    add_model(layout, "mine", entry)
    add_model(layout, "mine", entry)
    assert all_models(layout)["mine"].base_url == "http://localhost:1/v1"
    add_model(layout, "mine", {**entry, "name": "other"})
    with pytest.raises(ConfigError, match=r"'gpt-4o' is an alias of configs/models.yaml"):
        add_model(layout, "gpt-4o", entry)
    with pytest.raises(ConfigError, match=r"expected an alias of letters, digits, .* found 'my model'"):
        add_model(layout, "my model", entry)
    with pytest.raises(ConfigError, match=r"found 'lama': did you mean 'llama'"):
        add_model(layout, "mine", {**entry, "family": "lama"})


def test_an_alias_with_rows_may_move_and_stays_the_same_model(release: Path, tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    entry = {"provider": "openai", "name": "m", "family": "f", "base_url": "http://localhost:1/v1"}
    add_model(layout, "mine", entry)
    made = import_release(layout, release, "b")
    write_commit(layout, replace(made, stage="awareness", member="mine"))
    add_model(layout, "mine", {**entry, "base_url": "http://localhost:2/v1"})
    with pytest.raises(ConfigError, match=r"'mine' is m of family f in build b: choose another alias"):
        add_model(layout, "mine", {**entry, "name": "other"})


def test_a_model_is_not_kept_when_the_evaluation_cannot_begin(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    entry = {"provider": "openai", "name": "m", "family": "f", "base_url": "http://localhost:1/v1"}
    for before in ({}, {"first": entry}):
        for alias in before:
            add_model(layout, alias, entry)
        with pytest.raises(ConfigError), adding(layout, "mine", entry):
            raise ConfigError("the family rule")
        assert "mine" not in all_models(layout) and set(before) <= set(all_models(layout))
    with adding(layout, "mine", entry):
        pass
    assert "mine" in all_models(layout)
