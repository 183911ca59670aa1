"""Reading some rows and columns of a table gives what reading all of it and choosing gives."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

from tasks.foundation.errors import TableError
from tasks.foundation.run.context import read_rows
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import read_part, write_part
from tasks.foundation.tables import TABLES, Table

POOL = TABLES["persona_pool"]


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_some_rows_and_columns_are_what_choosing_from_all_gives(table: Table, tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    paths = [written(layout, table, label, numbers) for label, numbers in (("b", range(5, 9)), ("a", range(5)))]
    whole = pl.from_arrow(pa.concat_tables([read_part(layout.root / path, table) for path in paths]))
    assert isinstance(whole, pl.DataFrame)
    whole = whole.sort(list(table.key), maintain_order=True)
    assert len(whole) == 9
    assert_frame_equal(read_rows(layout, table, paths), whole)
    some = pl.col(table.key[0]).is_in(whole[table.key[0]].gather([1, 6, 2]).to_list())
    last = table.columns[-1]
    assert_frame_equal(read_rows(layout, table, paths, some, (last,)), whole.filter(some).select(last))
    assert_frame_equal(read_rows(layout, table, [], some, (last,)), whole.clear().select(last))


def test_a_damaged_part_is_named_by_its_table(tmp_path: Path) -> None:
    path = written(Layout(tmp_path), POOL, "a", range(3))
    (tmp_path / path).write_bytes((tmp_path / path).read_bytes()[:-20])
    with pytest.raises(TableError, match="a part of table persona_pool cannot be read"):
        read_rows(Layout(tmp_path), POOL, [path], pl.col("rank") > 1)


def written(layout: Layout, table: Table, label: str, numbers: range) -> str:
    rows = [{field.name: value(field, number) for field in table.schema} for number in numbers]
    path = layout.root / f"{label}.parquet"
    write_part(layout, path, table, pa.Table.from_pylist(rows, table.schema), {})
    return layout.relative(path)


def value(field: pa.Field, number: int) -> Any:
    """Some value of the field's type, of its own for every number; null now and then where that is allowed."""
    kind = field.type
    if field.nullable and number % 3 == 0:
        return None
    if pa.types.is_struct(kind):
        return {part.name: value(part, number) for part in kind}
    if pa.types.is_list(kind):
        return [value(kind.value_field.with_nullable(False), each) for each in range(number % 4)]
    if pa.types.is_timestamp(kind):
        return datetime(2026, 1, 1 + number, tzinfo=UTC)
    if pa.types.is_boolean(kind):
        return number % 2 == 0
    if pa.types.is_floating(kind):
        return number / 4
    return f"{field.name} {number}" if pa.types.is_string(kind) else number
