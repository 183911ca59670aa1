"""Where to look first: what was scored worst, which labels were disputed most, where judges differ. Each list is a file
of sql/reports, of which the page shows some rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tasks.foundation import ROOT
from tasks.report.questions import Record
from tasks.viewer.reading import BadAsk, NotThere, Reading
from tasks.viewer.tables import PAGE_ROWS, page_of

SQL = ROOT / "sql" / "reports"


@dataclass(frozen=True, slots=True)
class Listed:
    """A list as it is declared: the file, and the columns that it can be narrowed by."""

    report: str
    title: str
    about: str
    missing: str
    filters: tuple[str, ...]


LISTS: Mapping[str, Listed] = {
    "worst": Listed(
        "worst_scored",
        "Worst scored",
        "Turns, conversations, predictions and interactions by the mean of all judges' scores in all dimensions, on "
        "0 to 1. What a fault made void is left out.",
        "Nothing has been scored yet.",
        ("kind", "target"),
    ),
    "disputed": Listed(
        "most_disputed",
        "Most disputed labels",
        "Labels that the annotators did not all keep, by the share of the panel's votes that the outcome has.",
        "No label has been voted on.",
        ("outcome",),
    ),
    "judges": Listed(
        "judge_gaps",
        "Where judges differ",
        "By judged thing and dimension, the widest gap between two judges' scores, on 0 to 1.",
        "No thing has been scored by two judges.",
        ("kind", "dimension", "target", "lowest_by", "highest_by"),
    ),
}


@dataclass(frozen=True, slots=True)
class ListPage:
    """Some rows of a list. `choices`: the values of each column that it can be narrowed by; `chosen` those that
    were."""

    name: str
    listed: Listed
    choices: Mapping[str, tuple[str, ...]]
    chosen: Mapping[str, str]
    rows: tuple[Record, ...]
    first: int
    page: int
    more: bool


def read_list(reading: Reading, name: str, query: Mapping[str, str]) -> ListPage:
    """Some rows of a list. NotThere for a list that there is none of, BadAsk for a column it is not narrowed by."""
    if name not in LISTS:
        raise NotThere(f"there is no list {name!r}; expected one of: {', '.join(LISTS)}")
    listed, page = LISTS[name], page_of(query)
    chosen = {column: value for column, value in query.items() if column not in ("page", "commit") and value}
    if unknown := set(chosen) - set(listed.filters):
        raise BadAsk(f"the list is narrowed by {', '.join(listed.filters)}; found {', '.join(sorted(unknown))}")
    sql = (SQL / f"{listed.report}.sql").read_text(encoding="utf-8")
    tests = " and ".join(f"{column} = ?" for column in chosen)
    where = f" where {tests}" if tests else ""
    offset = (page - 1) * PAGE_ROWS
    found = reading.rows(
        f"select * from (\n{sql}\n) as listed{where} limit {PAGE_ROWS + 1} offset {offset}", list(chosen.values())
    )
    values = ", ".join(f"list_sort(list(distinct {column})) as {column}" for column in listed.filters)
    choices = reading.rows(f"select {values} from (\n{sql}\n) as listed")[0]
    return ListPage(
        name=name,
        listed=listed,
        choices={column: tuple(choices[column] or ()) for column in listed.filters},
        chosen=chosen,
        rows=tuple(found[:PAGE_ROWS]),
        first=offset + 1,
        page=page,
        more=len(found) > PAGE_ROWS,
    )
