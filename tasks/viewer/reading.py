"""One build, read through DuckDB as its commits have it now.

A `Library` keeps the views of the builds that were looked at. Before each page it looks whether a commit of the build
has changed since, and then opens them anew; a page sees one state from its first query to its last. What a page was
made from is told by the `state` of the build, which an address may name.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import duckdb
import polars as pl

from tasks.foundation.errors import ColloquyError
from tasks.foundation.ids import digest
from tasks.foundation.llm.retrace import KeptReplies
from tasks.foundation.store.commits import Commit, builds, commits_of
from tasks.foundation.store.layout import Layout, is_build_name
from tasks.foundation.store.views import explain_reading_errors, open_views
from tasks.foundation.tables import TABLES, Table
from tasks.foundation.tables.operations import OVERVIEW
from tasks.report.questions import QueryResult, Record, ask, rows

KEPT_BUILDS = 8
"""Builds whose views are held open."""

STATE_DIGITS = 12


class NotThere(ColloquyError):
    """What an address or a command names is not in the store; says what is, or how to find it."""

    exit_code = 2


class BadAsk(ColloquyError):
    """A filter, an order or a page that cannot be meant."""

    exit_code = 2


@dataclass(frozen=True, eq=False)
class Reading:
    """The tables of one build in one state. Belongs to one thread; `Library.open` makes it."""

    layout: Layout
    build: str
    connection: duckdb.DuckDBPyConnection

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Record]:
        return rows(self.connection, sql, parameters)

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> Record | None:
        return next(iter(self.rows(sql, parameters)), None)

    def ask(self, report: str) -> QueryResult:
        """The answer of a file of sql/reports."""
        return ask(self.connection, report)

    def count(self, table: str) -> int:
        return int(self.rows(f"select count(*) as n from {table}")[0]["n"])

    def frame(self, table: str, where: Mapping[str, Sequence[str]] | None = None) -> pl.DataFrame:
        """A table in key order; with `where`, only the rows whose columns have one of the values."""
        declared = TABLES[table]
        tests = [f"list_contains(?, {column})" for column in where or {}]
        condition = f" where {' and '.join(tests)}" if tests else ""
        sql = f"select {', '.join(declared.columns)} from {table}{condition} order by {', '.join(declared.key)}"
        given = [list(values) for values in (where or {}).values()]
        found = pl.from_arrow(self.connection.sql(sql, params=given).to_arrow_table())
        assert isinstance(found, pl.DataFrame)
        return found

    @cached_property
    def commits(self) -> Mapping[str, Commit]:
        return commits_of(self.layout, self.build)

    @cached_property
    def state(self) -> str:
        """What tells this state of the build from every other, also on another machine: which commits it has."""
        told = [(run, one.fingerprint, one.revision, one.ended_at) for run, one in sorted(self.commits.items())]
        return digest(told)[:STATE_DIGITS]

    @property
    def replies(self) -> KeptReplies:
        return KeptReplies(self.layout.cache / "replies.sqlite")


class Library:
    """The builds of an artifacts folder. Usable from any thread."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._open: OrderedDict[str, tuple[str, duckdb.DuckDBPyConnection]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def open(self, build: str) -> Iterator[Reading]:
        """A build as it is now. NotThere for one that does not exist."""
        with self._lock:
            own = self._current(build).cursor()
        try:
            with explain_reading_errors():
                yield Reading(self.layout, build, own)
        finally:
            own.close()

    @contextmanager
    def overview(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The views over all builds."""
        with open_views(self.layout) as connection, explain_reading_errors():
            yield connection

    def close(self) -> None:
        with self._lock:
            for _, connection in self._open.values():
                connection.close()
            self._open.clear()

    def _current(self, build: str) -> duckdb.DuckDBPyConnection:
        stamp = self._stamp(build)
        if self._open.get(build, ("", None))[0] != stamp:
            self._open[build] = (stamp, open_views(self.layout, build))
            while len(self._open) > KEPT_BUILDS:
                self._open.popitem(last=False)  # it is closed once the last page that reads it has ended
        self._open.move_to_end(build)
        return self._open[build][1]

    def _stamp(self, build: str) -> str:
        """Changes with every commit of the build."""
        known = builds(self.layout)
        if not is_build_name(build) or build not in known:
            there = ", ".join(known) or "none is there yet, `colloquy run` makes one"
            raise NotThere(f"build {build!r} does not exist; expected one of: {there}")
        files = sorted((self.layout.builds / build).glob("*.json"))
        return digest([(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files])


def known_table(name: str) -> Table:
    """A declared table, or one of the views over the commits; NotThere for another name."""
    found = (TABLES | OVERVIEW).get(name)
    if found is None:
        raise NotThere(f"there is no table {name!r}; expected one of: {', '.join([*TABLES, *OVERVIEW])}")
    return found
