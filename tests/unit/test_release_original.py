"""The files of the published DEMO benchmark come in and go out as they are."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tasks.foundation.errors import SourceError, StoreError
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import open_views
from tasks.release.folder import write_original_release
from tasks.release.imports import import_original
from tasks.release.original import read_original
from tests.unit.evaluation_build import Bench, item

TALK = "Ada: The oven is broken.\nBen: I have a new one.\nAda: How much is it?\n"


def entry(kind: str, answer: Any, talk: str = TALK, **changes: Any) -> dict[str, Any]:
    plain = {
        "type": kind,
        "dialogue_hs": talk,
        "dataset_id": "d1",
        "instruction": f"Find the {kind}.",
        "answer": answer,
    }
    return plain | changes


PERSON = {
    "name": "Ada",
    "gender": "M/F",
    "big five": [["Openness", "High"], ["Neuroticism", "Low"]],
    "speaking style": "short",
    "hobby": "chess",
}
UTTERANCE = {"person": "Ben", "content": "I have a new one.", "intent": "to sell", "sentiment": "Positive"}
ITEMS = [
    entry("goal", {"goal": {"goal1": "mend it", "goal2": "sell one", "goal completion": 7, "reason": "half"}}),
    entry("persona", {"persona": {"participant1": PERSON, "participant2": PERSON | {"name": "Ben"}}}),
    entry("scene", {"scene": {"topic": "an oven", "familiarity": 4, "workflow": ["asks", "offers"]}}),
    entry("utterance", UTTERANCE),
    entry("utterance", UTTERANCE | {"content": "said nowhere"}),
]
EPISODE: dict[str, Any] = {
    "uuid": "e1",
    "person1": {"name": "Ada", "background": "A baker."},
    "person2": {"name": "Ben", "background": "Sells ovens."},
    "goal": ["mend it", "sell one"],
    "topic": "an oven",
    "combine": {
        "time": "morning",
        "location": "a bakery",
        "talkway": "phone call",
        "relationship": "customer and dealer",
        "familiarity": 10,
    },
}
ZH_ITEM = entry("goal", {"goal": {"goal1": "修好烤箱", "goal2": "卖出新的"}}, "安娜：烤箱坏了。\n小本：我这儿有新的。")
ZH_EPISODE = (
    EPISODE
    | {"uuid": "e2", "topic": "烤箱", "goal": ["修好烤箱", "卖出新的"]}
    | {"combine": EPISODE["combine"] | {"talkway": "电话"}}
)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    found = {
        "element_awareness_en.json": json.dumps(ITEMS),
        "element_awareness_zh.json": json.dumps([ZH_ITEM], ensure_ascii=False),
        "dialogue_agent_interaction_en.jsonl": json.dumps(EPISODE) + "\n",
        "dialogue_agent_interaction_zh.jsonl": json.dumps(ZH_EPISODE, ensure_ascii=False) + "\n",
    }
    for name, text in found.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: tmp_path / name for name in found}


def test_all_four_files_come_out_as_they_went_in(files: dict[str, Path], tmp_path: Path) -> None:
    layout = Layout(tmp_path / "artifacts")
    commit, imported = import_original(layout, list(files.values()), "published", "as published")
    assert {table: commit.rows(table) for table in commit.tables} == {"awareness_items": 6, "interaction_episodes": 2}
    assert not imported.ignored
    written = write_original_release(layout, "published", tmp_path / "out")
    assert written == {name: len(ITEMS) if name == "element_awareness_en.json" else 1 for name in written}
    for name, file in files.items():
        there, back = (path.read_text(encoding="utf-8") for path in (file, tmp_path / "out" / name))
        if name.endswith(".jsonl"):
            assert json.loads(there) == json.loads(back)
        else:
            assert sorted(json.loads(there), key=json.dumps) == sorted(json.loads(back), key=json.dumps)


def test_what_the_files_do_not_hold_is_null(files: dict[str, Path], tmp_path: Path) -> None:
    layout = Layout(tmp_path / "artifacts")
    import_original(layout, list(files.values()), "published", "as published")
    with open_views(layout, "published") as connection:
        turns = connection.execute(
            "select utterance_text, turn_index from awareness_items where task = 'utterance' order by 1"
        ).fetchall()
        episodes = connection.execute("select language, goal_type, familiarity from interaction_episodes").fetchall()
    assert turns == [("I have a new one.", 2), ("said nowhere", None)]
    assert sorted(episodes) == [("en", None, 10), ("zh", None, 10)]


def test_importing_again_adds_nothing_and_another_benchmark_needs_another_build(
    files: dict[str, Path], tmp_path: Path
) -> None:
    layout = Layout(tmp_path / "artifacts")
    first, _ = import_original(layout, list(files.values()), "published", "mine")
    again, _ = import_original(layout, list(reversed(files.values())), "published", "mine")
    assert first.fingerprint == again.fingerprint
    with pytest.raises(StoreError, match="holds other rows"):
        import_original(layout, [files["element_awareness_en.json"]], "published", "mine")


def test_equal_entries_stay_two_and_other_keys_are_named(tmp_path: Path) -> None:
    file = tmp_path / "some.json"
    file.write_text(json.dumps([ITEMS[0], ITEMS[0], ITEMS[1] | {"split": "x"}]), encoding="utf-8")
    imported = read_original([file])
    assert len({item.item_id for item in imported.items}) == 3
    assert imported.ignored == {"split": 1}
    assert {item.language for item in imported.items} == {"en"}


def test_an_answer_in_a_text_is_read_as_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "items_en.json"
    fenced = f"```json\n{json.dumps(ITEMS[0]['answer'])}\n```"
    file.write_text(json.dumps([ITEMS[0] | {"answer": fenced}]), encoding="utf-8")
    [item] = read_original([file]).items
    assert json.loads(item.gold)["goal"]["goal_completion"] == 7


def changed(**changes: Any) -> dict[str, Any]:
    return EPISODE | {"combine": EPISODE["combine"] | changes}


@pytest.mark.parametrize(("said", "level"), [(10, 10), ("10", 10), ("8 (family)", 8), (0, 0), (4.0, 4)])
def test_familiarity_is_the_whole_number(tmp_path: Path, said: Any, level: int) -> None:
    file = tmp_path / "episodes_en.jsonl"
    file.write_text(json.dumps(changed(familiarity=said)), encoding="utf-8")
    assert read_original([file]).episodes[0].familiarity == level


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "found none"),
        ("{", "expected a JSON list"),
        ("[3]", "entry 1: expected an object"),
        (json.dumps([ITEMS[0], {"type": "goal"}]), "entry 2, dialogue_hs"),
        (json.dumps([ITEMS[0] | {"type": "mood"}]), "entry 1, type"),
        (json.dumps([ITEMS[3] | {"answer": {"intent": "x"}}]), "expected the utterance in answer.content"),
        (json.dumps(changed(familiarity="close")), "whole number from 0 to 10"),
        (json.dumps(changed(familiarity=11)), "whole number from 0 to 10"),
        (json.dumps(EPISODE | {"goal": ["one"]}), "entry 1, goal"),
        (json.dumps(EPISODE) + "\n" + json.dumps(EPISODE), "each episode once"),
        (json.dumps([entry("goal", {}, "Der Ofen ist schon wieder kaputt, und niemand kommt vorbei.")]), "--language"),
    ],
)
def test_what_is_none_of_their_entries_is_refused_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "odd.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SourceError, match=complaint):
        read_original([file])


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("task", ["goal", "persona", "scene", "utterance"])
def test_an_item_made_here_has_an_instruction_that_says_all(tmp_path: Path, task: str, language: str) -> None:
    bench = Bench(tmp_path)
    mine = item(task, "{}", language)
    asyncio.run(bench.give("curation", {"awareness_items": [mine]}))
    write_original_release(bench.workspace().layout, "b1", tmp_path / "out")
    [entry] = json.loads((tmp_path / "out" / f"element_awareness_{language}.json").read_text(encoding="utf-8"))
    assert mine.dialogue_text in entry["instruction"] and "{{" not in entry["instruction"]
    for field in ("goal1", "goal_completion") if task == "goal" else (("hobby",) if task == "persona" else ()):
        assert field in entry["instruction"].rpartition("</")[2], "the form of the answer comes after the dialogue"
