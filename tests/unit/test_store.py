"""Parts, hashes, commits and locks on real files."""

from __future__ import annotations

import multiprocessing
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.errors import BuildBusy, ConfigError, StoreError, TableError
from tasks.foundation.run.files import deal
from tasks.foundation.store.files import write_text
from tasks.foundation.store.layout import Layout, build_name
from tasks.foundation.store.locks import at_work, lock
from tasks.foundation.store.parts import content_hash, describe_part, open_part, read_part, sum_hashes, write_part
from tasks.foundation.tables import TABLES

POOL = TABLES["persona_pool"]


def pool(ranks: list[int]) -> pa.Table:
    return POOL.arrow([{"pool": "p", "rank": r, "persona_id": f"x{r}", "stratum": "s", "quota": 1} for r in ranks])


@given(st.lists(st.integers(0, 1000)), st.data())
def test_equal_rows_hash_alike_however_they_are_dealt_out(ranks: list[int], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(ranks)))
    shuffled = data.draw(st.permutations(ranks))
    halves = [content_hash(pool(shuffled[:cut])), content_hash(pool(shuffled[cut:]))]
    assert content_hash(pool(ranks)) == sum_hashes(halves)


def test_a_repeated_row_changes_the_hash() -> None:
    assert content_hash(pool([1])) != content_hash(pool([1, 1]))
    assert content_hash(pool([])) == "0" * 64


