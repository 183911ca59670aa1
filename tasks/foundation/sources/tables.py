"""Rows out of Arrow batches, as JSON has them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from typing import Any

import polars as pl
import pyarrow as pa

from tasks.foundation.sources.rows import Problem, SourceRow

UNHELD = (ArithmeticError, ValueError, LookupError, TypeError, OSError, pa.ArrowException)
"""What Arrow raises for a value that Python has not: too large, in an unknown time zone, not UTF-8."""
_OUT_OF_RANGE = "<value out of range"


def read_batches(batches: Iterable[pa.RecordBatch], label: str) -> Iterator[SourceRow]:
    """The rows of some batches, numbered through; text that is not UTF-8 is a problem of its row, any other value that
    Python cannot hold becomes text."""
    start = 0
    for batch in batches:
        values = _values(batch)
        text = _Json(batch) if values is not None and all(map(_is_simple, batch.schema.types)) else None
        for number, value in enumerate(_one_by_one(batch) if values is None else values):
            index, where = start + number, f"{label}:{start + number + 1}"
            if isinstance(value, Problem):
                yield SourceRow(index, where, problem=value)
            else:
                yield SourceRow(index, where, value, written=partial(text.row, number) if text else None)
        start += batch.num_rows


class _Json:
    """The rows of a batch as canonical JSON, all of them written when the first is asked for.

    One pass in native code is several times quicker than one row after the other.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    def row(self, number: int) -> str:
        return self._texts[number]

    @cached_property
    def _texts(self) -> list[str]:
        frame = pl.from_arrow(self._batch)
        assert isinstance(frame, pl.DataFrame)
        texts: list[str] = frame.select(sorted(frame.columns)).to_struct("row").struct.json_encode().to_list()
        return texts


def _values(batch: pa.RecordBatch) -> Iterable[Any] | None:
    """None where some value is none that Python has: then each row must be looked at alone."""
    try:
        values = batch.to_pylist()
    except UNHELD:
        return None
    return values if all(map(_is_plain, batch.schema.types)) else map(plain, values)


def _one_by_one(batch: pa.RecordBatch) -> Iterator[Any]:
    return (_value(batch.slice(number, 1)) for number in range(batch.num_rows))


def _value(one: pa.RecordBatch) -> Any:
    try:
        return {name: _held(column[0]) for name, column in zip(one.schema.names, one.columns, strict=True)}
    except UnicodeDecodeError as error:
        return Problem("parse", f"expected UTF-8 text, found {error}")


def _held(scalar: pa.Scalar) -> Any:
    """A cell as JSON has it; where Python has no such value (a date beyond the year 9999, a time zone that nobody
    knows), its text as Arrow writes it, or its number and unit. UnicodeDecodeError for text that is not UTF-8."""
    try:
        return plain(scalar.as_py())
    except UnicodeDecodeError:
        raise
    except UNHELD:
        if isinstance(scalar, pa.StructScalar):
            return {name: _held(inner) for name, inner in scalar.items()}
        if isinstance(scalar, pa.MapScalar):
            return [[_held(inner) for inner in entry.values()] for entry in scalar.values]
        if isinstance(scalar, pa.ListScalar | pa.LargeListScalar | pa.FixedSizeListScalar):
            return [_held(inner) for inner in scalar.values]
        return _told(scalar)


def _told(scalar: pa.Scalar) -> str | None:
    type_, zone = scalar.type, ""
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        scalar, zone = pa.scalar(scalar.value, pa.timestamp(type_.unit)), f" {type_.tz}"
    try:
        text = str(scalar.cast(pa.string()).as_py())
    except UNHELD:
        text = _OUT_OF_RANGE
    if text.startswith(_OUT_OF_RANGE) or pa.types.is_duration(type_):
        value = getattr(scalar, "value", None)
        return None if value is None else f"{value} {getattr(type_, 'unit', '')}".strip()
    return text + zone


def _is_plain(type_: pa.DataType) -> bool:
    """Whether values of an Arrow type come out as JSON has them."""
    if pa.types.is_struct(type_):
        return all(_is_plain(field.type) for field in type_)
    return _is_simple(type_) if not _is_list(type_) else _is_plain(type_.value_type)


def _is_simple(type_: pa.DataType) -> bool:
    """Whether values of an Arrow type are written by everybody alike: texts, whole numbers, lists of them."""
    if _is_list(type_):
        return _is_simple(type_.value_type)
    text = pa.types.is_string(type_) or pa.types.is_large_string(type_)
    return text or pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_null(type_)


def _is_list(type_: pa.DataType) -> bool:
    return pa.types.is_list(type_) or pa.types.is_large_list(type_)


def plain(value: Any) -> Any:
    """A value as JSON has it: NaN becomes None, dates and bytes become text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
