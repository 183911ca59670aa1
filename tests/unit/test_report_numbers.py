"""How the report writes numbers, and how it lays a leaderboard out."""

from __future__ import annotations

from typing import Any

import pytest

from tasks.report import numbers
from tasks.report.blocks import Bar, BoardBlock, make_table
from tasks.report.boards import (
    draw_board,
    draw_matrix,
    explain_marks,
    fewest_conversations,
    fewest_dialogues,
    make_score,
    order_targets,
    read_board,
    say_who_leads,
    warn_of_few,
)
from tasks.report.questions import QueryResult


@pytest.mark.parametrize(
    ("value", "unit", "written"),
    [
        (7.885, "0-10", "7.88"),
        (64.25, "0-100", "64.2"),
        (0.12345, "share", "0.123"),
        (-0.5, "rho", "−0.500"),
        (-0.0001, "cosine", "0.000"),
        (1234.5, "0-100", "1,234.5"),
        (105.04, "", "105.0"),
        (0.25, "", "0.250"),
        (2.0, "pairs", "2"),
        (None, "share", "–"),
    ],
)
def test_a_value_has_the_decimals_of_its_unit(value: float | None, unit: str, written: str) -> None:
    assert numbers.number(value, unit) == written


def test_an_interval_needs_both_ends() -> None:
    assert numbers.interval(-0.1, 0.25, "share") == "−0.100 to 0.250"
    assert numbers.interval(None, 0.25, "share") == ""


@pytest.mark.parametrize(
    ("usd", "written"), [(None, "unknown"), (0, "0.00"), (0.0042, "0.0042"), (1, "1.00"), (1234.567, "1,234.57")]
)
def test_an_unknown_cost_is_not_nothing(usd: float | None, written: str) -> None:
    assert numbers.money(usd) == written


