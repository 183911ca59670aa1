"""The last step of the personas stage: near-duplicate characters go, also where failed ones are designed later."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tasks.foundation.errors import ModelError
from tasks.foundation.llm.request import ProviderCall
from tasks.foundation.run import stage_run as stage_run_module
from tasks.foundation.run.context import Workspace
from tasks.foundation.run.stage_run import StageRun
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.store.commits import Commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import read_part
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.personas import Character
from tasks.foundation.texts.word_encoder import WordEncoder
from tasks.personas.characters import measure_coverage, pool_values
from tasks.personas.task import STAGE, written_of
from tests.fakes.scripted import ScriptedProvider
from tests.unit.dialogue_rows import character
from tests.unit.source_stages import FakeContext

LIVES = {
    "kites": "Sold kites on a windy beach until the shop closed.",
    "ferry": "Steered a ferry at night and learned to love fog.",
    "owls": "Keeps seven owls and a broken telescope upstairs.",
    "kite again": "sold kites on the windy beach until the shop closed",
}


def life(number: int, background: str, language: str = "en") -> Character:
    words = dict.fromkeys(("hobby", "education", "occupation", "culture", "relationship", "speaking_style"), "x")
    return character(number, language, background=background, **words)


def test_a_character_near_another_goes_whatever_its_name_and_is_named_with_the_kept_one() -> None:
    context = FakeContext(STAGE)
    drafts = [life(number, text) for number, text in enumerate(LIVES.values())]
    context.add({"character_drafts": drafts})
    assert STAGE.finish is not None
    finished = STAGE.finish(context)
    (duplicate,) = finished.rows["duplicates"]
    assert {duplicate.row_id, duplicate.duplicate_of} == {drafts[0].character_id, drafts[3].character_id}  # type: ignore[attr-defined]
    assert duplicate.table_name == "characters" and finished.filtered == {"duplicate": 1}  # type: ignore[attr-defined]
    assert len(finished.rows["characters"]) == 3


def test_characters_of_two_languages_are_never_held_against_each_other() -> None:
    context = FakeContext(STAGE)
    context.add({"character_drafts": [life(1, LIVES["owls"]), life(1, LIVES["owls"], "zh")]})
    assert STAGE.finish is not None
    assert STAGE.finish(context).filtered == {}


def test_names_and_drawn_attributes_are_not_compared() -> None:
    one, other = character(1), character(2, gender="M", age=70, age_band="Advanced age", moral_values=["fairness"])
    assert one.name != other.name and written_of(one.model_dump()) == written_of(other.model_dump())
    assert one.name not in written_of(one.model_dump())


def test_coverage_is_the_share_of_the_attribute_pool_that_occurs() -> None:
    # 2 genders, 7 age bands, 5 traits × 2 levels, 28 labels.
    assert len(pool_values()) == 2 + 7 + 10 + len(taxonomy("attributes").labels) == 47
    # One character: gender, band, 5 levels, a moral and a personal value, style, skill.
    people = [character(1).model_dump(), character(2, gender="M").model_dump()]
    row = measure_coverage(people[:1], "en")
    assert (row.value, row.n, row.n_of) == (11 / 47, 1, 47)
    assert measure_coverage(people, "en").value == 12 / 47
    assert measure_coverage([], "zh").value is None


class Designer:
    """Designs each character from the text it is inspired by; its provider is down for some texts."""

    def __init__(self) -> None:
        self.down: set[str] = set()

    def __call__(self, call: ProviderCall) -> str:
        shown = call.messages[-1].content
        text = max((text for text in LIVES if f"\n{text}\n" in shown), key=len)
        if text in self.down:
            raise ModelError("server", "the provider is down")
        sketch = dict.fromkeys(("hobby", "education", "occupation", "culture", "relationship", "speaking_style"), "x")
        return json.dumps({"background": LIVES[text], **sketch})


@pytest.fixture
def designer(monkeypatch: pytest.MonkeyPatch) -> Designer:
    designer, engine = Designer(), stage_run_module.Engine

    def with_designer(*args: Any, **kwargs: Any) -> Any:
        return engine(*args, **{**kwargs, "providers": {"scripted": ScriptedProvider(designer)}})

    monkeypatch.setattr(stage_run_module, "Engine", with_designer)
    return designer


def workspace(tmp_path: Path) -> Workspace:
    texts = tmp_path / "lives.txt"
    texts.write_text("\n".join(LIVES), encoding="utf-8")
    found = Workspace.open(
        "test",
        (
            "personas.sources=[]",
            f"personas.inspirations=[{{path: {texts}, language: en}}]",
            f"personas.characters={{en: {len(LIVES)}, zh: 0}}",
            "llm.retry_attempts=1",
            "llm.salvage_rounds=0",
        ),
        Layout(tmp_path / "artifacts"),
    )
    found._encoder = WordEncoder()
    return found


async def run(workspace: Workspace, build: str) -> Commit:
    with StageRun.open(STAGE, workspace, build) as stage_run:
        try:
            assert not stage_run.up_to_date
            stage_run.prepare()
            for shard in stage_run.shards:
                await stage_run.work(shard)
            return stage_run.commit()
        finally:
            await stage_run.close()


def ids(workspace: Workspace, commit: Commit) -> list[str]:
    parts = [read_part(workspace.layout.root / part.path, TABLES["characters"]) for part in commit.tables["characters"]]
    return sorted(name for part in parts for name in part["character_id"].to_pylist())


def test_a_redo_of_failed_rows_decides_anew_and_ends_as_if_none_had_failed(tmp_path: Path, designer: Designer) -> None:
    at_work = workspace(tmp_path)
    whole = asyncio.run(run(at_work, "whole"))
    kept = ids(at_work, whole)
    assert len(kept) == 3 and not whole.partial and whole.accounting.filtered == {"duplicate": 1}
    for down in ("kites", "kite again"):
        designer.down = {down}
        (tmp_path / down).mkdir()
        at_work = workspace(tmp_path / down)
        partial = asyncio.run(run(at_work, "b1"))
        assert partial.partial and len(ids(at_work, partial)) == 3 and not partial.accounting.filtered
        designer.down = set()
        again = asyncio.run(run(at_work, "b1"))
        assert (again.revision, again.partial) == (1, False)
        assert ids(at_work, again) == kept and again.accounting == whole.accounting
