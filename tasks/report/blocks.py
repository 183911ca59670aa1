"""What a section of the page consists of: notes, tables, figures and boards, already in words.

Everything here is plain text; the templates escape it. Only a figure's `svg` is markup, made by `charts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from tasks.report import numbers
from tasks.report.questions import QueryResult, Record

MOST_ROWS = 60
"""Rows of one table on the page; the SQL has them all."""

Benchmark = Literal["demo", "eyt"]
INTERVAL = "95 % interval"


@dataclass(frozen=True, slots=True)
class Note:
    kind: ClassVar[str] = "note"
    text: str
    tone: str = "plain"
    """`plain`, `warning`, or `missing` for what a section lacks."""
    command: str = ""
    """A command that would change that."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names and what is said of them, from elsewhere than SQL: the caption says where."""

    kind: ClassVar[str] = "pairs"
    caption: str
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart; `description` says in words what it shows, for those who cannot see it."""

    kind: ClassVar[str] = "figure"
    caption: str
    svg: str
    description: str
    width: int


@dataclass(frozen=True, slots=True)
class Cell:
    """`sort` is what the column is sorted by: a number, or the text itself; `stands_out`: a reader should see it."""

    text: str
    numeric: bool = False
    sort: float | str | None = None
    stands_out: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of an answer. `left_out`: rows that are not on the page."""

    kind: ClassVar[str] = "table"
    caption: str
    head: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    source: QueryResult
    left_out: int = 0
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A value and the ends of its interval on the axis of its column, in percent of the axis."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Score:
    """One number of a board. `note`: what is missing from it; `mark`: `best`, `ties`, `apart` or nothing; `worst`:
    where it could lie whatever the void ones were, where they are many."""

    value: str
    interval: str
    n: str
    note: str = ""
    mark: str = ""
    sort: float | None = None
    bar: Bar | None = None
    worst: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a metric's column: `name` is the one in the table `metrics`, `better` which end is; `shown`: at
    first."""

    name: str
    label: str
    unit: str
    n_unit: str
    better: str = ""
    shown: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """A target's line: its rank and the places that the data leave it, its scores, how many units it has and how many
    are void, and what else is known of it."""

    name: str
    rank: str
    places: str
    scores: tuple[Score, ...]
    counts: tuple[Cell, ...]
    facts: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class BoardBlock:
    """`of`: what the lines are; `facts`: the heads of what else is known of them."""

    kind: ClassVar[str] = "board"
    caption: str
    of: str
    heads: tuple[Head, ...]
    facts: tuple[Cell, ...]
    lines: tuple[Line, ...]
    source: QueryResult
    ranked: bool = False
    counted: bool = False
    folded: bool = False

    @property
    def rows(self) -> tuple[Line, ...]:
        return self.lines


@dataclass(frozen=True, slots=True)
class Matrix:
    """Every target against every other: `cells` [row][column], what the row's is more than the column's; `ahead`,
    `behind` or nothing as mark. The diagonal is empty."""

    kind: ClassVar[str] = "matrix"
    caption: str
    targets: tuple[str, ...]
    cells: tuple[tuple[Score, ...], ...]
    source: QueryResult
    folded: bool = True

    @property
    def rows(self) -> tuple[str, ...]:
        return self.targets


@dataclass(frozen=True, slots=True)
class Excerpts:
    """Long texts to open and read: examples, each with a title and its parts (name, text)."""

    kind: ClassVar[str] = "excerpts"
    caption: str
    examples: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


Block = Note | Pairs | Figure | Table | BoardBlock | Matrix | Excerpts


@dataclass(frozen=True, slots=True)
class Group:
    """A part of a section under a heading of its own; without a heading: the section's first part."""

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Section:
    anchor: str
    title: str
    intro: str
    groups: tuple[Group, ...] = field(default=())
    only: Benchmark | None = None
    """The one benchmark that it is about."""

    @property
    def holds_rows(self) -> bool:
        """Whether it has anything but notes."""
        return any(not isinstance(block, Note) for group in self.groups for block in group.blocks)


def make_table(
    answer: QueryResult,
    caption: str,
    *,
    drop: Iterable[str] = (),
    folded: bool = False,
) -> Table:
    """An answer as a table: a column's form follows from its name; the two ends of an interval become one column."""
    columns = [name for name in answer.columns if name not in {*drop, "ci_high", "difference_high"}]
    numeric = {name: _is_numeric(answer, name) for name in columns}
    shown = answer.records[:MOST_ROWS]
    return Table(
        caption,
        tuple(Cell(_label(name), numeric[name]) for name in columns),
        tuple(tuple(_cell(record, name, numeric[name]) for name in columns) for record in shown),
        answer,
        max(len(answer) - MOST_ROWS, 0),
        folded,
    )


def make_filled_table(
    answer: QueryResult, caption: str, *, drop: Iterable[str] = (), folded: bool = False
) -> Table | None:
    """The answer's table; None when it has no rows."""
    return make_table(answer, caption, drop=drop, folded=folded) if len(answer) else None


_NAMES = {
    "found": "value",
    "of_it": "task, goal type or pool",
    "p_holm": "p (Holm)",
    "from_dialogues_or_personas": "dialogues or personas",
}


def _label(name: str) -> str:
    if name in ("ci_low", "difference_low"):
        return INTERVAL
    if name in _NAMES:
        return _NAMES[name]
    if "percent" in name:
        return numbers.words(name.replace("percent", "%"))
    if name.endswith("_usd"):
        return f"{numbers.words(name.removesuffix('_usd'))} $"
    return numbers.words(name)


def _is_numeric(answer: QueryResult, name: str) -> bool:
    place = answer.columns.index(name)
    values = [row[place] for row in answer.rows if row[place] is not None]
    return bool(values) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


_FORMS: dict[str, Callable[[Any], str]] = {
    "cost_usd": numbers.money,
    "seconds": numbers.seconds,
    "seconds_in_calls": numbers.seconds,
    "p_holm": numbers.p_value,
}


def _cell(record: Record, name: str, numeric: bool) -> Cell:
    value = record[name]
    if name in ("ci_low", "difference_low"):
        high = record["ci_high" if name == "ci_low" else "difference_high"]
        return Cell(numbers.interval(value, high, record.get("unit") or "") or numbers.MISSING, True, value)
    if name in _FORMS:
        return Cell(_FORMS[name](value), True, value)
    if value is None:
        return Cell(numbers.MISSING, numeric)
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if isinstance(value, int):
        return Cell(numbers.count(value), True, value)
    if isinstance(value, float):
        in_percent = "percent" in name
        text = numbers.percent(value) if in_percent else numbers.number(value, record.get("unit") or "")
        return Cell(text, True, value)
    return Cell(str(value), sort=str(value))


def make_section(
    anchor: str,
    title: str,
    intro: str,
    groups: Sequence[tuple[str, Sequence[Block | None]]],
    missing: Note,
    only: Benchmark | None = None,
) -> Section:
    """A section of the groups that have anything in them; with nothing at all, what it lacks."""
    kept = [Group(heading, tuple(block for block in blocks if block is not None)) for heading, blocks in groups]
    filled = tuple(group for group in kept if any(not isinstance(block, Note) for block in group.blocks))
    return Section(anchor, title, intro, filled or (Group("", (missing,)),), only)
