"""From a build's views and commits to artifacts/reports/<build>/index.html, and pages of transcripts beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from tasks.foundation.llm.pricing import sum_of
from tasks.foundation.store.commits import Commit, commits_of
from tasks.foundation.store.files import write_text
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import explain_reading_errors, open_views
from tasks.report import numbers
from tasks.report.blocks import Section
from tasks.report.cost_section import cost
from tasks.report.data_sections import make_data_sections
from tasks.report.facts import collect_facts
from tasks.report.page import Tile, render, render_shelf
from tasks.report.prompt_section import prompts, read_whole
from tasks.report.questions import QueryResult, ask, rows
from tasks.report.score_sections import make_score_sections, result
from tasks.report.transcripts import LIMIT, Shelf, make_shelves

COUNTED: dict[str, tuple[str, str]] = {
    "persona_pool": ("persona in the pools", "personas in the pools"),
    "scenes": ("scene", "scenes"),
    "dialogues": ("dialogue", "dialogues"),
    "verdicts": ("label decided", "labels decided"),
    "awareness_items": ("awareness item", "awareness items"),
    "interactions": ("interaction", "interactions"),
    "conversations": ("conversation", "conversations"),
    "turn_judgements": ("judged turn", "judged turns"),
}
"""Tables whose rows are counted at the top of the page."""


INDEX = "index.html"


def write_report(layout: Layout, build: str, transcripts: int = LIMIT, *, single_file: bool = False) -> Path:
    """Write the report of a build and return where it is. StoreError for a build that does not exist.

    `transcripts`: how many of each kind are shown; `single_file`: in the report itself, not on pages beside it.
    """
    with open_views(layout, build) as connection, explain_reading_errors():
        pages = make_pages(
            connection,
            commits_of(layout, build),
            build,
            transcripts,
            read_whole(layout, build),
            single_file=single_file,
        )
    folder = layout.reports / build
    for name, html in pages.items():
        write_text(folder / name, layout.scratch, html)
    for old in folder.glob("*.html"):
        if old.name not in pages:
            old.unlink()
    return folder / INDEX


def make_pages(
    connection: duckdb.DuckDBPyConnection,
    commits: Mapping[str, Commit],
    build: str,
    transcripts: int = LIMIT,
    whole: Mapping[str, Any] | None = None,
    *,
    single_file: bool = False,
) -> dict[str, str]:
    """The pages by file name of the build that the connection shows. `whole`: of a pilot, what all of its profile
    would take."""

    @cache
    def asked(name: str) -> QueryResult:
        return ask(connection, name)

    told = rows(connection, "select distinct persona_to_target from conversations")
    sections = [
        result(asked, build),
        *make_data_sections(asked, commits, build),
        *make_score_sections(asked, build),
        prompts(asked, build, whole),
        cost(asked, commits, build),
    ]
    known = collect_facts(build, commits, rows(connection, "select * from models"), told)

    def belongs(part: Section | Shelf) -> bool:
        """All but what is empty, and about the benchmark that the build was not made for."""
        return part.holds_rows or known.only is None or part.only in (None, known.only)

    shelves = list(filter(belongs, make_shelves(connection, transcripts)))
    tiles = list(_tiles(connection, asked("costs")))
    report = render(known, tiles, list(filter(belongs, sections)), shelves, single_file=single_file)
    apart = [] if single_file else [shelf for shelf in shelves if shelf.transcripts]
    return {INDEX: report} | {shelf.file: render_shelf(shelf, shelves, build) for shelf in apart}


def _tiles(connection: duckdb.DuckDBPyConnection, costs: QueryResult) -> Iterator[Tile]:
    for table, (one, many) in COUNTED.items():
        n = rows(connection, f"select count(*) as n from {table}")[0]["n"]
        if n:
            yield Tile(numbers.count(n), one if n == 1 else many)
    if len(costs):
        spent = sum_of(record["cost_usd"] for record in costs.records)
        unpriced = {record["alias"] for record in costs.records if record["cost_usd"] is None}
        if unpriced:
            models = numbers.plural(len(unpriced), "model")
            yield Tile(f"≥ {numbers.money(spent.known)}", f"US dollars; {models} unpriced")
        else:
            yield Tile(numbers.money(spent.known), "US dollars")
        yield Tile(numbers.count(sum(record["calls"] for record in costs.records)), "model calls")
