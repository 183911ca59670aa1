"""What the database file knows of the commits: the records it shows, their rows in `stage_runs`, where files are.

A file that is there is taken further: only the records that have changed since it was written are read, and only the
tables that they hold are listed anew, so what a commit costs does not depend on how many builds there are. The list of
a table's files is one text, a line for each run of numbered parts, which DuckDB spells out when the table is asked:

    store/scenes/build=2026-12/3f9a…/part-|0|256|5|.parquet      (part-00000.parquet to part-00255.parquet)
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb

from tasks.foundation.errors import StoreError
from tasks.foundation.store.commits import Commit, newest_build, past_runs, read_commit, with_past
from tasks.foundation.store.layout import Layout, is_build_name
from tasks.foundation.store.parts import PartFile
from tasks.foundation.tables import TABLES

log = logging.getLogger(__name__)

AT_ONCE = 200
"""Rows that one statement inserts; a table of Arrow's would be quicker for very many, but loads pandas."""

Key = tuple[str, str]
"""A build, and the name of a run in it."""

DECLARED = """
create schema catalogue;
create table catalogue.facts (shape varchar, root varchar, places varchar, pinned varchar, shown varchar);
create table catalogue.records (build varchar, run varchar, stamp varchar, problem varchar, summary varchar);
create table catalogue.files (build varchar, run varchar, table_name varchar, columns varchar, files varchar);
create table catalogue.runs (run varchar, build varchar, profile varchar, ends_chain boolean, {columns_of_runs});
create macro catalogue.listed(root, text) as flatten(list_transform(
    string_split(text, chr(10)),
    lambda line: list_transform(
        range(cast(split_part(line, '|', 2) as bigint), cast(split_part(line, '|', 3) as bigint)),
        lambda number: root || split_part(line, '|', 1)
            || right('00000' || number, cast(split_part(line, '|', 4) as bigint)) || split_part(line, '|', 5)
    )
));
"""
"""What creates an empty catalogue, and the macro that spells out a list of files."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Files of one table in one run: `columns` are those they were written with, `files` lines as above."""

    build: str
    table: str
    columns: str
    files: str


