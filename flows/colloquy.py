"""Colloquy from Python: builds as tables and boards, runs and evaluations from a script or notebook.

    from flows import colloquy

    build = colloquy.open_build("demo")     # or the one that `colloquy sql` shows: open_build()
    build.table("metrics")                  # polars; .to_pandas() and .to_arrow() from there
    build.sql("select target, value from metrics where metric = $1", ["ficr"])
    build.report("disputes")                # a query of sql/reports
    build.board("eyt")                      # a row a target

    build = colloquy.run("demo", build="mine", settings={"chatseeds.per_pool": 4})
    build.evaluate("my-model")

These names stay. Reading never waits for a run, and sees each commit as it is made.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TextIO

import duckdb
import polars as pl

from tasks.foundation.errors import ColloquyError, ConfigError, StoreError
from tasks.foundation.store.commits import builds
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import choose_build, explain_reading_errors, open_views
from tasks.foundation.tables import TABLES
from tasks.report.board_files import TableName, list_rows, read_wide
from tasks.report.conversation_blocks import ALL
from tasks.report.questions import find_report, list_reports

__all__ = ["Build", "CommandFailed", "evaluate", "list_builds", "open_build", "run"]

WENT_WELL = (0, 8)
LAST_LINES = 30


class CommandFailed(ColloquyError):
    """A run or an evaluation that did not end well; its message is the command's last words."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"colloquy ended with exit code {code}: {said}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Build:
    """One build of the artifacts folder. Every answer is asked anew."""

    name: str
    root: Path

    def list_tables(self) -> pl.DataFrame:
        """The tables: name, what a row is, and how many rows there are."""
        named = "\nunion all ".join(f"select '{name}' as name, count(*) as rows from {name}" for name in TABLES)
        counted = dict(self.sql(named).iter_rows())
        return pl.DataFrame(
            [{"table": name, "grain": table.grain, "rows": counted[name]} for name, table in TABLES.items()]
        )

    def table(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """All rows of a table, or some of its columns (docs/tables.md says what they hold).

        ConfigError for a table or column that there is none of, naming the nearest.
        """
        _refuse_unknown("table", name, TABLES)
        chosen = TABLES[name].columns if columns is None else columns
        for column in chosen:
            _refuse_unknown(f"column of {name}", column, TABLES[name].columns)
        return self.sql(f"select {', '.join(chosen)} from {name}")

    def sql(self, query: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> pl.DataFrame:
        """The answer of a query over this build's tables ($1, or $name for named parameters). ConfigError with
        DuckDB's own words for one that cannot be answered."""
        with self._views() as connection, explain_reading_errors():
            try:
                relation = connection.sql(query, params=parameters)
                return pl.DataFrame() if relation is None else relation.pl()
            except duckdb.Error as error:
                raise ConfigError(f"the query cannot be answered. {error}") from None

    def report(self, name: str) -> pl.DataFrame:
        """The answer of a query of sql/reports; `list_reports` names them."""
        return self.sql(find_report(name))

    def list_reports(self) -> pl.DataFrame:
        """The queries that have names, with what they ask."""
        return pl.DataFrame(list(list_reports()), schema=["name", "asks"], orient="row")

    def board(
        self, table: TableName, *, language: str = ALL, pool: str | None = None, metrics: Sequence[str] = ()
    ) -> pl.DataFrame:
        """A board with a row a target, as `colloquy board TABLE --format csv` writes it: rank, rank_low, rank_high,
        what is known of the target, then of each metric its value, `_low`, `_high` and `_n`."""
        with self._views() as connection, explain_reading_errors():
            found = read_wide(connection, table, language=language, pool=pool, metrics=metrics)
        return pl.DataFrame(list_rows(found), infer_schema_length=None)

    def evaluate(self, target: str, *options: str, out: TextIO | None = None) -> Build:
        """One more target scored on this build's items and seeds; itself again. Options as of `colloquy evaluate`."""
        _command(self.root, ["evaluate", "--target", target, "--benchmark", self.name, "--quiet", *options], out)
        return self

    @contextmanager
    def _views(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with open_views(Layout(self.root), self.name) as connection:
            yield connection


def list_builds(root: Path | str | None = None) -> list[str]:
    """The builds of the artifacts folder (COLLOQUY_ARTIFACTS, else artifacts/), by name."""
    return builds(_layout(root))


def open_build(name: str | None = None, root: Path | str | None = None) -> Build:
    """A build by name, else the one that `colloquy sql` shows. StoreError for one that does not exist."""
    layout = _layout(root)
    chosen = choose_build(layout, name)
    if chosen not in (there := builds(layout)):
        raise StoreError(f"build {chosen!r} does not exist; expected one of: {', '.join(there) or 'none is there yet'}")
    return Build(chosen, layout.root)


def run(
    profile: str | None = None,
    build: str = "main",
    *options: str,
    settings: Mapping[str, Any] | None = None,
    root: Path | str | None = None,
    out: TextIO | None = None,
) -> Build:
    """Bring a build up to date, as `colloquy run` does, in a process of its own; its words go to `out`, or are printed.

    `settings`: by section.key. CommandFailed with the command's last words unless it ends with exit code 0, or 8:
    rows that failed in a way that may pass are for the next run.
    """
    layout = _layout(root)
    arguments = ["run", "--build", build, "--quiet", *options]
    arguments += ["--profile", profile] if profile else []
    for key, value in (settings or {}).items():
        arguments += ["--set", f"{key}={_written(value)}"]
    _command(layout.root, arguments, out)
    return Build(build, layout.root)


def evaluate(target: str, build: str | None = None, *options: str, root: Path | str | None = None) -> Build:
    """One more target scored on a build's items and seeds."""
    return open_build(build, root).evaluate(target, *options)


def _layout(root: Path | str | None) -> Layout:
    return Layout.default() if root is None else Layout(Path(root).absolute())


def _written(value: Any) -> str:
    """A value as `--set` reads it: YAML, of which JSON is a part."""
    return value if isinstance(value, str) else json.dumps(value)


def _command(root: Path, arguments: Sequence[str], out: TextIO | None) -> None:
    """A command in a process of its own: a notebook has an event loop already, Prefect an environment of its own."""
    program = [sys.executable, "-m", "flows.cli.main", *arguments]
    environment = {**os.environ, "COLLOQUY_ARTIFACTS": str(root), "PYTHONUNBUFFERED": "1"}
    said: deque[str] = deque(maxlen=LAST_LINES)
    with subprocess.Popen(
        program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            print(line, end="", file=out or sys.stdout, flush=True)
    if process.returncode not in WENT_WELL:
        raise CommandFailed(process.returncode, "".join(said).strip())


def _refuse_unknown(what: str, name: str, there: Iterable[str]) -> None:
    if name not in there:
        near = get_close_matches(name, list(there), 3, 0.5)
        raise ConfigError(
            f"expected the name of a {what} (docs/tables.md), found {name!r}"
            f"{'; the nearest: ' + ', '.join(near) if near else ''}"
        )
