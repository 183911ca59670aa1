"""A stage that draws on: rounds, kills within and between them, redo of what failed; real Parquet and engine."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.foundation.errors import ModelError, StoreError
from tasks.foundation.llm.request import ProviderCall
from tasks.foundation.run import files
from tasks.foundation.run import stage_run as stage_run_module
from tasks.foundation.run.context import Workspace
from tasks.foundation.run.files import round_label
from tasks.foundation.run.stage_run import StageRun
from tasks.foundation.settings import Settings
from tasks.foundation.stage import DrawOn, Prepared, StageContext
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.store.commits import Commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.tables.scenes import Pairing
from tests.fakes.scripted import ScriptedProvider
from tests.unit.echo_stage import KEYS
from tests.unit.echo_stage import STAGE as ECHO

ENOUGH = 12
"""Good topics that the stage wants; every third row's is good, so 36 rows are drawn."""
QUIET = ("llm.retry_attempts=1", "llm.retry_base_seconds=0", "llm.salvage_rounds=0", "curation.max_failure_rate=1.0")


def _rows(numbers: range) -> Prepared:
    keys = [f"row{number:02d}" for number in numbers]
    pairings = [
        Pairing(pairing_id=key, scene_id="s", character1_id="a", character2_id="b", language="en") for key in keys
    ]
    return Prepared(keys, {"pairings": pairings}, Accounting(1, 0, {"refused": 1}))


def draw(context: StageContext, number: int) -> Prepared | None:
    """As many rows as there are good topics too few."""
    topics = context.made("notes")["topic"].to_list()
    lacking = ENOUGH - sum(topic.startswith("good") for topic in topics)
    drawn = context.made("pairings").height
    assert (number == 1) == (drawn == len(KEYS)), "a round sees all rows of those before it, and no others"
    return _rows(range(drawn, drawn + lacking)) if lacking > 0 else None


def most(settings: Settings) -> int:
    return 99


STAGE = dataclasses.replace(ECHO, draw_on=DrawOn(draw, "good", most), finish=None, finished=())


