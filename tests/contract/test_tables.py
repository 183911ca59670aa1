"""The registry, the SQL views and the data dictionary agree."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pytest

from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import duckdb_type, open_views
from tasks.foundation.tables import TABLES, Table
from tasks.foundation.tables.dictionary import DICTIONARY, dictionary
from tests.unit.dialogue_rows import character

ALL = list(TABLES.values())


def test_every_table_has_a_view_with_its_columns_in_its_order(tmp_path: Path) -> None:
    with open_views(Layout(tmp_path)) as connection:
        for table in ALL:
            shown = [*table.columns, *(TABLES[table.beside].columns if table.beside else ())]
            found = [name for name, *_ in connection.execute(f"describe {table.name}").fetchall()]
            assert found == ["build", *dict.fromkeys(shown)]


@pytest.mark.parametrize("table", [table for table in ALL if table.beside], ids=lambda table: table.name)
def test_a_table_beside_another_has_its_key_and_no_column_twice(table: Table) -> None:
    beside = TABLES[table.beside or ""]
    assert beside.key == table.key and not beside.beside
    assert set(beside.columns) & set(table.columns) == set(table.key)


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_every_column_says_what_it_holds_and_what_null_means(table: Table) -> None:
    for name, field in table.row.model_fields.items():
        assert field.description, f"{table.name}.{name} has no description"
        nullable = table.schema.field(name).nullable
        assert ("null" in field.description) == nullable, f"{table.name}.{name}: nullable columns say what null means"


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_every_key_is_made_of_columns(table: Table) -> None:
    assert table.key and set(table.key) <= set(table.columns)


def test_views_over_an_empty_store_are_typed_and_empty(tmp_path: Path) -> None:
    with open_views(Layout(tmp_path)) as connection:
        for schema in ("main", "history"):
            for table in ALL:
                found = connection.execute(f"describe {schema}.{table.name}").fetchall()
                types = {row[0]: row[1].lower() for row in found}
                for field in table.schema:
                    assert types[field.name] == _spelled(connection, duckdb_type(field.type)), field
                assert connection.execute(f"select count(*) from {schema}.{table.name}").fetchone() == (0,)


def _spelled(connection: duckdb.DuckDBPyConnection, type_: str) -> str:
    row = connection.execute(f"select typeof(cast(null as {type_}))").fetchone()
    assert row is not None
    return str(row[0]).lower()


def test_the_data_dictionary_is_the_registry() -> None:
    assert DICTIONARY.read_text(encoding="utf-8") == dictionary(), (
        "docs/tables.md is not what the registry says; write it with `python -m tasks.foundation.tables.dictionary`"
    )


def test_rows_that_are_held_as_arrow_has_them_are_the_same_rows() -> None:
    table = TABLES["characters"]
    rows = [character(number) for number in range(5)]
    frame = pl.from_arrow(table.arrow(rows))
    assert isinstance(frame, pl.DataFrame)
    held = table.holding(frame.select(sorted(frame.columns)).to_arrow())
    assert list(held) == rows and held[-1] == rows[-1] and list(held[1:4:2]) == rows[1:4:2] and len(held) == 5
    assert table.arrow(held).equals(table.arrow(rows))
    with pytest.raises(IndexError):
        held[5]
