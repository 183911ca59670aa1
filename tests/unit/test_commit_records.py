"""A commit record is data: what it names is checked before a file is opened for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.foundation.errors import StoreError
from tasks.foundation.store.commits import commits_of, read_commit, write_commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import PartFile
from tests.unit.bare_commits import bare_commit

GOOD = {"path": f"store/scenes/build=b1/{'f' * 16}/part-00000.parquet", "rows": 1, "hash": "0" * 64, "label": "00000"}


def part(**changes: Any) -> dict[str, Any]:
    return {"tables": {"scenes": [{**GOOD, **changes}]}}


def commit_with(layout: Layout, change: dict[str, Any]) -> None:
    write_commit(layout, bare_commit("b1", "scenes", tables={"scenes": (PartFile(**GOOD),)}))
    path = layout.commit("b1", "scenes")
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")


def test_a_record_as_it_is_written_is_read(tmp_path: Path) -> None:
    commit_with(Layout(tmp_path), {})
    assert commits_of(Layout(tmp_path), "b1")["scenes"].tables["scenes"] == (PartFile(**GOOD),)


@pytest.mark.parametrize(
    "change",
    [
        part(path="/etc/passwd"),
        part(path="store/scenes/build=b1/../../../../../etc/part-0.parquet"),
        part(path="store/scenes/build=b2/ffff/part-00000.parquet"),
        part(path="store/rejects/build=b1/ffff/part-00000.parquet"),
        part(path="store/scenes/build=b1/ffff/part-00000.parquet\n"),
        part(path="store/scenes/build=b1/ffff/part-0' or 1.parquet"),
        part(path="store/scenes/build=b1/ffff/part-∕.parquet"),
        part(path=["store"]),
        part(rows="1"),
        part(rows=-1),
        part(rows=1e300),
        part(hash="../" + "0" * 61),
        part(label="../0"),
        part(more=1),
        {"tables": {"sce'nes": []}},
        {"tables": {"../scenes": []}},
        {"tables": [1]},
        {"drafts": {"notes": [GOOD]}},
        {"build": "b2"},
        {"build": "../b1"},
        {"stage": "voting"},
        {"stage": "../scenes"},
        {"member": "m"},
        {"fingerprint": "../x"},
        {"revision": True},
        {"partial": "no"},
        {"parents": {"scenes": "12"}},
        {"ended_at": "never"},
        {"ended_at": "2026-11-01T10:00:00"},
        {"ended_at": "9999-12-31T20:00:00-14:00"},
        {"started_at": "0001-01-01T00:00:00+00:01"},
        {"accounting": {}},
        {"record": {"profile": 5}},
        {"record": {"overrides": "scenes.sample=1"}},
        {"record": {"models": 5}},
        {"record": {"settings": {"run": None}}},
        {"record": {"sources": ["soda"]}},
        {"record": {"plan_revision": "../0"}},
    ],
    ids=str,
)
def test_a_record_that_names_what_is_not_its_own_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    commit_with(Layout(tmp_path), change)
    with pytest.raises(StoreError, match=r"scenes\.json cannot be read"):
        read_commit(Layout(tmp_path), "b1", "scenes")


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100_000, '{"build": NaN}', "\udcff"])
def test_a_record_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = Layout(tmp_path).commit("b1", "scenes")
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(StoreError, match=r"scenes\.json cannot be read"):
        commits_of(Layout(tmp_path), "b1")
