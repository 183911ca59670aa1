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


def read_batches(batches: Iterable[pa.RecordBatch], label: str) -> Iterator[SourceRow]:
    """The rows of some batches, numbered through; text that is not UTF-8 is a problem of its row."""
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
    """None where some text is not UTF-8: then each row must be looked at alone."""
    try:
        values = batch.to_pylist()
    except UnicodeDecodeError:
        return None
    return values if all(map(_is_plain, batch.schema.types)) else map(plain, values)


def _one_by_one(batch: pa.RecordBatch) -> Iterator[Any]:
    return (_value(batch.slice(number, 1)) for number in range(batch.num_rows))


def _value(one: pa.RecordBatch) -> Any:
    try:
        return plain(one.to_pylist()[0])
    except UnicodeDecodeError as error:
        return Problem("parse", f"expected UTF-8 text, found {error}")


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
