"""What the pages and `colloquy trace` show: the rows that fit, a row with its kin and requests, talks, lists, texts."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.cli import main as cli
from tasks.foundation.tables import TABLES
from tasks.viewer import cells, lists, rows, tables, talks, texts
from tasks.viewer.reading import BadAsk, Library, NotThere, Reading
from tests.contract import sql_rows
from tests.unit.viewer_build import HOSTILE, hostile_rows, write_build

MANY = 2 * tables.PAGE_ROWS + 7


def many() -> dict[str, list[dict[str, Any]]]:
    """The good build with many conversations, turns of which some have no answer, and a cell with its true counts: two
    of three items have no prediction, which by one judge would be two scores each."""
    found = sql_rows.good()
    found["metrics"] = [
        {**row, "n_unscored": 0, "n_fault": 4} if (row["metric"], row["judge"]) == ("awareness", "m1") else row
        for row in found["metrics"]
    ]
    (one,), (turn,) = found["conversations"], found["conversation_turns"]
    found["conversations"] = [
        {**one, "conversation_id": f"v{n}", "t_actual": n % 5, "fault": "target" if n % 3 else "none"}
        for n in range(MANY)
    ]
    found["conversation_turns"] = [
        {**turn, "conversation_id": f"v{n}", "assistant_text": None if n % 2 else f"Answer ÄÖ {n}"} for n in range(MANY)
    ]
    return found


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reading]:
    library = Library(write_build(tmp_path_factory.mktemp("many"), many()))
    with library.open("b1") as reading:
        yield reading
    library.close()


Fits = Callable[[dict[str, Any]], bool]


@pytest.mark.parametrize(
    ("table", "query", "fits"),
    [
        ("conversations", {}, lambda row: True),
        ("conversations", {"fault": "target"}, lambda row: row["fault"] == "target"),
        ("conversations", {"fault": "!target"}, lambda row: row["fault"] != "target"),
        ("conversations", {"t_actual": "3"}, lambda row: row["t_actual"] == 3),
        ("conversations", {"t_actual": ">=3"}, lambda row: row["t_actual"] >= 3),
        ("conversations", {"t_actual": "< 1.5"}, lambda row: row["t_actual"] < 1.5),
        (
            "conversations",
            {"t_actual": ">3", "fault": "none"},
            lambda row: row["t_actual"] > 3 and row["fault"] == "none",
        ),
        ("conversation_turns", {"assistant_text": "null"}, lambda row: row["assistant_text"] is None),
        ("conversation_turns", {"assistant_text": "!null"}, lambda row: row["assistant_text"] is not None),
        ("conversation_turns", {"assistant_text": "~äö 1"}, lambda row: "ÄÖ 1" in (row["assistant_text"] or "")),
        ("conversation_turns", {"q": "aNSWER äö 2"}, lambda row: "ÄÖ 2" in (row["assistant_text"] or "")),
        ("conversation_turns", {"q": "%"}, lambda row: False),
        ("conversations", {"commit": "whatever"}, lambda row: True),
    ],
    ids=lambda given: "" if callable(given) else str(given),
)
def test_the_rows_that_fit_are_shown_each_once_over_all_pages(
    reading: Reading, table: str, query: dict[str, str], fits: Fits
) -> None:
    expected = sorted(row["conversation_id"] for row in many()[table] if fits(row))
    for sort in ("", "conversation_id", "-conversation_id"):
        found: list[str] = []
        page, more = 1, True
        while more:
            shown = tables.read_page(reading, table, tables.Asked.of({**query, "sort": sort, "page": str(page)}))
            assert shown.total in (None, len(expected)) and len(shown.rows) <= tables.PAGE_ROWS
            found += [row["conversation_id"] for row in shown.rows]
            page, more = page + 1, shown.more
        assert sorted(found) == expected
        if sort:
            assert found == sorted(found, reverse=sort[0] == "-")


def test_no_column_is_called_as_a_part_of_an_address() -> None:
    columns = {name for table in TABLES.values() for name in table.columns}
    assert not columns & set(tables.RESERVED)


def test_a_row_has_its_parents_and_children(reading: Reading) -> None:
    page = rows.read_row(reading, "pairings", {"pairing_id": "pa1"})
    assert {(one.table, one.row is not None) for one in page.parents} == {("scenes", True), ("characters", True)}
    assert {(one.table, one.total) for one in page.children} == {("conflicts", 1), ("dialogues", 1)}
    turn = rows.read_row(reading, "conversation_turns", {"conversation_id": "v1", "turn_index": "1"})
    assert [one.table for one in turn.parents] == ["conversations"]


def test_a_parent_of_another_build_is_named_as_missing(reading: Reading) -> None:
    page = rows.read_row(reading, "characters", {"character_id": "c1"})
    assert [(one.table, one.row is None) for one in page.parents] == [("persona_candidates", False)]
    page = rows.read_row(reading, "dialogues", {"dialogue_id": "d1"})
    assert ("models", True) in {(one.table, one.row is None) for one in page.parents}


def test_a_row_with_null_in_its_key_is_found(reading: Reading) -> None:
    for row in reading.rows("select * from metrics"):
        key = {name: str(row[name]) for name in TABLES["metrics"].key if row[name] is not None}
        assert rows.read_row(reading, "metrics", key).row["value"] == row["value"]


def test_a_request_is_found_from_its_row_and_the_row_from_its_request(reading: Reading) -> None:
    prediction = rows.read_row(reading, "awareness_predictions", {"item_id": "i-goal", "target": "m3", "sample": "0"})
    assert [call["request_id"] for call in prediction.calls] == ["r3"]
    call = reading.one("select * from llm_calls where request_id = 'r3'")
    assert call is not None
    found = rows.find_asked_rows(reading, call)
    assert [(table, row["item_id"]) for table, row in found] == [("awareness_predictions", "i-goal")]


def test_a_reject_has_the_requests_of_its_row(reading: Reading) -> None:
    reject = {"stage": "awareness", "row_key": "i-goal/m3/0", "kind": "parse"}
    assert [call["request_id"] for call in rows.find_calls(reading, "rejects", reject)] == ["r3"]


def test_a_dialogue_shows_votes_with_what_was_chosen(reading: Reading) -> None:
    page = talks.read_dialogue(reading, "d1")
    element = next(one for one in page.elements if one.path == "goal.goal1")
    assert [chosen for _, chosen in element.votes] == ["y", "y", "y"]
    assert element.verdict is not None and element.verdict["outcome"] == "unanimous"
    assert [review["action"] for review in element.reviews] == ["edit", "keep"]


def test_judges_stand_side_by_side_with_the_gap_between_them(reading: Reading) -> None:
    (prediction,) = talks.read_item(reading, "i-goal").predictions
    assert prediction.judged.judges == ("m1", "m4")
    ((_, lines),) = prediction.judged.groups
    assert [(name, [mark.score for mark in marks], gap) for name, marks, gap in lines] == [
        ("accuracy", [8.0, 4.0], 4.0),
        ("hallucination", [7.0, 7.0], 0.0),
    ]


def calls_of(purposes: str) -> list[dict[str, Any]]:
    names = {"s": "simulation", "p": "perception", "g": "generation"}
    return [{"purpose": names[letter], "request_id": f"{letter}{place}"} for place, letter in enumerate(purposes)]


def test_each_turn_has_its_requests_where_they_can_be_told() -> None:
    found = talks._calls_by_turn(calls_of("pgspgs"), 2)
    told = {place: [call.request_id for call in calls] for place, calls in found.items()}
    assert told == {(1, "user"): ["p0"], (1, "target"): ["g1"], (2, "user"): ["p3", "s2"], (2, "target"): ["g4"]} | {
        (3, "user"): ["s5"]
    }
    lost = talks._calls_by_turn(calls_of("ppgsssg"), 2)
    assert {purpose for calls in lost.values() for purpose in (call.purpose for call in calls)} <= {
        "perception",
        "generation",
    }


def test_where_judges_differ_the_widest_gap_comes_first(reading: Reading) -> None:
    page = lists.read_list(reading, "judges", {})
    assert [(row["dimension"], row["gap"], row["lowest_by"]) for row in page.rows] == [
        ("accuracy", pytest.approx(0.4), "m4"),
        ("hallucination", 0.0, page.rows[1]["lowest_by"]),
    ]
    assert lists.read_list(reading, "judges", {"dimension": "hallucination"}).rows == page.rows[1:]


def test_a_list_is_ordered_over_its_pages(reading: Reading) -> None:
    page = lists.read_list(reading, "worst", {})
    scores = [row["mean_score"] for row in page.rows]
    assert scores and scores == sorted(scores)
    assert page.choices["kind"] == ("conversation", "interaction", "prediction", "turn")


def test_a_cell_tells_what_it_rests_on_and_that_it_does_not_come_to_the_value(reading: Reading) -> None:
    page = cells.read_cell(reading, {"metric": "awareness", "target": "m3", "judge": "m1"})
    assert page.agrees and page.value == 7.5 and page.panel == ("m1",)
    assert page.units is not None and page.units[0].unit["item_id"] == "i-goal"
    assert [(one.unit["fault"], one.n_fault) for one in page.units[1:]] == [("infra", 2), ("infra", 2)]
    other = cells.read_cell(reading, {"metric": "interaction", "target": "m3", "benchmark": "demo"})
    assert not other.agrees and other.lacking is not None and "changed since" in other.lacking
    with pytest.raises(NotThere, match=r"nearest: .*awareness"):
        cells.read_cell(reading, {"metric": "awarenes"})
    with pytest.raises(NotThere, match=r"awareness of these targets: m3;"):
        cells.read_cell(reading, {"metric": "awareness", "target": "m33"})
    with pytest.raises(BadAsk, match="found metric, colour"):
        cells.read_cell(reading, {"metric": "awareness", "colour": "red"})


@given(st.text())
def test_every_character_is_shown_or_has_a_sign(text: str) -> None:
    shown = texts.visible(text)
    hidden = {one for one in shown if unicodedata.category(one) in ("Cc", "Cs")} - {"\n", "\t"}
    assert not hidden and not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f]", shown)
    assert len(shown) >= len(text)
    if text.isprintable() and not re.search("[\u061c\u200b-\u206f\ufeff\ufff9-\ufffb]", text):
        assert shown == text


@given(st.text(), st.integers(1, 50))
def test_a_brief_text_is_one_line_and_short(text: str, most: int) -> None:
    shown = texts.brief(text, most)
    assert len(shown) <= most + 1 and "\n" not in shown and "\t" not in shown


class Traced:
    """`colloquy trace` over the hostile build."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch
        monkeypatch.setenv("COLLOQUY_ARTIFACTS", str(write_build(folder, hostile_rows()).root))

    def __call__(self, *words: str) -> tuple[int, str, str]:
        self._monkeypatch.setattr("sys.argv", ["colloquy", "trace", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = self._capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err


@pytest.fixture
def trace(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Traced:
    return Traced(capsys, monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("metric", "awareness", "--target", "m3", "--judge", "m1"), "awareness_predictions i-goal m3 0"),
        (("row", "scenes", "sc1"), "referred to by 1 of pairings: pa1"),
        (("row", "verdicts", "d1", "goal.goal1"), "refers to dialogues by dialogue_id: d1"),
        (("call", "r3"), "made for awareness_predictions i-goal m3 0"),
    ],
)
def test_trace_shows_what_it_was_asked_for_and_no_control_character(
    trace: Traced, words: tuple[str, ...], said: str
) -> None:
    code, out, _ = trace(*words)
    assert code == 0 and said in out
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", out)
    if words[:2] == ("row", "scenes"):
        assert "␛[31m" in out
    code, out, _ = trace(*words, "--format", "json")
    found = json.loads(out)
    assert code == 0 and isinstance(found, dict)
    if words[:2] == ("row", "scenes"):
        assert HOSTILE in found["row"].values()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("metric", "awarenes"), "nearest"),
        (("row", "scenes"), "is no id of a row"),
        (("row", "scene_0123456789abcdef"), "another build"),
        (("row", "verdicts", "d1"), "told by 2 parts (dialogue_id, element); found 1"),
        (("row", "nonsense", "x"), "expected one of"),
        (("call", "call_0123456789abcdef"), "another build"),
        (("call", "r3", "--build", "b9"), "expected one of: b1"),
    ],
)
def test_trace_says_what_is_not_there(trace: Traced, words: tuple[str, ...], said: str) -> None:
    code, out, err = trace(*words)
    assert code == 2 and not out and said in err