@pytest.mark.parametrize(
    ("value", "written"), [(None, "–"), (0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2.0 h")]
)
def test_a_duration_is_in_the_unit_that_fits(value: float | None, written: str) -> None:
    assert numbers.seconds(value) == written


def test_a_small_p_is_not_written_as_nought() -> None:
    assert [numbers.p_value(p) for p in (0.0004, 0.05, None)] == ["< 0.001", "0.050", "–"]


def test_a_moment_and_a_count_are_written_for_people() -> None:
    assert numbers.moment("2026-05-21T12:00:30.5+00:00") == "2026-05-21 12:00 UTC"
    assert [numbers.plural(n, "turn") for n in (0, 1, 1200)] == ["0 turns", "1 turn", "1,200 turns"]


COLUMNS = (
    "target",
    "metric",
    "value",
    "ci_low",
    "ci_high",
    "n",
    "n_unit",
    "n_unscored",
    "n_fault",
    "unit",
    "is_best",
    "may_equal_best",
    "is_not_compared",
)


def row(target: str, metric: str, value: float | None, **changes: Any) -> tuple[Any, ...]:
    plain: dict[str, Any] = {
        "target": target,
        "metric": metric,
        "value": value,
        "ci_low": None,
        "ci_high": None,
        "n": 4,
        "n_unit": "turn",
        "n_unscored": 0,
        "n_fault": 0,
        "unit": "share",
        "is_best": None,
        "may_equal_best": None,
        "is_not_compared": None,
    }
    return tuple({**plain, **changes}.values())


def answer(*rows: tuple[Any, ...]) -> QueryResult:
    return QueryResult("eyt_leaderboard", "-- ?", COLUMNS, rows)


def drawn(*rows: tuple[Any, ...]) -> BoardBlock:
    board = read_board(answer(*rows), ["ficr"])
    assert board is not None
    return draw_board(board, "")


def test_targets_stand_by_their_headline_and_a_missing_value_is_last() -> None:
    rows = answer(row("b", "ficr", 0.5), row("a", "ficr", 0.5), row("c", "ficr", 0.9), row("d", "ficr", None))
    found = read_board(rows, ["ficr"])
    assert found is not None
    assert list(found.targets) == ["c", "a", "b", "d"]


def test_the_lowest_drift_is_the_best() -> None:
    by_target = {"a": {"drift_latent": {"value": 0.3}}, "b": {"drift_latent": {"value": 0.1}}}
    assert order_targets(by_target, "drift_latent") == ["b", "a"]


def test_a_board_has_only_the_metrics_that_there_are() -> None:
    found = read_board(answer(row("a", "ficr", 0.5)), ["satisfaction", "ficr"])
    assert found is not None and found.metrics == ("ficr",)
    assert [(head.name, head.unit, head.n_unit, head.better) for head in draw_board(found, "").heads] == [
        ("ficr", "share", "turn", "higher is better")
    ]
    assert read_board(answer(), ["ficr"]) is None


def test_a_score_carries_its_n_interval_mark_and_what_is_missing() -> None:
    rows = answer(row("a", "ficr", 0.75, ci_low=0.5, ci_high=1.0, n=1200, n_unscored=2, n_fault=1, may_equal_best=True))
    one = make_score(rows.records[0])
    assert (one.value, one.interval, one.n, one.note, one.mark, one.sort) == (
        "0.750",
        "0.500 to 1.000",
        "1,200",
        "2 unscored, 1 void",
        "ties",
        0.75,
    )
    assert make_score(None).value == "–"


def test_bars_of_a_column_share_one_axis_of_at_least_a_quarter_of_the_scale() -> None:
    bounded = row("a", "ficr", 0.5, ci_low=0.25, ci_high=0.75)
    board = drawn(bounded, row("b", "ficr", 0.25), row("c", "ficr", None))
    bars = {line.name: line.scores[0].bar for line in board.lines}
    assert bars == {"a": Bar(50.0, 0.0, 100.0), "b": Bar(0.0, 0.0, 0.0), "c": None}
    assert drawn(row("a", "ficr", 0.5)).lines[0].scores[0].bar is None, "no interval, nothing to draw"
    near = drawn(row("a", "ficr", 0.5, ci_low=0.5, ci_high=0.5), row("b", "ficr", 0.501)).lines
    (one, other) = (line.scores[0].bar for line in near)
    assert one is not None and other is not None and abs(one.value - other.value) < 1


def ranked(target: str, value: float | None, rank: int, **changes: Any) -> dict[str, Any]:
    plain = dict(zip(COLUMNS, row(target, "ficr", value), strict=True))
    return {**plain, "rank": rank, "rank_low": 1, "rank_high": 2, "ranked_among": 3, **changes}


def answered(*records: dict[str, Any]) -> QueryResult:
    return QueryResult("x", "-- ?", tuple(records[0]), tuple(tuple(record.values()) for record in records))


@pytest.mark.parametrize(
    ("ties", "says"),
    [
        ([], "With 95\u00a0% confidence it is the best of them."),
        (["b"], "With 95\u00a0% confidence 1 other may be as good: b."),
        (["b", "c"], "2 others may be as good: b, c."),
    ],
)
def test_who_leads_is_said_with_those_that_may_be_as_good(ties: list[str], says: str) -> None:
    records = [
        ranked(target, value, place, may_equal_best=target in ties, is_best=place == 1)
        for place, (target, value) in enumerate((("a", 0.75), ("b", 0.5), ("c", 0.25)), start=1)
    ]
    board = read_board(answered(*records), ["ficr"])
    assert board is not None
    told = say_who_leads(board)
    assert told.startswith("First in FICR of 3 targets: a, 0.750, n 4.")
    assert told.endswith(says)
    alone = read_board(answered(ranked("a", None, 1)), ["ficr"])
    assert alone is not None and say_who_leads(alone) == "No target has a score of FICR."


def test_what_was_named_beforehand_heads_the_board() -> None:
    plain = [ranked("a", 0.25, 1), ranked("b", 0.5, 2)]
    named = [{**record, "metric": "latent_accuracy", "value": 1 - record["value"]} for record in plain]
    rows = [{**record, "is_primary": record["metric"] == "latent_accuracy"} for record in (*plain, *named)]
    board = read_board(answered(*rows), ["ficr", "latent_accuracy"])
    assert board is not None
    assert (board.headline, board.metrics) == ("latent_accuracy", ("latent_accuracy", "ficr"))
    assert board.targets == ("a", "b")


def test_a_line_has_what_is_known_of_its_target() -> None:
    facts = {"a": {"family": "f", "thinking": True, "target_prompt_tokens": 12_340, "cost_usd": None}}
    board = read_board(answered(ranked("a", 0.5, 1), ranked("b", 0.25, 2)), ["ficr"], facts)
    assert board is not None
    block = draw_board(board, "")
    assert [cell.text for cell in block.facts] == ["family", "thinking", "tokens read"]
    assert [cell.text for cell in block.lines[0].facts] == ["f", "yes", "12.3k"]
    assert [cell.text for cell in block.lines[1].facts] == ["–", "–", "–"], "not known of b"
    assert [(line.rank, line.places) for line in block.lines] == [("1", "1–2"), ("2", "1–2")]


def test_marks_are_explained_where_there_are_any() -> None:
    plain, marked = drawn(row("a", "ficr", 0.5)), drawn(row("a", "ficr", 0.5, is_best=True))
    assert "Bold" not in explain_marks([plain, None])
    assert "may be the best" in explain_marks([plain, marked])
    assert explain_marks([None]) == ""


def test_a_missing_interval_is_explained_where_one_is_missing() -> None:
    bounded = row("a", "ficr", 0.5, ci_low=0.25, ci_high=0.75)
    boards = [
        drawn(*rows) for rows in ((bounded,), (bounded, row("b", "ficr", 0.5)), (bounded, row("b", "ficr", None)))
    ]
    why = "rests on fewer than two dialogues"
    assert [why in explain_marks([one]) for one in boards] == [False, True, False], (
        "a score that is not there has no interval"
    )
    assert "bootstrapped by dialogue" in explain_marks(boards[:1])


def test_the_fewest_conversations_are_those_of_a_shown_score_that_counts_conversations() -> None:
    rows = answer(
        row("a", "ficr", 0.5, n=12, n_unit="conversation"),
        row("b", "ficr", None, n=0, n_unit="conversation"),
        row("a", "latent_accuracy", 0.5, n=3),
        row("a", "void_share", 0.5, n=2, n_unit="conversation"),
    )
    assert fewest_conversations(rows.records, {"ficr", "latent_accuracy"}) == 12
    assert fewest_conversations(rows.records, {"latent_accuracy"}) is None


def test_a_score_of_demo_rests_on_no_more_dialogues_than_its_task_has() -> None:
    def holds(part: str, of_it: str, dialogues: int) -> dict[str, Any]:
        return {"part": part, "of_it": of_it, "from_dialogues_or_personas": dialogues}

    scores = answer(row("a", "goal", 5.0, n=60), row("a", "overall_pooled", 5.0, n=400)).records
    contents = [
        holds("awareness_items", "goal", 30),
        holds("interaction_episodes", "advice", 15),
        holds("interaction_episodes", "empathy", 10),
        holds("chat_seeds", "a", 3),
    ]
    assert fewest_dialogues(scores, contents) == 25, "interaction: 15 of advice and 10 of empathy"
    assert fewest_dialogues(scores, []) == 60
    assert fewest_dialogues([], contents) is None


def test_few_dialogues_are_a_warning_and_enough_are_none() -> None:
    assert "as few as 1 dialogue." in warn_of_few(1)
    assert "as few as 19 dialogues." in warn_of_few(19)
    assert warn_of_few(20) == warn_of_few(None) == ""


def test_a_tables_columns_are_written_by_their_names() -> None:
    columns = ("stage", "kept_percent", "cost_usd", "ci_low", "ci_high", "partial", "n")
    found = make_table(QueryResult("x", "-- ?", columns, (("a", 12.5, None, 0.25, 0.5, True, 1200),)), "caption")
    assert [cell.text for cell in found.head] == ["stage", "kept %", "cost $", "95 % interval", "partial", "n"]
    assert [cell.text for cell in found.rows[0]] == ["a", "12.5", "unknown", "0.250 to 0.500", "yes", "1,200"]
    assert [cell.sort for cell in found.rows[0]] == ["a", 12.5, None, 0.25, None, 1200]


def test_a_long_table_says_what_it_leaves_out() -> None:
    found = make_table(QueryResult("x", "-- ?", ("n",), tuple((n,) for n in range(450))), "caption")
    assert (len(found.rows), found.left_out) == (60, 390)


def test_head_to_head_every_pair_stands_twice_with_its_sign_turned() -> None:
    columns = ("target_a", "target_b", "metric", "difference", "difference_low", "difference_high", "is_apart", "n")
    pairs = QueryResult(
        "head_to_head",
        "-- ?",
        columns,
        (
            ("a", "b", "drift_latent", -0.25, -0.5, -0.125, True, 9),
            ("a", "c", "drift_latent", 0.5, -0.5, 1.5, False, 8),
        ),
    )
    scored = [row(target, "drift_latent", value) for target, value in (("a", 0.1), ("b", 0.35), ("c", 0.6))]
    board = read_board(answer(*scored), ["drift_latent"])
    assert board is not None
    matrix = draw_matrix(pairs, board, "drift_latent")
    assert matrix is not None and matrix.targets == ("a", "b", "c")
    shown = {
        (line, column): (score.value, score.interval, score.mark)
        for line, cells in zip(matrix.targets, matrix.cells, strict=True)
        for column, score in zip(matrix.targets, cells, strict=True)
    }
    assert shown["a", "b"] == ("−0.250", "−0.500 to −0.125", "ahead"), "less drift is better"
    assert shown["b", "a"] == ("+0.250", "0.125 to 0.500", "behind")
    assert shown["c", "a"] == ("−0.500", "−1.500 to 0.500", "")
    assert shown["b", "c"][0] == "–" and shown["b", "b"][0] == ""
    two = read_board(answer(*scored[:2]), ["drift_latent"])
    assert two is not None and draw_matrix(pairs, two, "drift_latent") is None
