"""What the boards say of the study of seven targets, and that SQL comes to the same numbers as the stage."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from flows.chain.checks import run_checks
from tasks.report.boards import explain_tests, make_score, warn_of_claims
from tasks.report.questions import Record, ask
from tests.contract.sql_rows import tables_of
from tests.unit.test_metrics_claims import planted, prepared


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    made = {name: [row.model_dump() for row in rows] for name, rows in prepared().rows.items()}  # type: ignore[attr-defined]
    with tables_of({**planted(), **made}) as filled:
        yield filled


@pytest.fixture(scope="module")
def board(connection: duckdb.DuckDBPyConnection) -> list[Record]:
    return ask(connection, "eyt_leaderboard").where(pool="all", language="all").records


def cell(board: list[Record], target: str, metric: str) -> Record:
    (found,) = [record for record in board if (record["target"], record["metric"]) == (target, metric)]
    return found


def test_sql_comes_to_the_same_numbers(connection: duckdb.DuckDBPyConnection) -> None:
    """Of unequal pools, with an absent judge, lost conversations and a target that failed everything."""
    of_scores = [
        outcome for outcome in run_checks(connection) if outcome.name.startswith(("metrics__", "comparisons__"))
    ]
    assert len(of_scores) > 10
    assert [outcome for outcome in of_scores if outcome.rows] == []


def test_a_score_shows_lost_conversations_worst_cases_absent_judges_and_whom_it_is_behind(board: list[Record]) -> None:
    lost = make_score(cell(board, "fay", "latent_accuracy"))
    assert (lost.note, lost.worst) == ("16 of 50 conversations void", "0.800 to 1.000")
    assert make_score(cell(board, "fay", "satisfaction")).note.endswith("behind ann, ben, dot on what both have done")
    assert make_score(cell(board, "dot", "satisfaction")).note == "without scripted-b"
    lost = make_score(cell(board, "eve", "satisfaction"))
    assert (lost.value, lost.note, lost.mark) == ("–", "50 of 50 conversations void", "")


def test_a_board_warns_of_what_its_comparisons_rest_on(board: list[Record]) -> None:
    absent, common = warn_of_claims(board)
    assert absent.startswith("scripted-b judged fewer than half of what there is of dot")
    assert common == "Targets are compared and ranked by the judgements of scripted-a alone."
    *_, few, shared = warn_of_claims([{**record, "p_holm_least": 0.2, "widened": 1.5} for record in board])
    assert "no p of a primary metric can be below 0.20" in few
    assert "1.5 times as wide" in shared


def test_a_board_names_what_was_named_beforehand(board: list[Record]) -> None:
    assert explain_tests(board).startswith("Named beforehand: FICR and satisfaction; ")
    assert explain_tests([{**record, "is_primary": False} for record in board]) == ""
