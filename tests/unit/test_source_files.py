"""Files of every kind that sources may have: packed, tables, databases, folders of `datasets`, patterns."""

from __future__ import annotations

import importlib.util
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import datasets
import duckdb
import polars as pl
import pytest
import zstandard

from tasks.foundation.errors import SourceError
from tasks.foundation.settings.sections import Source
from tasks.foundation.sources import find_files, open_source

ROWS = [{"id": number, "text": f"line {number}, „quoted“ and 对话"} for number in range(40)]
LINES = "".join(f'{{"id": {row["id"]}, "text": "{row["text"]}"}}\n' for row in ROWS).encode()


def read(path: Path, **settings: Any) -> list[Any]:
    return [row.value for row in open_source(Source(path=str(path), **settings))]


def sqlite(path: Path, *tables: str) -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        for table in tables:
            quoted = '"' + table.replace('"', '""') + '"'
            database.execute(f"create table {quoted} (id integer, text text)")
            database.executemany(f"insert into {quoted} values (?, ?)", [tuple(row.values()) for row in ROWS])
    return path


def test_a_file_packed_by_zst_is_read_and_one_that_is_cut_short_is_not(tmp_path: Path) -> None:
    packed = zstandard.compress(LINES)
    (tmp_path / "rows.jsonl.zst").write_bytes(packed)
    assert read(tmp_path / "rows.jsonl.zst") == ROWS
    (tmp_path / "cut.jsonl.zst").write_bytes(packed[:-20])
    with pytest.raises(SourceError, match="is not a whole zst file"):
        read(tmp_path / "cut.jsonl.zst")


def test_columns_may_be_separated_by_tabs(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text('id\ttext\n1\t"a, b\tc"\n', encoding="utf-8")
    assert read(tmp_path / "rows.tsv") == [{"id": "1", "text": "a, b\tc"}]
    (tmp_path / "commas.tsv").write_text("id,text\n1,x\n", encoding="utf-8")
    with pytest.raises(SourceError, match="separated by tabs, found the one column 'id,text'"):
        read(tmp_path / "commas.tsv")


@pytest.mark.parametrize("several", [False, True])
def test_a_folder_of_save_to_disk_is_read(tmp_path: Path, several: bool) -> None:
    rows = datasets.Dataset.from_list(ROWS)
    whole = datasets.DatasetDict({"train": rows, "test": rows.select(range(3))}) if several else rows
    whole.save_to_disk(str(tmp_path / "saved"), **({} if several else {"num_shards": 3}))
    (tmp_path / "saved" / "cache-1234.arrow").write_bytes(b"worked out")
    assert read(tmp_path / "saved", split="train" if several else None) == ROWS


@pytest.mark.parametrize("suffix", [".db", ".sqlite", ".sqlite3"])
def test_a_table_of_sqlite_is_read(tmp_path: Path, suffix: str) -> None:
    assert read(sqlite(tmp_path / f"rows{suffix}", "only")) == ROWS
    path = sqlite(tmp_path / f"more{suffix}", "it's", 'say "so"')
    assert read(path, table='say "so"') == ROWS
    with pytest.raises(SourceError, match="expected the name of one table in `table`, found it's, say"):
        read(path)
    with pytest.raises(SourceError, match="expected the table 'other', found it's"):
        read(path, table="other")


def test_a_table_of_duckdb_is_read(tmp_path: Path) -> None:
    frame = pl.DataFrame(ROWS)
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as database:
        database.register("given", frame.to_arrow())
        database.execute("create table talks as select *, [text, text] as twice from given order by id")
    found = read(tmp_path / "rows.duckdb", table="talks")
    assert found == [{**row, "twice": [row["text"]] * 2} for row in ROWS]
    assert len(read(tmp_path / "rows.duckdb", limit=7)) == 7


@pytest.mark.parametrize("name", ["rows.db", "rows.duckdb", "rows.arrow"])
def test_what_is_no_such_file_is_said(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"nothing of the kind" * 9)
    with pytest.raises(SourceError, match="cannot be read as"):
        read(tmp_path / name)


def test_a_sheet_is_read_or_the_package_named_that_it_needs(tmp_path: Path) -> None:
    if importlib.util.find_spec("fastexcel") is None:
        (tmp_path / "rows.xlsx").write_bytes(b"PK")
        with pytest.raises(SourceError, match="Run `pip install fastexcel`, or save the sheet as"):
            read(tmp_path / "rows.xlsx")
        return
    pytest.importorskip("xlsxwriter")
    pl.DataFrame(ROWS).write_excel(tmp_path / "rows.xlsx", worksheet="talks")
    assert read(tmp_path / "rows.xlsx", table="talks") == ROWS


def test_a_pattern_stands_for_its_files_and_their_rows_keep_apart(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.jsonl").write_text(f'{{"x": "{name}"}}\n')
    rows = list(open_source(Source(path=str(tmp_path / "[ab]" / "*.jsonl"))))
    assert [(row.where, row.value["x"]) for row in rows] == [("a/rows.jsonl:1", "a"), ("b/rows.jsonl:1", "b")]
    assert len(find_files(tmp_path / "**" / "rows.jsonl")) == 3
    with pytest.raises(SourceError, match="does not exist"):
        find_files(tmp_path / "*.csv")


def test_a_database_beside_data_is_no_part_of_a_folder(tmp_path: Path) -> None:
    sqlite(tmp_path / "index.db", "rows")
    (tmp_path / "rows.jsonl").write_bytes(LINES)
    assert [file.name for file in find_files(tmp_path)] == ["rows.jsonl"]
