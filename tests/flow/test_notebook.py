"""Colloquy from Python, as the notebook of the docs has it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows import colloquy
from tasks.foundation import ROOT
from tasks.foundation.errors import ConfigError, StoreError

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def test_the_notebook_runs_from_its_first_cell_to_its_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLOQUY_ARTIFACTS", str(tmp_path))
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(not cell["outputs"] for cell in cells if cell["cell_type"] == "code")
    found: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), found)  # the notebook's own code
    build: colloquy.Build = found["build"]
    assert build.board("demo")["target"].to_list() == ["scripted-c"]
    assert found["board"].height == 1 and found["board"]["nemotron_usa.empathy_weighted_n"].to_list() == [4]
    assert colloquy.list_builds() == ["notebook"] and colloquy.open_build().name == "notebook"
    assert build.table("chat_seeds").height == 8
    assert build.sql("select count(*) as n from chat_seeds")["n"].to_list() == [8]
    assert isinstance(build.table("metrics", ["metric", "value"]), pl.DataFrame)
    _recomputes(build)
    _refuses(build)


def _recomputes(build: colloquy.Build) -> None:
    """Every published number of the dimensions and of drift, in a line each."""
    dimensions = ("empathy", "persona_alignment", "anthropomorphic")
    means = ", ".join(f"avg({name}) as {name}" for name in dimensions)
    board = build.board("eyt-subjective")
    for row in build.sql(f"select pool, {means} from weighted(['scripted-a']) group by pool").iter_rows(named=True):
        for name in dimensions:
            assert board[f"{row['pool']}.{name}_weighted"].item() == pytest.approx(row[name], abs=1e-9)
    drift = build.sql("select pool, avg(drift_latent) as drift from drift() group by pool")
    published = build.board("eyt-objective")
    for pool, value in drift.iter_rows():
        assert published[f"{pool}.drift_latent"].item() == pytest.approx(value, abs=1e-9)


def _refuses(build: colloquy.Build) -> None:
    with pytest.raises(ConfigError, match="the nearest: metrics"):
        build.table("metrcs")
    with pytest.raises(ConfigError, match=r"a column of metrics .*'valeu'; the nearest: value"):
        build.table("metrics", ["valeu"])
    with pytest.raises(ConfigError, match="cannot be answered"):
        build.sql("select nothing from metrics")
    with pytest.raises(ConfigError, match="the nearest: disputes"):
        build.report("disputs")
    with pytest.raises(StoreError, match="'nix' does not exist; expected one of: notebook"):
        colloquy.open_build("nix")
    said = io.StringIO()
    with pytest.raises(colloquy.CommandFailed, match="exit code 2") as failed:
        build.evaluate("no-such-model", out=said)
    assert failed.value.code == 2 and "no-such-model" in str(failed.value) and "no-such-model" in said.getvalue()
