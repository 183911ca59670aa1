"""Training material that holds something of a benchmark is found, wherever it stands; other material is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tasks.foundation.errors import SourceError, StoreError
from tasks.foundation.store.layout import Layout
from tasks.foundation.tables import TABLES
from tasks.release.folder import read_manifest, write_release
from tasks.release.leaks import Leak, check_material
from tests.unit.evaluation_build import Bench, episode, item, persona, seed

TALK = (
    "Ada: The oven has been cold since Monday, and forty loaves are waiting.\nBen: I can send somebody on Thursday.\n"
    "Ada: Thursday is two days of bread.\nBen: Then tomorrow at five, before you open."
)
GESPRÄCH = "邵沐晴：烤箱从星期一就冷了，还有四十个面包等着烤。\n符薇薇：星期四可以派人过去看看，再早就没有人手了。"


def tables() -> dict[str, pa.Table]:
    items = [item("goal", "{}", dialogue_text=TALK), item("goal", "{}", "zh", dialogue_text=GESPRÄCH)]
    return {
        "awareness_items": TABLES["awareness_items"].arrow(items),
        "interaction_episodes": TABLES["interaction_episodes"].arrow([episode()]),
        "chat_seeds": TABLES["chat_seeds"].arrow([seed()]),
    }


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
    return path


def leaks(path: Path, *rows: Any) -> list[Leak]:
    return list(check_material(tables(), [write(path, *rows)]).leaks)


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (
            {"messages": [{"role": "user", "content": f"Read this dialogue.\n\n{TALK}\n\nWho wants what?"}]},
            "item_goal_en",
        ),
        ({"a": {"b": [["x", TALK.upper().replace(" ", "  ")]]}}, "item_goal_en"),
        ({"text": TALK.replace("Thursday", "Friday").replace("forty", "fifty")}, "item_goal_en"),
        ([GESPRÄCH.replace("\n", "")], "item_goal_zh"),
        ({"goals": "Decide whether to move the hives before winter."}, "seed_1"),
        ({"seed": "dialogue_1"}, "dialogue_1"),
    ],
    ids=["within a prompt", "deep, other case and spaces", "some words changed", "chinese", "goal", "id"],
)
def test_what_the_benchmark_holds_is_found_in_training_material(tmp_path: Path, row: Any, found: str) -> None:
    told = leaks(tmp_path / "m.jsonl", {"text": "Something else altogether, and long enough to be looked at."}, row)
    assert [leak.id for leak in told] == [found]
    assert told[0].where == "m.jsonl:2"
    assert (told[0].share is None) == (found == "dialogue_1")


@pytest.mark.parametrize(
    "row",
    [
        {"text": "Ben: I can send somebody on Thursday."},
        {"text": "Ada: The harvest is late, and forty baskets are waiting.\nBen: We can pick on Friday."},
        {"text": "Ada Keller", "topic": "a broken oven"},
        {"text": "星期四可以派人过去看看。"},
        {"text": "x" * 100_000},
    ],
    ids=["one line of it", "about as much", "names and short texts", "one line in chinese", "long"],
)
def test_what_is_merely_alike_is_no_leak(tmp_path: Path, row: Any) -> None:
    assert leaks(tmp_path / "m.jsonl", row) == []


def test_a_row_that_cannot_be_read_was_not_checked(tmp_path: Path) -> None:
    broken = tmp_path / "m.jsonl"
    broken.write_text('{"text": "fine"}\n{"text": \n')
    with pytest.raises(SourceError, match=r"m\.jsonl:2 cannot be read"):
        check_material(tables(), [broken])


async def test_a_release_is_refused_where_the_material_holds_it_and_says_so_where_not(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.give("personas", {"persona_candidates": [persona()]})
    await bench.give("chatseeds", {"chat_seeds": [seed()]})
    layout: Layout = bench.workspace().layout
    text = "How are bees kept over winter? In boxes, with straw around them."
    clean = write(tmp_path / "clean.jsonl", {"text": text})
    leaky = write(tmp_path / "leaky.jsonl", {"text": "decide whether to move the hives before winter"})
    with pytest.raises(StoreError, match=r"1 place that hold.* seed_1 \(chat_seeds\) in leaky\.jsonl:1, 100 %"):
        write_release(layout, "b1", tmp_path / "release", (), material=[clean, leaky])
    assert not (tmp_path / "release").exists()
    write_release(layout, "b1", tmp_path / "release", (), material=[clean])
    told = read_manifest(tmp_path / "release")["checked_against"]
    assert told == {"files": ["clean.jsonl"], "rows": 1, "texts": 1}
    assert "Held against training material (`clean.jsonl`; 1 rows, 1 texts)" in (
        tmp_path / "release" / "README.md"
    ).read_text(encoding="utf-8")
