"""`colloquy sql` reads: what would change the store, or anything but a file of its own elsewhere, is refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from flows.cli.queries import Format, ask, open_reading
from tasks.foundation.errors import ConfigError
from tasks.foundation.store.layout import Layout

WRITES = [
    "copy (select 1) to '{root}/made.csv' -- to '{away}/made.csv'",
    "copy (select 1) to /* '{away}/x' */ '{root}/made.csv'",
    "copy (select 'x' as \"to\") to '{away}/../artifacts/made.csv'",
    "copy (select 1) to '{away}/door/made.csv'",
    "copy (select 1) to 'artifacts/made.csv'",
    "copy (select 1) to '~/made.csv'",
    "copy (select 1) to '/proc/self/cwd/artifacts/made.csv'",
    "copy (select 1) to '{root}/it''s.csv'",
    "copy (select 1) to $${root}/made.csv$$",
    "copy (select 1) to e'{root}/made.csv'",
    'copy (select 1) to "{root}/made.csv"',
    "copy (select 1) to 'file:{root}/made.csv'",
    "copy (select 1) to 'file://{root}/made.csv'",
    "copy (select 1 as a) to '{away}' (format csv, partition_by (a))",
    "copy (select 1 as a) to '{away}/many' (format csv, per_thread_output true)",
    "copy (select 1 as a) to '{away}/many' (format csv, file_size_bytes 10, filename_pattern '../artifacts/m_{{i}}')",
    "copy (pivot (select 1 as a, 2 as b) on a using sum(b)) to '{root}/made.csv'",
    "select 1; copy (select 1) to '{root}/made.csv'",
    "explain analyze copy (select 1) to '{root}/made.csv'",
    "explain (analyze, format json) copy (select 1) to '{root}/made.csv'",
    "prepare w as copy (select 1) to '{root}/made.csv'; execute w",
    "create temp table \"from\" (i int); copy temp.from to '{root}/made.csv'",
    'create temp table "from" ("to" int); copy temp.main.from("to") to \'{root}/made.csv\'',
    "export database '{root}/made'",
    "export database '{away}/made'",
    "import database '{away}'",
    "copy from database colloquy to elsewhere",
    "attach '{root}/made.duckdb' as made (read_write); create table made.t (i int)",
    "attach '{root}/made.duckdb' as made (read_only false); create table made.t (i int)",
    "attach '{away}/made.duckdb' as made (access_mode 'read_write')",
    "call enable_logging(storage_path='{root}/made', storage='file')",
    "select * from enable_logging(storage_path='{root}/made', storage='file')",
    "pragma profiling_output='{root}/made.json'",
    "set profiling_output='{root}/made.json'",
    "set log_query_path='{root}/made.sql'",
    "set temp_directory='{root}/made'",
    "set lock_configuration=false",
    "pragma enable_profiling",
    "install httpfs",
    "load httpfs",
    "update extensions",
    "create persistent secret made (type s3)",
    "create temp secret made (type s3)",
    "create table made as select 1",
    "call force_checkpoint()",
    "checkpoint",
    "force checkpoint",
]
READS = [
    "from read_csv('{away}/given.csv')",
    "from '{away}/given.csv'",
    "with a as (select 1) select * from a",
    "values (1)",
    "show tables",
    "describe scenes",
    "summarize scenes",
    "explain select 1",
    "explain analyze select 1",
    "pivot (select 1 as a, 2 as b) on a using sum(b)",
    "pragma table_info('scenes')",
    "call duckdb_views()",
    "set variable a = 1; select getvariable('a')",
    "set threads = 1",
    "set timezone = 'UTC'",
    "use history",
    "prepare r as select 1; execute r",
    "create temp table t as select 1; insert into t values (2); drop table t",
    "create or replace temp macro f(x) as x + 1; select f(1)",
    "create temp table t (n int); copy t from '{away}/given.csv'",
    "attach '{root}/colloquy.duckdb' as other (read_only); from other.scenes",
]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """The artifacts folder (tests run beside it) and one outside with a file and a link that leads inside."""
    here = tmp_path_factory.mktemp("reading")
    root, away = here / "artifacts", here / "away"
    for folder in (root, away):
        folder.mkdir()
    (away / "given.csv").write_text("n\n1\n")
    (away / "door").symlink_to(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        patch.setenv("HOME", str(root))
        yield {"root": root, "away": away}


@pytest.fixture(scope="module")
def views(places: dict[str, Path]) -> duckdb.DuckDBPyConnection:
    return open_reading(Layout(places["root"]), None)


@pytest.fixture
def answer(places: dict[str, Path], views: duckdb.DuckDBPyConnection) -> Callable[[str], None]:
    """Statements in a session of their own, as the command runs them."""
    return lambda query: ask(views.cursor(), query.format(**places), Format.csv, Layout(places["root"]))


def files(places: dict[str, Path]) -> set[Path]:
    return {Path(at) / name for place in places.values() for at, _, names in os.walk(place) for name in names}


@pytest.mark.parametrize("query", WRITES)
def test_a_query_that_would_write_is_refused(
    query: str, places: dict[str, Path], answer: Callable[[str], None]
) -> None:
    before = files(places)
    with pytest.raises(ConfigError):
        answer(query)
    assert files(places) == before


@pytest.mark.parametrize("query", READS)
def test_a_query_that_reads_is_answered(query: str, answer: Callable[[str], None]) -> None:
    answer(query)


@pytest.mark.parametrize(
    "copy",
    [
        "copy (select 1 as n) to '{away}/it''s : mine.csv' (header true, delimiter ';')",
        "copy (pivot (select 1 as a, 2 as b) on a using sum(b)) to 'away/it''s : mine.csv'",
        "copy scenes to '{away}/it''s : mine.csv' with (format parquet, compression zstd);",
    ],
)
def test_an_answer_is_written_to_a_file_elsewhere(
    copy: str, places: dict[str, Path], answer: Callable[[str], None]
) -> None:
    file = places["away"] / "it's : mine.csv"
    file.unlink(missing_ok=True)
    answer(copy)
    assert file.stat().st_size