def test_a_part_comes_back_as_it_was_written(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    path = layout.part("persona_pool", "b", "f" * 16, "00000", 0)
    write_part(layout, path, POOL, pool([3, 1]), {"n_produced": "2"})
    assert read_part(path, POOL).equals(pool([3, 1]))
    assert path.relative_to(tmp_path).as_posix() == f"store/persona_pool/build=b/{'f' * 16}/part-00000.parquet"
    assert list(layout.scratch.iterdir()) == []


def test_a_part_written_in_batches_is_the_part_written_at_once(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    with open_part(layout, tmp_path / "some.parquet", POOL) as writer:
        for start in range(0, 9000, 1000):
            writer.write(pool(list(range(start, start + 1000))).to_batches()[0])
        writer.write(pool([9000]))
        assert not (tmp_path / "some.parquet").exists(), "a part is there whole or not at all"
    write_part(layout, tmp_path / "whole.parquet", POOL, pool(list(range(9001))), {})
    some, whole = (describe_part(layout, tmp_path / f"{name}.parquet", POOL, "x") for name in ("some", "whole"))
    assert (some.rows, some.hash) == (whole.rows, whole.hash) == (9001, whole.hash)
    assert read_part(tmp_path / "some.parquet", POOL).equals(pool(list(range(9001))))
    assert list(layout.scratch.iterdir()) == []


def test_stored_rows_are_read_by_column_and_by_position(tmp_path: Path) -> None:
    with open_part(Layout(tmp_path), tmp_path / "some.parquet", POOL) as writer:
        for start in range(0, 15000, 5000):
            writer.write(pool(list(range(start, start + 5000))))
    stored = writer.stored
    ranks = stored.column("rank")
    assert len(stored) == len(ranks) == 15000
    assert [ranks[place] for place in (0, 4999, 5000, 14999)] == [0, 4999, 5000, 14999]
    assert ranks[7:9] == [7, 8] and sum(1 for _ in stored.column("pool")) == 15000
    with pytest.raises(IndexError, match="below 15000, found -1"):
        ranks[-1]
    batches = list(stored.batches(["persona_id"]))
    assert len(batches) > 1 and batches[0].schema.names == ["persona_id"]
    assert sum(batch.num_rows for batch in batches) == 15000


def test_a_part_whose_writing_fails_is_not_there(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    with (
        pytest.raises(TableError, match="rows do not fit its schema"),
        open_part(layout, tmp_path / "x", POOL) as writer,
    ):
        columns = [pa.array([None], field.type) for field in POOL.schema]
        writer.write(pa.Table.from_arrays(columns, schema=POOL.schema))
    with pytest.raises(ValueError, match="the stage broke"), open_part(layout, tmp_path / "x", POOL) as writer:
        writer.write(pool([1]))
        raise ValueError("the stage broke")
    assert not (tmp_path / "x").exists() and list(layout.scratch.iterdir()) == []


def test_columns_that_do_not_fit_a_table_make_no_batch() -> None:
    columns = {"pool": ["p"], "rank": [1], "persona_id": ["x"], "stratum": ["s"], "quota": [1]}
    assert POOL.batch(columns).num_rows == 1
    for wrong in ({"rank": ["one"]}, {"rank": [2**40]}, {"pool": ["\ud800"]}, {"pool": []}):
        with pytest.raises(TableError, match="table persona_pool: columns do not fit"):
            POOL.batch({**columns, **wrong})
    with pytest.raises(TableError, match="'quota'"):
        POOL.batch({name: columns[name] for name in columns if name != "quota"})


def test_rows_of_another_schema_are_refused(tmp_path: Path) -> None:
    rows = pool([1]).set_column(1, "rank", pa.array([1], pa.int64()))
    with pytest.raises(TableError, match="expected schema"):
        write_part(Layout(tmp_path), tmp_path / "x.parquet", POOL, rows, {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": "1"}, "column rank: Input should be a valid integer, found '1'"),
        ({"rank": 1.0}, "column rank"),
        ({"rank": 2**31}, "column rank"),
        ({"persona_id": None}, "column persona_id"),
        ({"more": 1}, "column more: Extra inputs are not permitted"),
    ],
)
def test_a_row_that_does_not_fit_its_table_is_refused(change: dict[str, object], message: str) -> None:
    row = {"pool": "p", "rank": 1, "persona_id": "x", "stratum": "s", "quota": 1}
    with pytest.raises(TableError, match=message):
        POOL.arrow([{**row, **change}])


def test_nan_is_never_stored() -> None:
    row = {"table_name": "t", "row_id": "a", "duplicate_of": "b", "cosine": float("nan"), "method": "embedding"}
    with pytest.raises(TableError, match="cosine"):
        TABLES["duplicates"].arrow([row])


def test_a_truncated_part_is_named(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    write_part(Layout(tmp_path), path, POOL, pool([1]), {})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TableError, match=r"part .*part.parquet of table persona_pool cannot be read"):
        read_part(path, POOL)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 KiB; needs the right to mount."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system is not allowed here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_the_old_file_and_says_so(small_disk: Path) -> None:
    layout = Layout(small_disk)
    write_text(small_disk / "commit.json", layout.scratch, "old")
    with pytest.raises(StoreError, match="the disk is full"):
        write_text(small_disk / "commit.json", layout.scratch, "x" * 300_000)
    assert (small_disk / "commit.json").read_text() == "old"
    assert list(layout.scratch.iterdir()) == []


@pytest.mark.parametrize("name", ["2026-12", "nightly-{date}", "a", "demo_1.2"])
def test_a_good_build_name_is_kept(name: str) -> None:
    assert build_name(name, date(2026, 12, 1)) == name.replace("{date}", "2026-12-01")


@pytest.mark.parametrize("name", ["a/b", "", "-a", ".hidden", "A", "x" * 65, "ü", "a b"])
def test_a_bad_build_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="build name"):
        build_name(name, date(2026, 12, 1))


def test_items_are_dealt_in_order_and_named_once() -> None:
    assert deal(["a", "b", "c"], 2) == (("a", "b"), ("c",))
    assert deal([], 2) == ()
    with pytest.raises(StoreError, match="found twice: b"):
        deal(["a", "b", "b"], 2)


def _hold(path: Path, ready: object) -> None:
    with lock(path, "the stage", 0):
        ready.set()  # type: ignore[attr-defined]
        time.sleep(60)


def test_the_lock_of_a_killed_owner_is_free(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    owner = context.Process(target=_hold, args=(path, ready))
    owner.start()
    assert ready.wait(30)
    with pytest.raises(BuildBusy, match=f"the stage is being run by process {owner.pid}"), lock(path, "the stage", 0):
        pass
    assert owner.pid is not None
    os.kill(owner.pid, 9)
    owner.join()
    with lock(path, "the stage", 0):
        pass


STRANGE = [b"", b"[]", b"null", b"{}", b"\xff", b'{"pid": "1", "host": 2}', b'{"pid": -1}', b"%(pid)s {pid}"]


@pytest.mark.parametrize(
    "content", [*STRANGE, b'{"pid": 1%s, "host": "here", "command": "c", "since": "s"}' % (b"0" * 30)]
)
def test_a_lock_file_of_strange_content_is_a_lock_all_the_same(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "here")
    path = tmp_path / ".scenes.lock"
    path.write_bytes(content)
    assert at_work(path) is None
    with lock(path, "stage scenes", 0):
        assert f"process {os.getpid()} on here" in (at_work(path) or "")
        path.write_bytes(content)
        with pytest.raises(BuildBusy, match="stage scenes is being run by"), lock(path, "stage scenes", 0):
            pass
