"""The reply cache: durable before it answers, shared by processes, honest about a full disk."""

from __future__ import annotations

import asyncio
import dataclasses
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tasks.foundation.errors import SourceError, StoreError
from tasks.foundation.llm import cache as cache_module
from tasks.foundation.llm.cache import CachedReply, ReplyCache, find_replies
from tasks.foundation.llm.cache_files import export_replies, import_replies
from tasks.foundation.llm.packing import Packing, kind_of
from tasks.foundation.llm.request import MOST_TOKENS, RawReply, Usage, key_of

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def entry(request: str, text: str = "hello", *, stage: str = "voting", created_at: datetime = NOON) -> CachedReply:
    reply = RawReply(text, Usage(10, 4, 6, None), "stop", "model-1", 7, 0.25)
    return CachedReply(key_of(request), request, reply, "first/voting/f/r0", "call-1", stage, "judge", created_at)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ReplyCache]:
    cache = ReplyCache(tmp_path / "cache" / "replies.sqlite")
    yield cache
    cache.close()


async def test_a_reply_comes_back_as_it_was_put(cache: ReplyCache) -> None:
    await cache.put(entry("k", "naïve \U0001f600 {}"))
    found = cache.get(key_of("k"))
    assert found is not None
    assert found.reply == RawReply("naïve \U0001f600 {}", Usage(10, 4, 6, None), "stop", "model-1", 7, 0.25)
    assert (found.run_id, found.request_id, found.created_at) == ("first/voting/f/r0", "call-1", NOON)


async def test_an_unknown_key_is_none(cache: ReplyCache) -> None:
    assert cache.get(key_of("nothing")) is None


async def test_an_empty_reply_is_not_mistaken_for_none(cache: ReplyCache) -> None:
    await cache.put(entry("k", ""))
    found = cache.get(key_of("k"))
    assert found is not None and found.reply.text == ""


async def test_the_first_reply_to_a_call_stays_and_is_what_a_later_one_is_told(cache: ReplyCache) -> None:
    assert (await cache.put(entry("k", "first"))).reply.text == "first"
    assert (await cache.put(entry("k", "second"))).reply.text == "first"
    both = await asyncio.gather(cache.put(entry("j", "third")), cache.put(entry("j", "fourth")))
    assert [stored.reply.text for stored in both] == ["third", "third"]
    assert cache.get(key_of("k")).reply.text == "first"  # type: ignore[union-attr]


async def test_a_reply_that_cannot_be_stored_takes_no_other_with_it(cache: ReplyCache) -> None:
    odd = [
        dataclasses.replace(entry(name), reply=dataclasses.replace(entry(name).reply, **change))
        for name, change in {
            "a": {"model_reported": "m\ud800"},
            "b": {"seed_sent": 10**30},
            "c": {"usage": Usage(10**30, None, 1)},
        }.items()
    ]
    good = [entry(f"k{n}") for n in range(20)]
    results = await asyncio.gather(*(cache.put(one) for one in [*odd, *good]), return_exceptions=True)
    assert [type(result) for result in results[:3]] == [StoreError] * 3
    assert all(cache.get(one.key) is None for one in odd)
    assert all(cache.get(one.key) is not None for one in good)


async def test_another_process_may_open_and_close_the_cache_of_one_that_writes(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    program = "import sys; from tasks.foundation.llm.cache import ReplyCache; ReplyCache(sys.argv[1]).close()"
    with ReplyCache(path) as cache:
        for number in range(3):
            await cache.put(entry(f"before {number}"))
            command = [sys.executable, "-c", program, str(path)]
            assert subprocess.run(command, cwd=Path(__file__).parents[2], check=False).returncode == 0
            assert path.with_name("replies.sqlite-wal").exists(), (
                "it goes with the last one to close, which this is not"
            )
            await cache.put(entry(f"after {number}", "x" * 20_000))
    with sqlite3.connect(path) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        assert connection.execute("select count(*) from replies").fetchone() == (6,)


async def test_replies_are_their_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o755)
    (folder / "replies.sqlite").touch(mode=0o644)
    with ReplyCache(folder / "replies.sqlite") as cache:
        await cache.put(entry("k"))
        export_replies(cache, tmp_path / "replies.parquet")
        files = [*folder.iterdir(), tmp_path / "replies.parquet"]
        assert {path.suffix for path in files} >= {".sqlite", ".parquet", ".claims"}
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_claim_is_one_engine_s_until_it_is_given_back_or_its_process_ends(tmp_path: Path) -> None:
    path, key = tmp_path / "replies.sqlite", key_of("k")
    program = (
        "import sys, time\n"
        "from tasks.foundation.llm.cache import ReplyCache\n"
        "print(ReplyCache(sys.argv[1]).claims.take(sys.argv[2]), flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", program, str(path), key]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "True\n"
        with ReplyCache(path) as one, ReplyCache(path) as two:
            assert not one.claims.take(key) and one.claims.take(key_of("another"))
            assert not two.claims.take(key_of("another"))
            other.kill()
            other.wait()
            assert one.claims.take(key) and not two.claims.take(key)
            one.claims.release(key)
            assert two.claims.take(key)


