"""Measures committed tables: how many rows there are of each kind, and how much the shortest and longest hold.

The only part of planning that reads anything; a table is read column by column, and only those that prompts show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tasks.foundation.planning.estimate import Kind, Known, Portion
from tasks.foundation.planning.span import Span
from tasks.foundation.store.commits import Commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.tables import TABLES, Row

Read = Callable[[str, Sequence[str]], pl.LazyFrame | None]
"""Columns of a committed table; None where no commit holds it."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How one table is measured. `by`: columns whose values set portions apart. `joined`: tables that lend
    columns, each by its key. `columns`: those that prompts show (None: all). `where`: which rows count."""

    by: tuple[str, ...] = ("language",)
    joined: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] | None = None
    where: pl.Expr | None = None


_TALK = (("chat_seeds", "chat_seed_id"),)
_STANDS = ~pl.col("fault").is_in(["infra", "simulator"])

MEASURES: dict[str, Measure] = {
    "persona_pool": Measure(by=("pool",), columns=("pool",)),
    "persona_candidates": Measure(
        columns=("persona_id", "language", "description"), joined=(("persona_pool", "persona_id"),)
    ),
    "characters": Measure(),
    "scenes": Measure(),
    "conflicts": Measure(joined=(("pairings", "pairing_id"),), where=pl.col("selected")),
    "dialogues": Measure(),
    "utterances": Measure(joined=(("dialogues", "dialogue_id"),)),
    "awareness_items": Measure(by=("language", "task")),
    "interaction_episodes": Measure(),
    "chat_seeds": Measure(where=pl.col("error").is_null()),
    "awareness_predictions": Measure(by=("language", "task"), joined=(("awareness_items", "item_id"),)),
    "interactions": Measure(joined=(("interaction_episodes", "episode_id"),)),
    "interaction_turns": Measure(joined=(("interactions", "interaction_id"), ("interaction_episodes", "episode_id"))),
    "conversations": Measure(joined=_TALK, where=_STANDS),
    "conversation_turns": Measure(
        by=("language", "turn_index"), joined=(("conversations", "conversation_id"), *_TALK), where=_STANDS
    ),
}
"""The tables that estimates look at."""

LENT = ("language", "task", "fault")
"""What a joined table may lend."""


def committed(layout: Layout, commits: Iterable[Commit], others: Iterable[Commit] = ()) -> Read:
    """Reads the tables that `commits` hold, all of them together, and from `others` those that they do not.

    A column that an older commit lacks reads as null.
    """
    first, second = list(commits), list(others)

    def read(table: str, columns: Sequence[str]) -> pl.LazyFrame | None:
        holding = [commit for commit in first if table in commit.tables]
        holding = holding or [commit for commit in second if table in commit.tables]
        if not holding:
            return None
        paths = [layout.root / part.path for commit in holding for part in commit.tables[table] if part.rows]
        empty = pl.from_arrow(TABLES[table].schema.empty_table())
        assert isinstance(empty, pl.DataFrame)
        if not paths:
            return empty.lazy().select(columns)
        rows = pl.scan_parquet(
            paths,
            schema=empty.schema,
            missing_columns="insert",
            extra_columns="ignore",
            hive_partitioning=False,
            glob=False,
        )
        return rows.select(columns)

    return read


def known_of(read: Read, tables: Sequence[str]) -> Known:
    """What is known of those of the tables that estimates look at and that have been committed."""
    found: dict[str, Sequence[Portion]] = {}
    for table in tables:
        if table in MEASURES and (portions := _portions(read, table, MEASURES[table])) is not None:
            found[table] = portions
    return found


def _portions(read: Read, table: str, measure: Measure) -> Sequence[Portion] | None:
    own = tuple(TABLES[table].columns) if measure.columns is None else measure.columns
    rows, there = read(table, own), set(own)
    for other, key in measure.joined:
        keys = [key for _, key in measure.joined]
        lent = [name for name in (*LENT, *keys) if name in TABLES[other].columns and name not in there]
        more = read(other, [key, *lent])
        if rows is None or more is None:
            return None
        rows, there = rows.join(more.unique(), on=key, how="inner"), there | set(lent)
    if rows is None:
        return None
    frame = (rows if measure.where is None else rows.filter(measure.where)).collect()
    parts = frame.partition_by(list(measure.by), as_dict=True, maintain_order=True) if frame.height else {}
    return [_portion(table, part.select(own), dict(zip(measure.by, key, strict=True))) for key, part in parts.items()]


def _portion(table: str, frame: pl.DataFrame, facets: Mapping[str, Any]) -> Portion:
    short, long = (
        _row(table, {name: _extreme(frame, name, most=most) for name in frame.columns}) for most in (False, True)
    )
    kind = Kind(facets.get("language", "en"), short, long, facets.get("task", ""))
    return Portion(Span.exactly(frame.height), (kind,))


def _row(table: str, values: Mapping[str, Any]) -> Row:
    """A row of the table; of some columns only where only those were read."""
    model = TABLES[table].row
    return model.model_validate(values) if len(values) == len(model.model_fields) else model.model_construct(**values)


def _extreme(frame: pl.DataFrame, column: str, *, most: bool) -> Any:
    weights = frame.select(_weight(pl.col(column), frame.schema[column]).fill_null(0).alias("weight"))["weight"]
    place = weights.arg_max() if most else weights.arg_min()
    found = frame[column][place or 0]
    return found.to_list() if isinstance(found, pl.Series) else found


def _weight(value: pl.Expr, kind: Any) -> pl.Expr:
    """How much a value of a Polars type says: bytes of its texts, and numbers as they are."""
    if isinstance(kind, pl.Struct):
        return pl.sum_horizontal(_weight(value.struct.field(part.name), part.dtype) for part in kind.fields)
    if isinstance(kind, pl.List):
        return value.list.eval(_weight(pl.element(), kind.inner)).list.sum()
    if kind == pl.String:
        return value.str.len_bytes()
    return value.cast(pl.Float64)
