"""The metrics stage through a real run: store, commit, views, and what makes it stale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tasks.foundation import ROOT
from tasks.foundation.run.context import Workspace
from tasks.foundation.run.stage_run import StageRun
from tasks.foundation.stage import Prepared, Stage, StageContext
from tasks.foundation.store.layout import Layout
from tasks.foundation.tables import TABLES
from tasks.metrics.task import STAGE
from tests.unit.test_metrics_study import Encoder, planted

MADE = ("chat_seeds", "conversations", "conversation_turns", "turn_judgements", "final_intent_judgements")


class Fingerprinted(Encoder):
    name, precision = "planted", "float32"
    fingerprint = "planted"


def made_elsewhere(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> Stage:
    """A stage that writes the planted rows, in the place of conversation and judging."""

    def prepare(context: StageContext) -> Prepared:
        models = {name: [TABLES[name].row.model_validate(row) for row in rows[name]] for name in MADE}
        return Prepared(items=[], rows=models)

    return Stage(name="curation", reads=(), prepare=prepare, prepared=MADE)


def workspace_of(folder: Path, *overrides: str) -> Workspace:
    workspace = Workspace.open("test", ("metrics.resamples=50", *overrides), Layout(folder / "artifacts"))
    workspace._encoder = Fingerprinted()  # type: ignore[assignment]
    return workspace


def run(stage: Stage, workspace: Workspace, member: str | None = None) -> str:
    """Runs a stage of build b; returns what there was to do."""
    with StageRun.open(stage, workspace, "b", member, ends_chain=True) as found:
        if not found.up_to_date:
            found.prepare()
            found.commit()
        return found.decision


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run(made_elsewhere(planted()), workspace_of(tmp_path))
    return tmp_path


def test_a_build_of_half_a_benchmark_is_scored_and_queried(folder: Path) -> None:
    assert run(STAGE, workspace_of(folder)) == "run"
    with duckdb.connect(str(folder / "artifacts" / "colloquy.duckdb"), read_only=True) as connection:
        query = "select value from metrics where metric = 'latent_accuracy' and target = 'bob' and pool is null \
            and language is null and simulator is null and slice is null"
        assert connection.execute(query).fetchall() == [(pytest.approx((7 / 26 + 7 / 28) / 2),)]
        direct = "select avg(coalesce(predicted_latent = gold_latent, false)::int) as share \
            from conversation_turns t join conversations c using (conversation_id) where target = 'bob' group by pool"
        both = connection.execute(f"select avg(share) from ({direct})").fetchall()
        assert both == [(pytest.approx((7 / 26 + 7 / 28) / 2),)]


def test_metrics_run_again_when_the_panel_or_alpha_changes_and_only_then(folder: Path) -> None:
    assert run(STAGE, workspace_of(folder)) == "run"
    assert run(STAGE, workspace_of(folder)) == "up to date"
    assert run(STAGE, workspace_of(folder, "judging.judges=[scripted-a,scripted-b]")) == "run"
    assert run(STAGE, workspace_of(folder, "metrics.alpha=0.15")) == "run"
    assert run(STAGE, workspace_of(folder, "judging.temperature=0.5", "metrics.alpha=0.15")) == "up to date"


def test_metrics_run_again_when_a_model_of_the_build_is_said_to_be_another_and_only_then(folder: Path) -> None:
    assert run(STAGE, workspace_of(folder)) in ("run", "up to date")
    workspace = workspace_of(folder)
    workspace.models["new"] = replace(workspace.models["scripted-a"], alias="new")
    assert run(STAGE, workspace) == "up to date"
    workspace.models["scripted-a"] = replace(workspace.models["scripted-a"], family="z")
    assert run(STAGE, workspace) == "run"


def held_with(target: str) -> Stage:
    """The conversation stage of a target of which infrastructure took every conversation."""
    tables = ("conversations", "conversation_turns")
    return Stage(
        name="conversation",
        reads=(),
        prepare=lambda context: Prepared(items=[], rows={name: [] for name in tables}),
        prepared=tables,
        fan_out="targets",
        roles=lambda settings: {"targets": [target]},
    )


def test_a_target_of_which_nothing_is_left_is_found_by_its_commit(folder: Path) -> None:
    """It has a row in metrics, in the report of faults and on the board, and metrics runs again for it."""
    assert run(STAGE, workspace_of(folder)) == "run"
    assert run(held_with("scripted-c"), workspace_of(folder), "scripted-c") == "run"
    assert run(STAGE, workspace_of(folder)) == "run"
    assert run(STAGE, workspace_of(folder)) == "up to date"
    with duckdb.connect(str(folder / "artifacts" / "colloquy.duckdb"), read_only=True) as connection:
        faults = (ROOT / "sql" / "reports" / "faults.sql").read_text(encoding="utf-8")
        lost = connection.execute(f"select pool, fault, simulations from ({faults}) where target = 'scripted-c'")
        assert lost.fetchall() == [("p1", "infra", 7), ("p2", "infra", 7)]
        board = (ROOT / "sql" / "reports" / "eyt_leaderboard.sql").read_text(encoding="utf-8")
        found = connection.execute(
            f"select value, units, units_void, is_best, rank from ({board}) where target = 'scripted-c' \
                and metric = 'satisfaction' and pool = 'all' and language = 'all'"
        )
        assert found.fetchall() == [(None, 14, 14, False, None)]
