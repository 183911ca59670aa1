"""The SQL files: every report answers on an empty store, and all are written in one way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tasks.foundation import ROOT
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import open_views
from tests.contract.sql_rows import _row, good, tables_of

REPORTS = sorted((ROOT / "sql" / "reports").glob("*.sql"))
FILES = [*REPORTS, *sorted((ROOT / "sql" / "checks").glob("*.sql"))]


def name_of(file: Path) -> str:
    return f"{file.parent.name}/{file.stem}"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with open_views(Layout(tmp_path_factory.mktemp("empty"))) as connection:
        yield connection


@pytest.fixture(scope="module")
def filled() -> Iterator[duckdb.DuckDBPyConnection]:
    with tables_of(good()) as connection:
        yield connection


@pytest.mark.parametrize("file", REPORTS, ids=name_of)
def test_a_report_has_columns_and_no_rows_on_an_empty_store(file: Path, empty: duckdb.DuckDBPyConnection) -> None:
    answer = empty.execute(file.read_text(encoding="utf-8"))
    assert answer.description
    assert answer.fetchall() == []


@pytest.mark.parametrize("file", REPORTS, ids=name_of)
def test_a_report_has_rows_where_there_is_something_to_report(file: Path, filled: duckdb.DuckDBPyConnection) -> None:
    assert filled.execute(file.read_text(encoding="utf-8")).fetchall()


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_a_file_says_its_grain_first_and_selects_its_last_step_last(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").rstrip().splitlines()
    steps = re.findall(r"^([a-z0-9_]+)(?: \([a-z_, ]+\))? as \($", "\n".join(lines), re.MULTILINE)
    assert lines[0].startswith("-- ")
    assert "one row per" in lines[0]
    assert lines[-1] == f"select * from {steps[-1]}"


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_a_file_names_no_path(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert "read_parquet" not in text
    assert "/" not in re.sub(r"--.*|[a-z0-9_.)]+ / [a-z(]+", "", text)


def test_row_endings_count_every_row_of_a_stage_once() -> None:
    with tables_of(good()) as connection:
        endings = connection.execute((ROOT / "sql" / "reports" / "row_endings.sql").read_text(encoding="utf-8"))
        found = [(run, outcome, reason, n_rows) for run, _, outcome, reason, n_rows, _ in endings.fetchall()]
    assert found == [
        ("personas", "produced", None, 1),
        ("personas", "filtered", "near", 1),
        ("personas", "failed", "schema", 1),
        ("scenes", "produced", None, 1),
        ("scenes", "filtered", "near", 1),
    ]


def test_what_a_filter_left_out_is_lost_by_its_name_and_all_else_by_kind() -> None:
    reasons = {
        "1": ("filter", "too_short: expected at least 3 turns, found 1"),
        "2": ("filter", "too_short: expected at least 3 turns, found 2"),
        "3": ("filter", "contact: expected talk between two people, found 'mail: me'"),
        "4": ("filter", "taken out of the benchmark: no goal is left"),
        "5": ("schema", "turns: expected a list, found null"),
    }
    rejects = [_row("rejects", stage="s", row_key=key, kind=kind, reason=why) for key, (kind, why) in reasons.items()]
    with tables_of({"rejects": rejects}) as connection:
        losses = connection.execute((ROOT / "sql" / "reports" / "losses.sql").read_text(encoding="utf-8"))
        found = [(why, lost, example) for _, why, lost, _, example in losses.fetchall()]
    assert found == [
        ("too_short", 2, reasons["1"][1]),
        ("contact", 1, reasons["3"][1]),
        ("filter", 1, reasons["4"][1]),
        ("schema", 1, reasons["5"][1]),
    ]
