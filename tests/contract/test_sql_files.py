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


def test_what_a_target_costs_is_what_its_own_calls_and_those_on_it_cost() -> None:
    calls = [
        ("awareness", "i1/m3/0", "m3", 1.0),
        ("interaction", "n1", "m3", 2.0),
        ("interaction", "n1", "p", 4.0),
        ("conversation", "cs1/m3/0", "m3", 8.0),
        ("conversation", "cs1/m3/0", "s", 16.0),
        ("judging", "awareness/i1/m3/0", "j", 32.0),
        ("judging", "interaction/n1", "j", 64.0),
        ("judging", "turn/v1/1", "j", 128.0),
        ("judging", "final/v1", "m3", 256.0),
        ("judging", "final/v2", "j", None),
        ("voting", "d1", "m3", 512.0),
        ("interaction", "lost", "m3", 1024.0),
    ]
    rows = {
        "llm_calls": [
            _row("llm_calls", request_id=f"r{n}", stage=stage, row_key=key, alias=alias, cost_usd=usd, from_cache=False)
            for n, (stage, key, alias, usd) in enumerate(calls)
        ],
        "interactions": [_row("interactions", interaction_id="n1", target="m3")],
        "conversations": [_row("conversations", conversation_id=f"v{n}", target=f"m{2 + n}") for n in (1, 2)],
    }
    with tables_of(rows) as connection:
        columns = "target, target_cost_usd, simulator_or_partner_cost_usd, judging_cost_usd, cost_usd"
        query = (ROOT / "sql" / "reports" / "cost_by_target.sql").read_text(encoding="utf-8")
        known, unknown, lost = connection.execute(f"select {columns} from ({query})").fetchall()
    assert known == ("m3", 11.0, 20.0, 480.0, 511.0)
    assert unknown[0] == "m4" and unknown[-2:] == (None, None)
    assert lost == (None, 0.0, 1024.0, 0.0, 1024.0), "what was paid for a lost interaction is not lost"
