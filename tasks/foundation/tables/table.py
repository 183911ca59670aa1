"""One declared table: its row model, key and grain, and the one Arrow schema that follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ValidationError

from tasks.foundation.errors import TableError
from tasks.foundation.tables.types import Row, arrow_fields


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

    def arrow(self, rows: Iterable[Row | Mapping[str, Any]]) -> pa.Table:
        """`rows` as an Arrow table of this schema, columns by name.

        Raises TableError for a row that does not fit (wrong type, unknown or missing column, NaN).
        """
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


def _refuse_nan(value: Any, table: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise TableError(f"table {table}: {value!r} is never stored; use None for a value that is not known")
    if isinstance(value, dict):
        for inner in value.values():
            _refuse_nan(inner, table)
    elif isinstance(value, list):
        for inner in value:
            _refuse_nan(inner, table)
