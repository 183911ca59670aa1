"""What tables are made of: column types (annotations on a row model, and the Arrow type each one stands for), and a
declared table: its row model, key and grain, and the one Arrow schema that follows from them.

>>> str(arrow_type(Int32 | None))
'int32'
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, Literal, get_args, get_origin, overload

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasks.foundation.errors import TableError


@dataclass(frozen=True, slots=True)
class Arrow:
    """Marks an annotation with the Arrow type it is stored as."""

    type: pa.DataType


Int32 = Annotated[int, Arrow(pa.int32()), Field(ge=-(2**31), lt=2**31)]
Int64 = Annotated[int, Arrow(pa.int64()), Field(ge=-(2**63), lt=2**63)]
Float32 = Annotated[float, Arrow(pa.float32()), Field(allow_inf_nan=False)]
Float64 = Annotated[float, Arrow(pa.float64()), Field(allow_inf_nan=False)]
_AS_JSON = Arrow(pa.utf8())
Json = Annotated[str, _AS_JSON]
"""utf8 holding canonical JSON."""
Score10 = Annotated[int, Arrow(pa.int32()), Field(ge=0, le=10)]
"""An integer from 0 to 10."""
Language = Literal["en", "zh"]

_PLAIN: dict[Any, pa.DataType] = {
    str: pa.utf8(),
    bool: pa.bool_(),
    datetime: pa.timestamp("us", tz="UTC"),
}


class Row(BaseModel):
    """Base of every row model: frozen, nothing extra, no silent conversion of wrong types."""

    # Few of the forty models are needed in one process, and building what checks their rows takes milliseconds each.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


def is_optional(annotation: Any) -> bool:
    """Whether the annotation admits None."""
    return type(None) in get_args(annotation) and get_origin(annotation) in (typing.Union, types.UnionType)


def _without_none(annotation: Any) -> Any:
    if not is_optional(annotation):
        return annotation
    rest = [a for a in get_args(annotation) if a is not type(None)]
    if len(rest) != 1:
        raise TypeError(f"a column has one type or one type and None, found {annotation!r}")
    return rest[0]


def arrow_type(annotation: Any, metadata: typing.Sequence[Any] = ()) -> pa.DataType:
    """The Arrow type of a column annotation; TypeError for one that no column may have."""
    for mark in metadata:
        if isinstance(mark, Arrow):
            return mark.type
    annotation = _without_none(annotation)
    if get_origin(annotation) is Annotated:
        base, *marks = get_args(annotation)
        return arrow_type(base, marks)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if get_origin(annotation) is Literal:
        return pa.utf8()
    if get_origin(annotation) is list:
        return pa.list_(arrow_type(get_args(annotation)[0]))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return pa.struct(arrow_fields(annotation))
    raise TypeError(f"no Arrow type is declared for {annotation!r}")


def arrow_fields(model: type[BaseModel]) -> list[pa.Field]:
    """The Arrow fields of a row model in declaration order, nullable where the annotation admits None."""
    return [
        pa.field(name, arrow_type(info.annotation, info.metadata), nullable=is_optional(info.annotation))
        for name, info in model.model_fields.items()
    ]


@dataclass(frozen=True)
class Table:
    """A table as declared once in `TABLES`.

    `key` names the columns that identify a row; `grain` is one line: what one row is. `beside` names a table with
    the same key whose other columns the view shows too, null where it has no such row.
    """

    name: str
    row: type[Row]
    key: tuple[str, ...]
    grain: str
    beside: str | None = None

    @cached_property
    def schema(self) -> pa.Schema:
        """The one Arrow schema of every part of this table."""
        return pa.schema(arrow_fields(self.row))

    @property
    def shape(self) -> dict[str, str]:
        """Its columns, each with the name of its Arrow type."""
        return {field.name: str(field.type) for field in self.schema}

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.row.model_fields)

    @property
    def json_columns(self) -> frozenset[str]:
        """Those that hold canonical JSON."""
        return frozenset(
            name
            for name, info in self.row.model_fields.items()
            if _AS_JSON in (*info.metadata, *get_args(_without_none(info.annotation))[1:])
        )

    def arrow(self, rows: Iterable[Row | Mapping[str, Any]]) -> pa.Table:
        """`rows` as an Arrow table of this schema, columns by name.

        Raises TableError for a row that does not fit (wrong type, unknown or missing column, NaN).
        """
        if isinstance(rows, HeldRows) and rows.table is self:
            return rows.held
        checked = [self._checked(row) for row in rows]
        try:
            return pa.Table.from_pylist(checked, schema=self.schema)
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise TableError(f"table {self.name}: rows do not fit its Arrow schema: {error}") from error

    def batch(self, columns: Mapping[str, Sequence[Any]]) -> pa.RecordBatch:
        """Values by column as an Arrow batch of this schema: the quick way for rows that other code has checked.

        Raises TableError for a missing column and for values that do not fit their Arrow type.
        """
        try:
            arrays = [pa.array(columns[field.name], field.type) for field in self.schema]
            return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        except (pa.ArrowException, KeyError, ValueError, OverflowError) as error:
            raise TableError(f"table {self.name}: columns do not fit its Arrow schema: {error}") from error

    def holding(self, rows: pa.Table) -> HeldRows:
        """Rows that were read from a part of a table with these columns, as rows of this table."""
        return HeldRows(self, rows.select(self.schema.names).cast(self.schema))

    def _checked(self, row: Row | Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(row, self.row):
            row = self._validated(row)
        plain = row.model_dump()
        _refuse_nan(plain, self.name)
        return plain

    def _validated(self, row: Row | Mapping[str, Any]) -> Row:
        if isinstance(row, BaseModel):
            raise TableError(f"table {self.name}: expected {self.row.__name__} rows, found {type(row).__name__}")
        try:
            return self.row.model_validate(dict(row))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise TableError(
                f"table {self.name}, column {where}: {first['msg']}, found {first.get('input')!r}"
            ) from error

    def row_key(self, row: Mapping[str, Any]) -> str:
        """The primary key parts joined by "/" (`rejects.row_key`)."""
        return "/".join(str(row[column]) for column in self.key)

    def rows(self, table: pa.Table) -> Sequence[Row]:
        """The rows of an Arrow table of this schema as row models, unchecked (they were checked on write)."""
        return [self._model(plain) for plain in table.select(list(self.columns)).to_pylist()]

    def _model(self, plain: Mapping[str, Any]) -> Row:
        return self.row.model_validate(plain)


@dataclass(frozen=True, eq=False)
class HeldRows(Sequence[Row]):
    """Rows of a table as Arrow has them, each made a model when it is asked for: of hundreds of thousands, a tenth of
    the memory."""

    table: Table
    held: pa.Table

    def __len__(self) -> int:
        return int(self.held.num_rows)

    @overload
    def __getitem__(self, position: int) -> Row: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Row]: ...
    def __getitem__(self, position: int | slice) -> Row | Sequence[Row]:
        places = range(len(self))[position]
        if isinstance(places, range):
            return self.table.rows(self.held.take(pa.array(places, pa.int64())))
        return self.table.rows(self.held.slice(places, 1))[0]


def _refuse_nan(value: Any, table: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise TableError(f"table {table}: {value!r} is never stored; use None for a value that is not known")
    if isinstance(value, dict):
        for inner in value.values():
            _refuse_nan(inner, table)
    elif isinstance(value, list):
        for inner in value:
            _refuse_nan(inner, table)
