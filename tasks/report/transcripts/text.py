"""How rows become the words of a transcript."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb

from tasks.report import numbers
from tasks.report.questions import Record, rows
from tasks.report.transcripts.shelf import Label

LONGEST_TEXT = 8000
"""Characters of one text; the rest is counted."""

LONGEST_TITLE, LONGEST_NAME = 80, 30
"""Characters of what a title is about, and of each name in it."""

_UNSEEN = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")
"""Control characters, and those that turn the direction of the text around them."""


def shortened(text: str) -> str:
    """The text as the page shows it: without characters that cannot be seen, and cut with a count when very long."""
    clean = _UNSEEN.sub("\ufffd", text)
    if len(clean) <= LONGEST_TEXT:
        return clean
    return f"{clean[:LONGEST_TEXT]}… ({len(clean) - LONGEST_TEXT:,} more characters)"


def titled(text: str, longest: int = LONGEST_TITLE) -> str:
    """The text as part of a title: one line, and when long cut at the end of a word, where it has
    words, with an ellipsis."""
    clean = " ".join(shortened(text).split())
    if len(clean) <= longest:
        return clean
    words = clean[: longest + 1].rpartition(" ")[0].rstrip(" ,;:.")
    return f"{words if len(words) > longest / 2 else clean[:longest]}…"


def compared(kind: str, gold: str, predicted: str | None) -> Label:
    return Label(kind, gold, "unreadable" if predicted is None else predicted, gold == predicted)


def about_of(*facts: tuple[str, Any]) -> tuple[tuple[str, str], ...]:
    """The facts that are known."""
    return tuple((name, shortened(str(value))) for name, value in facts if value not in (None, ""))


def how_missing(judgement: Record) -> str:
    kind = judgement["unscored_kind"]
    return f": unscored, {numbers.words(kind)}" if kind else ", by rule" if judgement["scored_by"] == "rule" else ""


def how_scored(judgement: Record) -> str:
    return how_missing(judgement).lstrip(":, ")


def fault_of(row: Record) -> str:
    return "no fault" if row["fault"] == "none" else f"fault: {row['fault']}"


def yes_or_no(completed: bool | None) -> str:
    return "unscored" if completed is None else "completed" if completed else "not completed"


def or_dash(value: float | None) -> str:
    return numbers.MISSING if value is None else f"{value:g}"


def reason_of(reasons: Any, name: str) -> str:
    """The reason for one score; what is no object of reasons is shown for every score."""
    if isinstance(reasons, Mapping):
        reasons = reasons.get(name)
    return shortened(str(reasons)) if reasons else ""


def parsed(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


def plain(text: str) -> str:
    """A JSON value as people write it: a string without quotes, anything else as JSON."""
    value = parsed(text)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def pretty(text: str) -> str:
    value = parsed(text)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def rows_among(
    connection: duckdb.DuckDBPyConnection, table: str, key: str, ids: Sequence[str], order: str
) -> list[Record]:
    """The rows of a table that belong to the given ids, in order."""
    return rows(connection, f"select * from {table} where list_contains(?, {key}) order by {key}, {order}", [list(ids)])


def by_key(records: Iterable[Record], *key: str) -> defaultdict[tuple[Any, ...], list[Record]]:
    found: defaultdict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        found[tuple(record[name] for name in key)].append(record)
    return found


def total_of(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    return int(rows(connection, f"select count(*) as n from {table}")[0]["n"])
