"""A board in other hands: every form holds the numbers of the SQL, and no name can be markup."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from tasks.foundation.errors import ConfigError
from tasks.report.board_files import FORMS, TABLES, WideTable, read_wide, write_table
from tests.contract.sql_rows import Rows, _row, tables_of

WHOLE = dict.fromkeys(("pool", "language", "target", "simulator", "judge", "partner", "goal_type", "slice"))
HOSTILE = "a|b_<i>&%$#{~^\\"


def build(*scores: dict[str, Any]) -> Rows:
    """Metrics of EYT-Bench, of one target and pool each."""
    plain = {**WHOLE, "benchmark": "eyt", "metric": "satisfaction", "unit": "0-100", "n": 12, "n_unit": "conversation"}
    return {"metrics": [_row("metrics", **{**plain, "ci_low": 1.5, "ci_high": 9.25, **score}) for score in scores]}


def read(rows: Rows, *args: Any, **named: Any) -> WideTable:
    with tables_of(rows) as connection:
        return read_wide(connection, *args, **named)


TWO_POOLS = build(
    *(
        {"target": target, "pool": pool, "value": value}
        for pool, worse in ((None, 0.0), ("p", 1.0), ("q", 2.0))
        for target, value in ((HOSTILE, 7.125 - worse), ("plain", 5.5 - worse), ("nothing", None))
    )
)


class Cells(HTMLParser):
    """The texts of a table's cells, line by line."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.lines: list[list[str]] = []
        self.tags: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.lines.append([])
        elif tag in ("td", "th"):
            self.lines[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.lines and self.lines[-1]:
            self.lines[-1][-1] += data


def test_targets_stand_by_the_first_column_and_those_without_a_value_last() -> None:
    table = read(TWO_POOLS, "eyt")
    assert table.targets == (HOSTILE, "plain", "nothing")
    assert [(column.group, column.metric) for column in table.columns] == [
        (group, "satisfaction" if not place else "ficr") for group in ("all pools", "p", "q") for place in (0, 1)
    ]


def test_csv_and_json_hold_what_the_sql_holds_unrounded() -> None:
    table = read(TWO_POOLS, "eyt")
    rows = json.loads(write_table(table, "json"))
    assert rows[0]["q.satisfaction"] == 5.125
    assert (rows[0]["p.satisfaction_low"], rows[0]["p.satisfaction_high"], rows[0]["p.satisfaction_n"]) == (
        1.5,
        9.25,
        12,
    )
    assert rows[2]["all.satisfaction"] is None
    written = list(csv.DictReader(io.StringIO(write_table(table, "csv"))))
    assert [row["target"] for row in written] == [row["target"] for row in rows]
    assert float(written[1]["all.satisfaction"]) == 5.5
    assert written[0].keys() == rows[0].keys()
    one = json.loads(write_table(read(TWO_POOLS, "eyt", pool="p"), "json"))
    assert one[0]["satisfaction"] == 6.125


def test_a_name_is_no_markup_in_any_form() -> None:
    table = read(TWO_POOLS, "eyt", metrics=["satisfaction"])
    cells = Cells(write_table(table, "html"))
    assert "i" not in cells.tags
    assert [line[1] for line in cells.lines[2:]] == list(table.targets)
    columns = {len(re.findall(r"(?<!\\)\|", line)) for line in write_table(table, "md").splitlines() if line[:1] == "|"}
    assert columns == {6}, "rank, target and three columns"
    (line,) = [line for line in write_table(table, "latex").splitlines() if "textasciitilde" in line]
    assert line.count(" & ") == 4
    assert not re.search(r"(?<!\\)[%#]", line)


@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("csv", "json")])
def test_intervals_can_be_left_out(form: Any) -> None:
    table = read(TWO_POOLS, "eyt")
    assert "9.2" in write_table(table, form)
    without = write_table(table, form, intervals=False)
    assert "9.2" not in without and "95 % intervals" not in without
    assert "7.1" in without


def test_the_best_is_bold_and_those_that_may_be_as_good_are_marked() -> None:
    rows = TWO_POOLS | {
        "comparisons": [
            _row("comparisons", **{**dict.fromkeys(("pool", "pool_b", "language", "judge_a", "judge_b")), **best})
            for best in [
                {
                    "kind": "best",
                    "benchmark": "eyt",
                    "metric": "satisfaction",
                    "target_a": HOSTILE,
                    "target_b": "plain",
                }
            ]
        ],
        "ranks": [
            _row(
                "ranks",
                pool=None,
                language=None,
                benchmark="eyt",
                metric="satisfaction",
                target=target,
                rank=place,
                rank_low=1,
                rank_high=2,
                may_be_best=True,
                n_targets=2,
            )
            for place, target in ((1, HOSTILE), (2, "plain"))
        ],
    }
    table = read(rows, "eyt", pool="all", metrics=["satisfaction"])
    assert "| 1 (1–2) | " in write_table(table, "md")
    assert "**7.1** [1.5, 9.2]" in write_table(table, "md")
    assert "≈ 5.5 [1.5, 9.2]" in write_table(table, "md")
    assert r"\textbf{7.1}" in write_table(table, "latex") and r"5.5$^{\approx}$" in write_table(table, "latex")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"pool": "r"}, r"a pool that this build has scores of \(all, p, q\), found 'r'"),
        ({"language": "zh"}, r"a language that this build has scores of \(all\), found 'zh'"),
        ({"metrics": ["satisfactoin"]}, r"a metric that .* \(satisfaction\), found 'satisfactoin'"),
    ],
)
def test_what_there_is_none_of_is_refused_with_what_there_is(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read(TWO_POOLS, "eyt", **asked)


@pytest.mark.parametrize("name", TABLES)
def test_a_build_without_scores_says_so(name: Any) -> None:
    with pytest.raises(ConfigError, match="nothing has been scored"):
        read({}, name)
