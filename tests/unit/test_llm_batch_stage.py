"""A stage in batch mode, from its settings to its commit, against a local batch server."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from tasks.foundation.errors import ConfigError
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.run.context import Workspace
from tasks.foundation.run.stage_run import StageRun
from tasks.foundation.store.commits import Commit
from tasks.foundation.store.layout import Layout
from tests.fakes.batch_servers import KEY, BatchServer, OpenAIServer, serving
from tests.unit.echo_stage import KEYS, STAGE
from tests.whole_stage import run_whole

SCENES = dataclasses.replace(STAGE, name="scenes")
IN_BATCHES = ("scenes.shard_rows=4", "llm.batch.requests_per_job=100", "llm.batch.gather_seconds=0.1")


def workspace_in(folder: Path, server: BatchServer, mode: str, **changes: Any) -> Workspace:
    overrides = (*IN_BATCHES, "llm.batch.poll_seconds=0.01", f"scenes.mode={mode}")
    workspace = Workspace.open("test", overrides, Layout(folder))
    url = f"{server.url}/v1"
    model = ModelSpec("scripted-a", "openai", "gpt-x", "gpt", base_url=url, api_key_env="STUB_KEY", batch=True)
    workspace.models = {**workspace.models, "scripted-a": dataclasses.replace(model, **changes)}
    return workspace


async def run(workspace: Workspace) -> Commit:
    return await run_whole(SCENES, workspace)


async def test_a_stage_gives_the_same_commit_live_and_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", KEY)
    topic = lambda message: json.dumps({"topic": next(key for key in KEYS if key in message)})  # noqa: E731
    async with serving(OpenAIServer(reply=topic)) as server:
        live = await run(workspace_in(tmp_path / "live", server, "live"))
        batched = await run(workspace_in(tmp_path / "batch", server, "batch"))
        assert server.sizes == [len(KEYS)] and not server.paid_twice
        assert len(server.live_bodies) == len(KEYS)
    assert batched.fingerprint == live.fingerprint
    assert batched.table_hash("scenes") == live.table_hash("scenes")
    assert batched.rows("llm_calls") == live.rows("llm_calls") == len(KEYS)


def test_a_stage_in_batch_mode_needs_models_with_a_batch_api(tmp_path: Path) -> None:
    workspace = workspace_in(tmp_path, OpenAIServer(url="http://nowhere"), "batch", batch=False)
    with pytest.raises(ConfigError, match=r"mode: batch of stage scenes: .* found 'scripted-a' without one"):
        StageRun.open(SCENES, workspace, "b1")
    workspace.close()