async def test_a_put_returns_only_when_another_connection_can_see_it(cache: ReplyCache) -> None:
    await asyncio.gather(*(cache.put(entry(f"k{index}")) for index in range(200)))
    with sqlite3.connect(cache.path) as other:
        assert other.execute("select count(*) from replies").fetchone() == (200,)


async def test_many_waiting_replies_share_few_commits(cache: ReplyCache, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    commit = cache_module._commit
    monkeypatch.setattr(cache_module, "_commit", lambda c, entries: (sizes.append(len(entries)), commit(c, entries))[1])
    await asyncio.gather(*(cache.put(entry(f"k{index}")) for index in range(256)))
    assert sum(sizes) == 256
    assert max(sizes) == cache_module.BATCH_REPLIES


async def test_a_reply_survives_a_caller_that_is_cancelled(cache: ReplyCache) -> None:
    task = asyncio.create_task(cache.put(entry("k")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    cache.close()
    reopened = ReplyCache(cache.path)
    assert reopened.get(key_of("k")) is not None
    reopened.close()


async def test_a_full_disk_is_told_to_every_waiter(cache: ReplyCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(packing: Packing, entries: list[CachedReply]) -> list[Any]:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(cache_module, "_commit", full)
    results = await asyncio.gather(*(cache.put(entry(f"k{index}")) for index in range(100)), return_exceptions=True)
    assert all(isinstance(result, StoreError) for result in results)
    assert "disk is full" in str(results[0]) and str(cache.path) in str(results[0])


async def test_the_writer_goes_on_after_a_failure(cache: ReplyCache, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(cache_module, "_commit", lambda *_: (_ for _ in ()).throw(sqlite3.OperationalError("no")))
        with pytest.raises(StoreError):
            await cache.put(entry("k"))
    await cache.put(entry("k"))
    assert cache.get(key_of("k")) is not None


async def test_a_page_limit_that_is_reached_raises_store_error(cache: ReplyCache, tmp_path: Path) -> None:
    await cache.put(entry("small"))
    original = cache._connect

    def limited() -> sqlite3.Connection:
        connection = original()
        connection.execute("pragma max_page_count = 1")
        return connection

    small = ReplyCache(cache.path)
    small._connect = limited  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="full"):
        await small.put(entry("big", "".join(map(str, range(200_000)))))
    small.close()
    assert cache.get(key_of("small")) is not None and cache.get(key_of("big")) is None


def test_a_file_that_is_no_database_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_text("this is not a database, only a text that is long enough" * 30)
    with pytest.raises(StoreError, match=r"x\.sqlite"):
        ReplyCache(tmp_path / "x.sqlite")


async def test_two_processes_can_fill_one_new_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "shared.sqlite"
    program = (
        "import asyncio, sys\n"
        "from tests.unit.test_llm_cache import entry\n"
        "from tasks.foundation.llm.cache import ReplyCache\n"
        "async def main():\n"
        "    cache = ReplyCache(sys.argv[1])\n"
        "    for start in range(0, 100, 10):\n"
        "        await asyncio.gather(*(cache.put(entry(f'{sys.argv[2]}{n}')) for n in range(start, start + 10)))\n"
        "    cache.close()\n"
        "asyncio.run(main())\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(path), name], cwd=Path(__file__).parents[2])
        for name in ("a", "b")
    ]
    assert [process.wait() for process in running] == [0, 0]
    cache = ReplyCache(path)
    assert cache.stats()[0].replies == 200
    cache.close()


def test_a_reply_that_was_put_survives_a_kill(tmp_path: Path) -> None:
    program = (
        "import asyncio, os, signal, sys\n"
        "from tests.unit.test_llm_cache import entry\n"
        "from tasks.foundation.llm.cache import ReplyCache\n"
        "async def main():\n"
        "    await ReplyCache(sys.argv[1]).put(entry('k', 'paid for'))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    path = tmp_path / "killed.sqlite"
    done = subprocess.run([sys.executable, "-c", program, str(path)], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == -9
    cache = ReplyCache(path)
    found = cache.get(key_of("k"))
    assert found is not None and found.reply.text == "paid for"
    cache.close()


async def test_stats_count_replies_and_tokens_by_stage_and_alias(cache: ReplyCache) -> None:
    await asyncio.gather(cache.put(entry("a")), cache.put(entry("b")), cache.put(entry("c", stage="scenes")))
    assert [(line.stage, line.replies, line.prompt_tokens, line.completion_tokens) for line in cache.stats()] == [
        ("scenes", 1, 10, 6),
        ("voting", 2, 20, 12),
    ]


async def test_prune_deletes_only_what_meets_every_condition(cache: ReplyCache) -> None:
    old = datetime(2026, 1, 1, tzinfo=UTC)
    await cache.put(entry("old-voting", created_at=old))
    await cache.put(entry("new-voting"))
    await cache.put(entry("old-scenes", stage="scenes", created_at=old))
    assert cache.prune() == 0
    assert cache.prune(older_than=datetime(2026, 6, 1, tzinfo=UTC), stage="voting") == 1
    assert cache.get(key_of("old-voting")) is None
    assert cache.get(key_of("new-voting")) is not None and cache.get(key_of("old-scenes")) is not None


async def test_export_writes_every_reply_once(cache: ReplyCache, tmp_path: Path) -> None:
    await asyncio.gather(*(cache.put(entry(f"k{index:03}")) for index in range(25)))
    assert export_replies(cache, tmp_path / "replies.parquet", batch=10) == 25
    table = pq.read_table(tmp_path / "replies.parquet")
    assert table.column("key").to_pylist() == sorted(key_of(f"k{index:03}") for index in range(25))
    assert table.column("reply")[0].as_py() == "hello"


async def test_an_export_is_taken_in_elsewhere_and_known_replies_stay(cache: ReplyCache, tmp_path: Path) -> None:
    await asyncio.gather(*(cache.put(entry(f"k{index}", f"text {index}")) for index in range(25)))
    export_replies(cache, tmp_path / "replies.parquet", batch=10)
    other = ReplyCache(tmp_path / "other.sqlite")
    await other.put(entry("k3", "its own"))
    assert import_replies(other, tmp_path / "replies.parquet", batch=7) == (24, 1)
    assert import_replies(other, tmp_path / "replies.parquet") == (0, 25)
    kept, found = other.get(key_of("k3")), other.get(key_of("k7"))
    assert kept is not None and kept.reply.text == "its own"
    assert found == cache.get(key_of("k7"))
    other.close()


async def test_an_export_may_hold_the_replies_of_one_build_only(cache: ReplyCache, tmp_path: Path) -> None:
    for number, run in enumerate(("first/voting/f/r0", "first/judging@m/f/r0", "first-2/voting/f/r0")):
        await cache.put(dataclasses.replace(entry(f"k{number}"), run_id=run))
    assert export_replies(cache, tmp_path / "replies.parquet", runs="first/") == 2


def _without_data(whole: bytes) -> bytes:
    return whole[:4] + bytes(200) + whole[204:]


def _of_another_version(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"colloquy_reply_key_version": "0"}), path)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda path: path.write_bytes(b"PAR1 and nothing else"), "cannot be read as a Parquet file"),
        (lambda path: path.write_bytes(path.read_bytes()[:-20]), "cannot be read as a Parquet file"),
        (lambda path: path.write_bytes(_without_data(path.read_bytes())), "cannot be read to its end"),
        (lambda path: path.unlink(), "cannot be read as a Parquet file"),
        (lambda path: pq.write_table(pq.read_table(path).drop_columns(["usage"]), path), "lacks usage"),
        (lambda path: pq.write_table(pq.read_table(path).replace_schema_metadata(None), path), "it is none"),
        (_of_another_version, "key version 0"),
    ],
)
async def test_a_file_that_is_no_export_is_refused_whole(
    cache: ReplyCache, tmp_path: Path, spoil: Callable[[Path], object], sentence: str
) -> None:
    await cache.put(entry("k"))
    path = tmp_path / "replies.parquet"
    export_replies(cache, path)
    spoil(path)
    other = ReplyCache(tmp_path / "other.sqlite")
    with pytest.raises(SourceError, match=sentence):
        import_replies(other, path)
    assert other.stats() == []
    other.close()


ROW_FAULTS: dict[str, list[Any]] = {
    "key": ["0" * 64, "../../elsewhere"],
    "request": ["another request"],
    "reply": [None],
    "finish_reason": ["done", None],
    "usage": [
        "[1, 2, 3]",
        f"[{MOST_TOKENS + 1}, null, 1, null, null]",
        f"[1{'0' * 30}, null, 1, null, null]",
        "[-1, null, 1, null, null]",
        "[1.5, null, 1, null, null]",
        "[true, null, 1, null, null]",
        '{"prompt_tokens": 1}',
        "nothing",
    ],
    "seed_sent": [-1],
    "latency_seconds": [float("nan"), float("inf"), -1.0],
    "run_id": ["../x", "first", "First/voting/f/r0", "first/vo\nting/f"],
    "request_id": ["", "a\nb"],
    "stage": ["", "vo\x1bting", "x" * 300],
    "alias": [None],
    "created_at": ["yesterday", "2026-11-30T12:00:00", "2026-11-30T12:00:00.000000+01:00", "99999-01-01"],
    "batched": [2],
}


@pytest.mark.parametrize("column", ROW_FAULTS)
async def test_a_row_that_the_cache_could_not_have_written_is_refused_with_its_file(
    cache: ReplyCache, tmp_path: Path, column: str
) -> None:
    await asyncio.gather(*(cache.put(entry(f"k{n}")) for n in range(3)))
    path = tmp_path / "replies.parquet"
    export_replies(cache, path)
    whole = pq.read_table(path)
    place = whole.schema.get_field_index(column)
    for value in ROW_FAULTS[column]:
        values = [*whole.column(column).to_pylist()[:2], value]
        pq.write_table(whole.set_column(place, whole.schema.field(place), [values]), path)
        with ReplyCache(tmp_path / "other.sqlite") as other:
            with pytest.raises(SourceError, match=r"row 3: .*nothing of the file was taken in"):
                import_replies(other, path, batch=2)
            assert other.stats() == []


async def test_a_damaged_row_is_a_store_error_that_names_the_file(cache: ReplyCache) -> None:
    await cache.put(entry("k"))
    await cache.put(entry("other"))
    damages = (
        *("replies set usage = '[1e30]'", "replies set created_at = 'noon'"),
        *("packed set content = x'28b52ffd00'", "packed set dictionary = 'another'"),
    )
    for damage in damages:
        with sqlite3.connect(cache.path) as connection:
            connection.execute(f"update {damage}")
        with pytest.raises(StoreError, match=r"replies\.sqlite cannot be read"):
            cache.get(key_of("k"))


# Packed texts


def call(number: int, prompt: str = "judge") -> str:
    """A request as a call's canonical JSON is: what all of a prompt share comes last."""
    rules = " ".join(f"Rule {rule} of {prompt} is that {rule * 7919 % 1000} comes before it." for rule in range(100))
    said = f"Row {number}: {'naïve 谢谢 ' * (number % 5)}"
    return f'{{"call":{{"messages":["{said}"]}},"to":{{"model":"m","schema":"{rules}"}}}}'


async def test_what_calls_have_in_common_is_kept_once(cache: ReplyCache) -> None:
    entries = [entry(call(number), f"reply {number}") for number in range(50)]
    await asyncio.gather(*(cache.put(each) for each in entries))
    assert [cache.get(each.key) for each in entries] == entries
    with sqlite3.connect(cache.path) as connection:
        assert connection.execute("select count(*) from dictionaries").fetchone() == (1,)
        (size,) = connection.execute("select sum(length(content)) from packed").fetchone()
    assert size < sum(len(each.request) for each in entries) / 20


def test_calls_of_a_kind_differ_in_their_messages_only() -> None:
    kinds = {kind_of("judging", call(number, prompt)) for number in range(5) for prompt in ("one", "two")}
    assert len(kinds | {kind_of("voting", call(0, "one"))}) == 3


async def test_a_dictionary_that_was_rolled_back_is_made_again(
    cache: ReplyCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = cache_module._insert

    def broken(packing: Packing, row: tuple[Any, ...]) -> bool:
        insert(packing, row)
        raise sqlite3.OperationalError("the disk went away")

    with monkeypatch.context() as failing:
        failing.setattr(cache_module, "_insert", broken)
        with pytest.raises(StoreError):
            await cache.put(entry(call(1)))
    with sqlite3.connect(cache.path) as connection:
        assert connection.execute("select count(*) from dictionaries").fetchone() == (0,)
    await cache.put(entry(call(2)))
    with ReplyCache(cache.path) as again:
        assert again.get(key_of(call(2))) == entry(call(2))


@pytest.mark.parametrize("lost", ["packed", "dictionaries"])
async def test_a_reply_whose_texts_are_lost_is_an_error_and_not_an_empty_one(cache: ReplyCache, lost: str) -> None:
    await cache.put(entry(call(1)))
    with sqlite3.connect(cache.path) as connection:
        connection.execute(f"delete from {lost}")
    with ReplyCache(cache.path) as again:
        with pytest.raises(StoreError, match="not there"):
            again.get(key_of(call(1)))
        with pytest.raises(StoreError, match="not there"):
            list(again.read_rows())
        with pytest.raises(StoreError, match="not there"):
            await again.put(entry(call(1)))
    with pytest.raises(StoreError, match="not there"):
        find_replies(cache.path, "replies.key = ?", [key_of(call(1))])


async def test_pruned_replies_leave_no_text(cache: ReplyCache) -> None:
    await cache.put(entry(call(1)))
    await cache.put(entry(call(2), stage="judging"))
    assert cache.prune(stage="voting") == 1
    with sqlite3.connect(cache.path) as connection:
        assert connection.execute("select count(*) from packed").fetchone() == (1,)
    assert cache.get(key_of(call(2))) == entry(call(2), stage="judging")


async def test_a_cache_of_an_earlier_version_is_read_and_filled_further(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    old = [entry(call(number), f"old {number}") for number in range(3)]
    with sqlite3.connect(path) as connection:
        connection.executescript(cache_module._SCHEMA)
        marks = ", ".join("?" * len(cache_module.COLUMNS))
        connection.executemany(f"insert into replies values ({marks})", [each.to_row() for each in old])
    with ReplyCache(path) as cache, ReplyCache(tmp_path / "elsewhere.sqlite") as elsewhere:
        assert (await cache.put(entry(call(0), "bought again"))).reply.text == "old 0"
        await cache.put(entry(call(3), "new"))
        assert [cache.get(each.key) for each in old] == old
        assert export_replies(cache, tmp_path / "all.parquet") == 4
        assert import_replies(elsewhere, tmp_path / "all.parquet") == (4, 0)
        assert elsewhere.get(key_of(call(1))) == old[1]
        assert cache.prune(stage="voting") == 4


async def test_an_export_that_fails_leaves_no_file(
    cache: ReplyCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cache.put(entry("k"))
    monkeypatch.setattr(cache, "read_rows", lambda *_: iter([[("k",)]]))
    with pytest.raises(ValueError):
        export_replies(cache, tmp_path / "replies.parquet")
    assert not list(tmp_path.glob("replies*"))


async def test_what_a_run_paid_for_is_found_by_the_beginning_of_its_id(cache: ReplyCache) -> None:
    runs = ("b/voting/f/r0", "b/voting/f/r1", "b/voting@x/f/r0", "b_2/voting/f/r0", "b-2/x/f/r0")
    for number, run in enumerate(runs):
        await cache.put(dataclasses.replace(entry(f"k{number}"), run_id=run))
    assert len(list(cache.read_usage("b/"))) == 3
    assert list(cache.read_usage("b/voting/")) == [("judge", False, Usage(10, 4, 6, None))] * 2
    assert len(list(cache.read_usage("b_2/"))) == 1


async def test_a_closed_cache_refuses_to_write(cache: ReplyCache) -> None:
    cache.close()
    with pytest.raises(StoreError, match="closed"):
        await cache.put(entry("k"))
