"""Runs every file of sql/checks: each returns the rows that break its claim, so no rows is good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import duckdb

from tasks.foundation import ROOT
from tasks.foundation.errors import ColloquyError, TableError
from tasks.foundation.store.commits import Commit, commits_of
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import rows_in
from tasks.foundation.store.views import explain_reading_errors, open_views

CHECKS = ROOT / "sql" / "checks"
SHOWN = 5


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check: `rows` offending rows, of which `examples` are the first few."""

    name: str
    rows: int
    examples: tuple[dict[str, object], ...]


class ChecksFoundRows(ColloquyError):
    """A build's rows break what must be true of them; the message names the checks."""

    exit_code: ClassVar[int] = 7


def check_build(layout: Layout, build: str | None) -> list[CheckResult]:
    """The outcome of every check of a build's rows (None: of a store without builds); of the files alone where some are
    missing, for then most of the others could not be run. StoreError for a build that does not exist."""
    files = check_parts(layout, commits_of(layout, build) if build else {})
    if files.rows:
        return [files]
    with open_views(layout, build) as connection:
        return [files, *run_checks(connection)]


def check_files(folder: Path = CHECKS) -> list[Path]:
    return sorted(folder.glob("*.sql"))


def run_checks(connection: duckdb.DuckDBPyConnection, folder: Path = CHECKS) -> Iterator[CheckResult]:
    """The outcome of each check, in order of their names; TableError for a check that cannot be run."""
    return (run_check(connection, file) for file in check_files(folder))


def check_parts(layout: Layout, commits: Mapping[str, Commit]) -> CheckResult:
    """Files that are not there, or have other than the rows their commit says."""
    wrong: list[dict[str, object]] = []
    for run, commit in commits.items():
        for table, parts in {**commit.tables, **commit.drafts}.items():
            for part in parts:
                found = rows_in(layout.root / part.path)
                if found != part.rows:
                    wrong.append({"stage": run, "table": table, "file": part.path, "rows": part.rows, "found": found})
    return CheckResult("files__rows_are_those_committed", len(wrong), tuple(wrong[:SHOWN]))


def run_check(connection: duckdb.DuckDBPyConnection, file: Path) -> CheckResult:
    try:
        with explain_reading_errors():
            connection.execute(file.read_text(encoding="utf-8"))
            names = [column[0] for column in connection.description or ()]
            rows = connection.fetchall()
    except duckdb.Error as error:
        raise TableError(f"check {file.name} cannot be run: {error}") from None
    return CheckResult(file.stem, len(rows), tuple(dict(zip(names, row, strict=True)) for row in rows[:SHOWN]))
