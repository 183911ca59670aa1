"""A stage is added as CONTRIBUTING says, in a copy of the checkout, and runs like any other."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tasks.foundation.store.layout import Layout
from tasks.foundation.tables.scenes import Scene
from tests.flow.conftest import PrefectServer
from tests.recipes import Checkout, blocks_of
from tests.unit.evaluation_build import Bench

pytestmark = pytest.mark.flow

LINES = ["python", "-m", "pytest", "-q", "tests/contract/test_stages.py"][1:]


async def test_a_stage_that_is_added_by_the_recipe_runs_and_its_rows_can_be_asked(
    tmp_path: Path, prefect_server: PrefectServer
) -> None:
    bench = Bench(tmp_path)
    await bench.give("scenes", {"scenes": [scene("one", "to win", "to lose it"), scene("two", "to rest", "to run")]})
    checkout = Checkout(
        tmp_path / "checkout",
        {**prefect_server.environment, "COLLOQUY_ARTIFACTS": str(Layout(tmp_path / "artifacts").root)},
    )
    for block in (*blocks_of("Add a table"), *blocks_of("Add a stage")):
        checkout.write(block)
    checkout.python("-m", "tasks.foundation.tables.dictionary")

    told = checkout.python(*LINES)
    assert told.returncode == 1, told.stdout + told.stderr
    missing = told.stdout.partition("missing are\n\n")[2].partition("\n===")[0]
    for text in missing.partition("\n____")[0].split("\n\n"):
        checkout.write(text)
    whole = checkout.python(*LINES, "tests/contract/test_tables.py::test_the_data_dictionary_is_the_registry")
    assert whole.returncode == 0, whole.stdout

    run = checkout.python("-m", "flows.cli.main", "run", "--profile", "test", "--build", "b1", "--only", "lengths")
    assert run.returncode == 0, run.stdout + run.stderr
    query = "select scene_id, length from scene_lengths order by all"
    asked = checkout.python("-m", "flows.cli.main", "sql", query, "--build", "b1", "--format", "csv")
    assert list(csv.reader(io.StringIO(asked.stdout))) == [["scene_id", "length"], ["one", "5"], ["two", "4"]]


def scene(scene_id: str, goal1: str, goal2: str) -> Scene:
    texts = dict.fromkeys(("goal_type", "time", "location", "topic", "atmosphere", "domain"), "any")
    return Scene(scene_id=scene_id, seed_id="seed", language="en", goal1=goal1, goal2=goal2, **texts)