class Model:
    """Finds every third row good; counts its calls."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.failing: set[int] = set()

    def __call__(self, call: ProviderCall) -> str:
        number = int(call.messages[0].content.split("row")[1][:2])
        self.asked.append(number)
        if number in self.failing:
            raise ModelError("server", "down")
        return json.dumps({"topic": f"{'bad' if number % 3 else 'good'} {number}"})


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    model = Model()
    monkeypatch.setattr(stage_run_module, "rebuild_views", lambda layout: None)
    engine = stage_run_module.Engine
    monkeypatch.setattr(
        stage_run_module,
        "Engine",
        lambda *args, **named: engine(*args, **{**named, "providers": {"scripted": ScriptedProvider(model)}}),
    )
    return model


@pytest.fixture
def workspace_of(tmp_path: Path) -> Callable[..., Workspace]:
    def make(*overrides: str, folder: str = "artifacts") -> Workspace:
        return Workspace.open("test", ("curation.shard_rows=4", *QUIET, *overrides), Layout(tmp_path / folder))

    return make


class Killed(BaseException):
    """As if the process had been killed there."""


async def run(workspace: Workspace, *, steps: int = 1000) -> Commit | None:
    """One run of the stage; after so many shards and draws it ends as if killed."""
    left = iter(range(steps))

    def step() -> None:
        if next(left, None) is None:
            raise Killed

    with StageRun.open(STAGE, workspace, "b1") as stage_run:
        try:
            if stage_run.up_to_date:
                return None
            stage_run.prepare()
            shards = stage_run.shards
            while shards:
                for shard in shards:
                    step()
                    await stage_run.work(shard)
                step()
                shards = stage_run.draw_on()
            return stage_run.commit()
        finally:
            await stage_run.close()
            workspace.close()


def hashes(commit: Commit | None) -> dict[str, str]:
    assert commit is not None
    return {table: commit.table_hash(table) for table in ("pairings", "replies", "rejects", "duplicates")}


async def test_rounds_are_drawn_until_there_are_enough_and_all_rows_are_accounted_for(
    model: Model, workspace_of: Any
) -> None:
    commit = await run(workspace_of())
    assert commit is not None
    n_rounds = sum(part.label.startswith("draw") for part in commit.tables["pairings"])
    assert n_rounds >= 3
    assert sorted(model.asked) == list(range(34)), "row33 is the twelfth good one"
    assert commit.rows("pairings") == 34
    assert commit.accounting.n_in == 34 + 2 + n_rounds and commit.accounting.filtered["refused"] == n_rounds


async def test_what_comes_out_depends_neither_on_shards_nor_on_how_many_rows_are_under_way(
    model: Model, workspace_of: Any
) -> None:
    first = await run(workspace_of())
    second = await run(workspace_of("curation.shard_rows=3", "run.rows_in_flight=7", folder="elsewhere"))
    assert hashes(first) == hashes(second)


async def test_a_run_that_is_killed_after_every_step_loses_and_repeats_nothing(model: Model, workspace_of: Any) -> None:
    whole = await run(workspace_of())
    asked, model.asked = model.asked, []
    for steps in range(100):
        try:
            commit = await run(workspace_of(folder="elsewhere"), steps=steps)
        except Killed:
            continue
        break
    assert sorted(model.asked) == sorted(asked)
    assert hashes(commit) == hashes(whole)


@pytest.mark.parametrize("place", ["write_part", "write_text"])
async def test_a_kill_while_a_round_is_written_down_repeats_it(
    model: Model, workspace_of: Any, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    whole = await run(workspace_of())
    original = getattr(files, place)
    killed: list[int] = []

    def until_killed(*arguments: Any) -> None:
        is_round = any(round_label(2) in str(each) or '"rounds": [3, ' in str(each) for each in arguments)
        if is_round and not killed:
            killed.append(1)
            raise Killed
        original(*arguments)

    monkeypatch.setattr(files, place, until_killed)
    model.asked = []
    with pytest.raises(Killed):
        await run(workspace_of(folder="elsewhere"))
    assert hashes(await run(workspace_of(folder="elsewhere"))) == hashes(whole)
    assert sorted(model.asked) == list(range(34))


async def test_a_round_whose_rows_are_gone_is_made_again_from_what_there_was_when_it_was_drawn(
    model: Model, workspace_of: Any
) -> None:
    whole = await run(workspace_of())
    with pytest.raises(Killed):
        await run(workspace := workspace_of(folder="elsewhere"), steps=12)
    for lost in [*workspace.layout.root.rglob(f"*{round_label(1)}*")]:
        lost.unlink()
    assert hashes(await run(workspace_of(folder="elsewhere"))) == hashes(whole)


async def test_a_redo_of_failed_rows_obeys_the_rounds_that_were_drawn(model: Model, workspace_of: Any) -> None:
    model.failing = {3, 21}
    first = await run(workspace_of())
    assert first is not None and first.partial
    assert max(model.asked) == 39, "two good ones are missing, so two more are drawn for"
    model.failing, model.asked = set(), []
    second = await run(workspace_of())
    assert second is not None and not second.partial
    assert sorted(model.asked) == [3, 21], "none is drawn on, though there are more now than are wanted"
    assert second.table_hash("pairings") == first.table_hash("pairings")


async def test_a_run_that_has_not_drawn_on_is_not_committed(model: Model, workspace_of: Any) -> None:
    with StageRun.open(STAGE, workspace_of(), "b1") as stage_run:
        stage_run.prepare()
        for shard in stage_run.shards:
            await stage_run.work(shard)
        with pytest.raises(StoreError, match="draw_on comes before commit"):
            stage_run.commit()
        await stage_run.close()
