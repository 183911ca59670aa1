"""docs/own-data.md, followed to the letter: its files, its profile, and the two stages that read them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from flows import chain
from flows.chain.options import RunOptions
from tasks.foundation import ROOT
from tasks.foundation.llm.own_models import all_models
from tasks.foundation.run.context import Workspace
from tasks.foundation.settings.sections import SceneSource
from tasks.foundation.stage import Prepared, Stage
from tasks.foundation.store.layout import Layout
from tasks.personas.task import STAGE as PERSONAS
from tasks.scenes.readers import READERS, SourceDialogue
from tasks.scenes.task import STAGE as SCENES
from tests.unit.source_stages import FakeContext, rows_of

GUIDE = (ROOT / "docs" / "own-data.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(?:csv|json|yaml)\n(.*?)```", GUIDE, flags=re.S)
FILES = ("mine/people.csv", "mine/talks.jsonl", "mine/mine.yaml")


@pytest.fixture
def profile(tmp_path: Path) -> str:
    """The path of the profile, beside the other two files, in a folder of its own instead of the checkout's."""
    (tmp_path / "mine").mkdir()
    blocks = [block for block in BLOCKS if not block.startswith("models:")]
    for name, text in zip(FILES, blocks, strict=True):
        assert f"`{name}`" in GUIDE
        (tmp_path / name).write_text(text.replace("path: mine/", f"path: {tmp_path}/mine/"), encoding="utf-8")
    return str(tmp_path / "mine" / "mine.yaml")


def prepared(stage: Stage, profile: str) -> tuple[FakeContext, Prepared]:
    context = FakeContext(stage, profile=profile)
    stage.check(context)
    return context, stage.prepare(context)


def test_its_personas_are_read(profile: str) -> None:
    context, made = prepared(PERSONAS, profile)
    context.add(made.rows)
    found = context.made("persona_candidates").sort("source_key")
    assert found.select("source_key", "age", "city").rows() == [
        *(("p1", 34, "Lisbon"), ("p2", 41, "Brno"), ("p3", 58, "Turin"))
    ]
    assert len(rows_of(made.rows["persona_pool"])) == 3
    assert (made.accounting.n_in, made.accounting.n_produced) == (3, 3)


def test_its_dialogues_are_read(profile: str) -> None:
    context, made = prepared(SCENES, profile)
    context.add(made.rows)
    seeds = context.made("seed_dialogues")
    assert seeds["turn_count"].to_list() == [4, 4]
    assert not made.accounting.failed and not made.accounting.filtered


def test_its_profile_names_models_that_are_there_and_families_that_may_judge(
    profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace.open(profile, layout=Layout(tmp_path / "artifacts"))
    monkeypatch.chdir(tmp_path)
    settled = chain.settled(RunOptions(profile="mine/mine.yaml", build="first"), Layout(tmp_path / "artifacts"))
    monkeypatch.setenv("COLLOQUY_PROFILE", "mine/mine.yaml")
    usual = chain.settled(RunOptions(build="first"), Layout(tmp_path / "artifacts"))
    assert settled.profile == usual.profile == profile
    assert workspace.settings.judging.judges == ["gemini-3.1-pro-thinking"]


def test_its_entry_for_a_model_of_ones_own_is_one(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    (entry,) = (block for block in BLOCKS if block.startswith("models:"))
    (tmp_path / "models.yaml").write_text(entry, encoding="utf-8")
    assert all_models(layout)["house-writer"].family == "llama"


def dialogues_of(source: SceneSource) -> list[SourceDialogue]:
    rows, parse = READERS[source.reader](source)
    return [parse(row) for row in rows]


def test_its_rows_of_common_shapes_are_recognised(tmp_path: Path) -> None:
    (lines,) = re.findall(r"```jsonl\n(.*?)```", GUIDE, flags=re.S)
    named = re.findall(r"`(\w+)`", GUIDE.partition("a row of ")[2].partition("```")[0])
    assert len(named) == len(lines.splitlines()) == 6
    for name, line in zip(named, lines.splitlines(), strict=True):
        (tmp_path / "row.jsonl").write_text(line, encoding="utf-8")
        path = str(tmp_path / "row.jsonl")
        for shape in (None, name):
            (found,) = dialogues_of(SceneSource(corpus="x", path=path, shape=shape))
            assert len(found.texts) == 3
            assert len(set(found.speakers)) == 2


def test_its_rows_of_utterances_and_its_mapping_are_read(tmp_path: Path) -> None:
    utterances, source, rows = re.findall(r"```text\n(.*?)```", GUIDE, flags=re.S)
    (tmp_path / "rows.csv").write_text(utterances, encoding="utf-8")
    (tmp_path / "calls.json").write_text(rows, encoding="utf-8")
    settings = yaml.safe_load(source.replace("mine/", f"{tmp_path}/"))
    for each in (SceneSource(corpus="x", path=str(tmp_path / "rows.csv")), SceneSource.model_validate(settings)):
        (found,) = dialogues_of(each)
        assert (len(found.texts), len(set(found.speakers))) == (3, 2)
