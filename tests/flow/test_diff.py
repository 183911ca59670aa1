"""Two builds side by side, as `colloquy diff` shows them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows import colloquy
from tasks.foundation import ROOT
from tests.whole_stage import run_chain


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A build, one that was judged otherwise, and one with longer conversations for other seeds."""
    root = tmp_path_factory.mktemp("builds")
    builds = {
        "one": [],
        "judged": ["judging.temperature=0.3"],
        "longer": ["conversation.max_turns=6", "chatseeds.per_pool=4"],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLLOQUY_ARTIFACTS", str(root))
        for name, settings in builds.items():
            given = [part for each in ("run.benchmark=eyt", *settings) for part in ("--set", each)]
            asyncio.run(run_chain(["--profile", "test", "--build", name, *given]))
    yield root


def diff(root: Path, a: str, b: str) -> dict[str, list[dict[str, Any]]]:
    program = [sys.executable, "-m", "flows.cli.main", "diff", a, b, "--format", "json"]
    environment = {**os.environ, "COLLOQUY_ARTIFACTS": str(root)}
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    return found


def test_a_build_differs_from_itself_in_nothing(root: Path) -> None:
    found = diff(root, "one", "one")
    assert not any(found[part] for part in ("stages", "settings", "prompts", "rows"))
    assert found["metrics"] and not any(one["difference"] for one in found["metrics"])


def test_what_differs_is_told_from_the_setting_to_the_row(root: Path) -> None:
    found = diff(root, "one", "judged")
    assert [(one["run"], one["components"]) for one in found["stages"]] == [("judging@scripted-a", ["settings"])]
    assert found["settings"] == [{"setting": "judging.temperature", "a": 0.0, "b": 0.3}]
    assert not found["rows"], "a scripted judge says the same at any temperature"


def test_metrics_are_paired_over_what_both_have(root: Path) -> None:
    found = diff(root, "one", "longer")
    assert {one["setting"] for one in found["settings"]} == {"conversation.max_turns", "chatseeds.per_pool"}
    rows = {one["table"]: one for one in found["rows"]}
    assert rows["chat_seeds"]["only_b"] == 2 and rows["chat_seeds"]["only_a"] == 0
    one, longer = (colloquy.open_build(name, root) for name in ("one", "longer"))
    shared = one.table("chat_seeds", ["chat_seed_id"]).join(longer.table("chat_seeds"), on="chat_seed_id", how="semi")
    drift = [
        build.sql("select chat_seed_id, drift_latent from drift() join conversations using (conversation_id)").join(
            shared, on="chat_seed_id", how="semi"
        )
        for build in (one, longer)
    ]
    pools = one.table("chat_seeds", ["chat_seed_id", "pool"])
    both = drift[0].join(drift[1], on="chat_seed_id").join(pools, on="chat_seed_id")
    means = both.group_by("pool").agg((pl.col("drift_latent") - pl.col("drift_latent_right")).mean())
    (told,) = [row for row in found["metrics"] if row["metric"] == "drift_latent"]
    assert told["n"] == both.height
    assert told["difference"] == pytest.approx(means["drift_latent"].mean(), abs=1e-9)