class Catalogue:
    """The tables of schema `catalogue` in an open database, as last written."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    @property
    def shape(self) -> str | None:
        """What it was made by; None for what is no catalogue at all."""
        try:
            return self.facts["shape"]
        except (duckdb.Error, LookupError):
            return None

    @cached_property
    def stamps(self) -> dict[Key, str]:
        """Of every record that is shown, what its file was then."""
        rows = self._connection.execute("select build, run, stamp from catalogue.records").fetchall()
        return {(build, run): stamp for build, run, stamp in rows}

    @cached_property
    def facts(self) -> dict[str, str | None]:
        """What it was made from beside the records, and the build that schema main shows."""
        cursor = self._connection.execute("select * from catalogue.facts")
        names = [column[0] for column in cursor.description or ()]
        return dict(zip(names, cursor.fetchall()[0], strict=True))

    def newest(self) -> str | None:
        """The build that is shown where none is pinned."""
        query = "select ends_chain, ended_at, build from catalogue.runs where state = 'committed'"
        return newest_build(self._connection.execute(query).fetchall())

    def summaries(self) -> dict[Key, Commit]:
        """The commits that can be read, without their files."""
        rows = self._connection.execute("select build, run, summary from catalogue.records where summary is not null")
        return {(build, run): Commit.from_json(json.loads(summary)) for build, run, summary in rows.fetchall()}

    def listed(self, tables: Iterable[str], build: str | None = None) -> dict[str, list[Listed]]:
        """The files of some tables, in all builds or one."""
        rows = self._connection.execute(
            "select build, table_name, columns, files from catalogue.files "
            "where list_contains(?, table_name) and coalesce(build = ?, true) order by all",
            [list(tables), build],
        ).fetchall()
        found: dict[str, list[Listed]] = {table: [] for table in tables}
        for row in rows:
            found[row[1]].append(Listed(*row))
        return found

    def take(self, layout: Layout, changed: Mapping[Key, str | None]) -> set[str]:
        """Reads the records of these runs anew (None: those are gone); returns the tables they hold or held."""
        touched = self._forget(set(changed) & set(self.stamps))
        rows: dict[str, list[dict[str, Any]]] = {"records": [], "files": [], "runs": []}
        for key, stamp in changed.items():
            if stamp is not None:
                for table, some in _rows_of(layout, key, stamp).items():
                    rows[table] += some
        for table, some in rows.items():
            self._insert(table, some)
        return touched | {row["table_name"] for row in rows["files"]}

    def note(self, **facts: str | None) -> None:
        """Writes down what it is now made from."""
        self._connection.execute("delete from catalogue.facts")
        self._insert("facts", [facts])

    def _forget(self, keys: Iterable[Key]) -> set[str]:
        """Takes runs out; returns the tables they held."""
        touched: set[str] = set()
        for key in keys:
            held = "select distinct table_name from catalogue.files where build = ? and run = ?"
            touched |= {table for (table,) in self._connection.execute(held, key).fetchall()}
            for table in ("records", "files", "runs"):
                self._connection.execute(f"delete from catalogue.{table} where build = ? and run = ?", key)
        return touched

    def _insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            places = ", ".join(f"({', '.join('?' for _ in row)})" for row in some)
            values = [value for row in some for value in row.values()]
            self._connection.execute(f"insert into catalogue.{table} ({', '.join(some[0])}) values {places}", values)


def _rows_of(layout: Layout, key: Key, stamp: str) -> dict[str, list[dict[str, Any]]]:
    """What the catalogue keeps of a run, by its table."""
    build, run = key
    commit, problem = _read(layout, key)
    summary = json.dumps(commit.summary().to_json(), ensure_ascii=False) if commit else None
    runs = with_past(commit.row() if commit else None, past_runs(layout, build, run))
    facts = {"profile": commit and commit.record.get("profile"), "ends_chain": commit is not None and commit.ends_chain}
    named = [table for table in commit.tables if table in TABLES] if commit else []
    return {
        "records": [{"build": build, "run": run, "stamp": stamp, "problem": problem, "summary": summary}],
        "runs": [{"run": run, "build": build, **facts, **row.model_dump()} for row in runs],
        "files": [each for table in named if commit for each in _files(commit, table)],
    }


def known_commits(layout: Layout, catalogue: Catalogue | None) -> list[Commit]:
    """The commits of all builds without their files: from the catalogue, and from those records that have changed
    since. One that cannot be read is named in the log and left out."""
    there = stamps(layout)
    known = {key: commit for key, commit in (catalogue.summaries() if catalogue else {}).items() if key in there}
    written = catalogue.stamps if catalogue else {}
    for key, stamp in there.items():
        if written.get(key) != stamp or key not in known:
            commit, _ = _read(layout, key)
            known.pop(key, None)
            if commit is not None:
                known[key] = commit.summary()
    return list(known.values())


def stamps(layout: Layout) -> dict[Key, str]:
    """Of every stage run of every build, what its record and its past runs are now: sizes and times of change."""
    found: dict[Key, list[str]] = {}
    for build in _folders(layout.builds):
        for folder in (Path(build), layout.past_runs(build.name, "").parent):
            for run, stamp in _records(folder):
                found.setdefault((build.name, run), []).append(stamp)
    return {key: " ".join(each) for key, each in found.items()}


def _folders(builds: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(builds) as entries:
            yield from (entry for entry in entries if is_build_name(entry.name) and entry.is_dir())
    except FileNotFoundError:
        return


def _records(folder: Path) -> Iterator[tuple[str, str]]:
    """The runs that have a file in a folder, each with its stamp."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".json"):
                    state = entry.stat()
                    yield entry.name.removesuffix(".json"), f"{state.st_size}-{state.st_mtime_ns}"
    except (FileNotFoundError, NotADirectoryError):
        return


def _read(layout: Layout, key: Key) -> tuple[Commit | None, str | None]:
    """The commit of a run; else what is wrong with its record, if it has one."""
    try:
        return read_commit(layout, *key), None
    except StoreError as error:
        log.warning("build %s is shown without %s: %s", *key, error)
        return None, str(error)


def _files(commit: Commit, table: str) -> list[dict[str, Any]]:
    lines = "\n".join(lines_of(commit.tables[table]))
    columns = json.dumps(commit.columns.get(table, TABLES[table].shape))
    row = {"build": commit.build, "run": commit.run, "table_name": table, "columns": columns, "files": lines}
    return [row] if lines else []


_NUMBERED = re.compile(r"(.*/part-)(\d{5})([^/]*)")


def lines_of(parts: Sequence[PartFile]) -> Iterator[str]:
    """The paths of parts, consecutive numbers as one line."""
    numbered = [match for part in parts if (match := _NUMBERED.fullmatch(part.path))]
    yield from (f"{part.path}|0|1|0|" for part in parts if not _NUMBERED.fullmatch(part.path))

    def run(place: tuple[int, re.Match[str]]) -> tuple[str, str, int]:
        at, match = place
        return match[1], match[3], int(match[2]) - at

    for (before, after, _), found in groupby(enumerate(numbered), run):
        numbers = [int(match[2]) for _, match in found]
        yield f"{before}|{numbers[0]}|{numbers[-1] + 1}|5|{after}"
