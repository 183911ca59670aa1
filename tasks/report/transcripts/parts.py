"""What transcripts of every kind are made of, and how rows become their words."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from tasks.report import numbers
from tasks.report.blocks import Benchmark
from tasks.report.questions import Record, rows

LONGEST_TEXT = 8000
"""Characters of one text; the rest is counted."""

LONGEST_TITLE, LONGEST_NAME = 80, 30
"""Characters of what a title is about, and of each name in it."""

_UNSEEN = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")
"""Control characters, and those that turn the direction of the text around them."""


@dataclass(frozen=True, slots=True)
class Label:
    """`found`: None shows only `gold`. `right` None: neither."""

    name: str
    gold: str
    found: str | None = None
    right: bool | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table under a transcript: what, its value, how it came about, and why."""

    what: str
    value: str
    how: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A folded table: judgements of a turn, or verdicts."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One thing said. `side`: 1 or 2, whose. `labels` and `sheets` belong to it."""

    speaker: str
    text: str
    side: int
    labels: tuple[Label, ...] = ()
    sheets: tuple[Sheet, ...] = ()


@dataclass(frozen=True, slots=True)
class Transcript:
    """`facets`: what readers filter by; `about`: facts above the first line; `after`: what is judged as a whole."""

    id: str
    title: str
    facets: tuple[tuple[str, str], ...]
    about: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]
    after: tuple[Sheet, ...] = ()


@dataclass(frozen=True, slots=True)
class Shelf:
    """The transcripts of one kind; `total` are there, `chosen` says how those shown were."""

    anchor: str
    title: str
    transcripts: tuple[Transcript, ...]
    total: int
    chosen: str
    missing: str
    only: Benchmark
    """The benchmark that they belong to."""

    @property
    def holds_rows(self) -> bool:
        return self.total > 0

    @property
    def file(self) -> str:
        """The name of its page."""
        return f"{self.anchor}.html"

    @property
    def left_out(self) -> int:
        return self.total - len(self.transcripts)

    @property
    def facets(self) -> list[tuple[str, list[str]]]:
        """Each facet with its values, where there is a choice."""
        values: dict[str, set[str]] = defaultdict(set)
        for transcript in self.transcripts:
            for name, value in transcript.facets:
                values[name].add(value)
        return [(name, sorted(found)) for name, found in values.items() if len(found) > 1]


def shorten(text: str) -> str:
    """The text as the page shows it: without characters that cannot be seen, and cut with a count when very long."""
    clean = _UNSEEN.sub("\ufffd", text)
    if len(clean) <= LONGEST_TEXT:
        return clean
    return f"{clean[:LONGEST_TEXT]}… ({len(clean) - LONGEST_TEXT:,} more characters)"


def make_title(text: str, longest: int = LONGEST_TITLE) -> str:
    """The text as part of a title: one line, and when long cut at the end of a word, where it has
    words, with an ellipsis."""
    clean = " ".join(shorten(text).split())
    if len(clean) <= longest:
        return clean
    words = clean[: longest + 1].rpartition(" ")[0].rstrip(" ,;:.")
    return f"{words if len(words) > longest / 2 else clean[:longest]}…"


def compare_labels(kind: str, gold: str, predicted: str | None) -> Label:
    return Label(kind, gold, "unreadable" if predicted is None else predicted, gold == predicted)


def list_known(*facts: tuple[str, Any]) -> tuple[tuple[str, str], ...]:
    """The facts that are known."""
    return tuple((name, shorten(str(value))) for name, value in facts if value not in (None, ""))


def explain_missing(judgement: Record) -> str:
    kind = judgement["unscored_kind"]
    return f": unscored, {numbers.words(kind)}" if kind else ", by rule" if judgement["scored_by"] == "rule" else ""


def explain_scoring(judgement: Record) -> str:
    return explain_missing(judgement).lstrip(":, ")


def name_fault(row: Record) -> str:
    return "no fault" if row["fault"] == "none" else f"fault: {row['fault']}"


def yes_or_no(completed: bool | None) -> str:
    return "unscored" if completed is None else "completed" if completed else "not completed"


def or_dash(value: float | None) -> str:
    return numbers.MISSING if value is None else f"{value:g}"


def find_reason(reasons: Any, name: str) -> str:
    """The reason for one score; what is no object of reasons is shown for every score."""
    if isinstance(reasons, Mapping):
        reasons = reasons.get(name)
    return shorten(str(reasons)) if reasons else ""


def parse_json(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


def plain(text: str) -> str:
    """A JSON value as people write it: a string without quotes, anything else as JSON."""
    value = parse_json(text)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def pretty(text: str) -> str:
    value = parse_json(text)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def read_rows_among(
    connection: duckdb.DuckDBPyConnection, table: str, key: str, ids: Sequence[str], order: str
) -> list[Record]:
    """The rows of a table that belong to the given ids, in order."""
    return rows(connection, f"select * from {table} where list_contains(?, {key}) order by {key}, {order}", [list(ids)])


def group_by_key(records: Iterable[Record], *key: str) -> defaultdict[tuple[Any, ...], list[Record]]:
    found: defaultdict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        found[tuple(record[name] for name in key)].append(record)
    return found


def count_rows(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    return int(rows(connection, f"select count(*) as n from {table}")[0]["n"])
