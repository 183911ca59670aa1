"""Rows out of JSON texts and out of Arrow batches, both as JSON has them.

What no table can hold, or what is given twice, is a fault of its row and of no other.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Any

import polars as pl
import pyarrow as pa

from tasks.foundation.settings.strict_yaml import build_object
from tasks.foundation.sources.rows import Problem, SourceRow

DEEPEST = 50
"""Levels of lists and objects in a row."""


def parse_json(text: str) -> Any:
    """JSON as the standard has it; ValueErrors are NaN, Infinity, a number beyond 64-bit floats, half a surrogate pair
    (no table holds it), a key given twice with different values, and levels beyond DEEPEST."""
    value = _DECODER.decode(text)
    _refuse_unheld(value, text)
    return value


def read_json_rows(text: str, label: str) -> Iterator[SourceRow]:
    """The rows of a text that is one array of them, or one object: a single row; ValueError where it is no JSON."""
    try:
        whole = parse_json(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        yield from _rows_one_by_one(text, label)
        return
    for index, value in enumerate(whole if isinstance(whole, list) else [whole]):
        yield SourceRow(index, f"{label}:{index + 1}", value=value)


def _rows_one_by_one(text: str, label: str) -> Iterator[SourceRow]:
    """The rows of JSON in which some hold what they may not: each is found first and parsed for itself."""
    _EXTENT_DECODER.decode(text)  # where the whole is no JSON, no row is given
    for index, row in enumerate(_split_array(text)):
        where = f"{label}:{index + 1}"
        try:
            yield SourceRow(index, where, value=parse_json(row))
        except ValueError as error:
            reason = f"expected a row of JSON, found one in which {error}"
            yield SourceRow(index, where, problem=Problem("parse", reason))


def _split_array(text: str) -> Iterator[str]:
    """The texts of the entries of a valid array; of other JSON the whole text."""
    place = _skip_space(text, 0)
    if text[place] != "[":
        yield text
        return
    while text[place] != "]":
        start = _skip_space(text, place + 1)
        if text[start] == "]":
            return
        _, end = _EXTENT_DECODER.raw_decode(text, start)
        yield text[start:end]
        place = _skip_space(text, end)


def _skip_space(text: str, start: int) -> int:
    while text[start] in " \t\n\r":
        start += 1
    return start


def _refuse_unheld(value: Any, text: str) -> None:
    if text.count("[") + text.count("{") > DEEPEST and is_nested_beyond(DEEPEST, value):
        raise ValueError(f"nested more than {DEEPEST} levels deep")
    if "\\ud" in text.lower():
        json.dumps(value, ensure_ascii=False).encode("utf-8")


def is_nested_beyond(levels: int, value: Any) -> bool:
    """Whether lists and objects stand within one another at more levels; looked at no deeper than that."""
    level = [value]
    for _ in range(levels + 1):
        lists = [each for each in level if isinstance(each, list)]
        objects = [each.values() for each in level if isinstance(each, dict)]
        level = [inner for each in (*lists, *objects) for inner in each]
    return bool(level)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is larger than any 64-bit number")
    return number


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=build_object)
_EXTENT_DECODER = json.JSONDecoder(parse_constant=len, parse_float=len, parse_int=len)
"""Takes everything that is written like JSON: for where a value ends, not for what it is."""

UNHELD = (ArithmeticError, ValueError, LookupError, TypeError, OSError, pa.ArrowException)
"""What Arrow raises for a value that Python has not: too large, in an unknown time zone, not UTF-8."""
_OUT_OF_RANGE = "<value out of range"


def read_batches(batches: Iterable[pa.RecordBatch], label: str) -> Iterator[SourceRow]:
    """The rows of some batches, numbered through; text that is not UTF-8 is a problem of its row, any other value that
    Python cannot hold becomes text."""
    start = 0
    for batch in batches:
        values = _read_rows(batch)
        write = _writer_of(batch) if values is not None and all(map(_is_simple, batch.schema.types)) else None
        one_by_one = (_read_row(batch.slice(number, 1)) for number in range(batch.num_rows))
        for number, value in enumerate(one_by_one if values is None else values):
            index, where = start + number, f"{label}:{start + number + 1}"
            if isinstance(value, Problem):
                yield SourceRow(index, where, problem=value)
            else:
                yield SourceRow(index, where, value, written=partial(write, number) if write else None)
        start += batch.num_rows


def _writer_of(batch: pa.RecordBatch) -> Callable[[int], str]:
    """Rows of a batch, by number, as canonical JSON, all of them written when the first is asked for.

    One pass in native code is several times quicker than one row after the other.
    """

    @cache
    def write() -> list[str]:
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame)
        texts: list[str] = frame.select(sorted(frame.columns)).to_struct("row").struct.json_encode().to_list()
        return texts

    return lambda number: write()[number]


def _read_rows(batch: pa.RecordBatch) -> Iterable[Any] | None:
    """None where some value is none that Python has: then each row must be looked at alone."""
    try:
        values = batch.to_pylist()
    except UNHELD:
        return None
    return values if all(map(_is_plain, batch.schema.types)) else map(to_plain, values)


def _read_row(one: pa.RecordBatch) -> Any:
    try:
        return {name: _read_cell(column[0]) for name, column in zip(one.schema.names, one.columns, strict=True)}
    except UnicodeDecodeError as error:
        return Problem("parse", f"expected UTF-8 text, found {error}")


def _read_cell(scalar: pa.Scalar) -> Any:
    """A cell as JSON has it; where Python has no such value (a date beyond the year 9999, a time zone that nobody
    knows), its text as Arrow writes it, or its number and unit. UnicodeDecodeError for text that is not UTF-8."""
    try:
        return to_plain(scalar.as_py())
    except UnicodeDecodeError:
        raise
    except UNHELD:
        if isinstance(scalar, pa.StructScalar):
            return {name: _read_cell(inner) for name, inner in scalar.items()}
        if isinstance(scalar, pa.MapScalar):
            return [[_read_cell(inner) for inner in entry.values()] for entry in scalar.values]
        if isinstance(scalar, pa.ListScalar | pa.LargeListScalar | pa.FixedSizeListScalar):
            return [_read_cell(inner) for inner in scalar.values]
        return _written_by_arrow(scalar)


def _written_by_arrow(scalar: pa.Scalar) -> str | None:
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


def to_plain(value: Any) -> Any:
    """A value as JSON has it: NaN becomes None, dates and bytes become text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return {str(name): to_plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(inner) for inner in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
