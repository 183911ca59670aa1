"""Rows out of Arrow batches, as JSON has them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from tasks.foundation.sources.rows import Problem, SourceRow


def read_batches(batches: Iterable[pa.RecordBatch | pa.Table], label: str) -> Iterator[SourceRow]:
    """The rows of some batches of one schema, numbered through; text that is not UTF-8 is a problem of its row."""
    index = 0
    for batch in batches:
        for value in _values(batch):
            where = f"{label}:{index + 1}"
            if isinstance(value, Problem):
                yield SourceRow(index, where, problem=value)
            else:
                yield SourceRow(index, where, value=value)
            index += 1


def _values(batch: pa.RecordBatch | pa.Table) -> Iterable[Any]:
    try:
        values = batch.to_pylist()
    except UnicodeDecodeError:
        return (_value(batch.slice(number, 1)) for number in range(batch.num_rows))
    return values if all(map(is_plain, batch.schema.types)) else map(plain, values)


def _value(one: pa.RecordBatch | pa.Table) -> Any:
    try:
        return plain(one.to_pylist()[0])
    except UnicodeDecodeError as error:
        return Problem("parse", f"expected UTF-8 text, found {error}")


def is_plain(type_: pa.DataType) -> bool:
    """Whether values of an Arrow type come out as JSON has them."""
    if pa.types.is_struct(type_):
        return all(is_plain(field.type) for field in type_)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return is_plain(type_.value_type)
    text = pa.types.is_string(type_) or pa.types.is_large_string(type_)
    return text or pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_null(type_)


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
