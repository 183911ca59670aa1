"""What tables refer to, and what requests were made for, agrees with the tables and with what stages do."""

from __future__ import annotations

import pytest

from tasks.foundation.ids import content_id
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.references import (
    ASKED_FOR,
    AskedFor,
    Reference,
    asked_for,
    id_column,
    references,
    referred_by,
    table_of_id,
)

ALL = [(table, one) for table in TABLES for one in references(table)]
WAYS = [(table, way) for table, ways in ASKED_FOR.items() for way in ways]

OF_ANY_TABLE = {"row_id"}
"""Ids of rows of whichever table the row names."""


@pytest.mark.parametrize(("table", "one"), ALL, ids=[f"{table}: {one}" for table, one in ALL])
def test_a_reference_is_of_columns_that_are_there_and_of_one_type(table: str, one: Reference) -> None:
    here, there = TABLES[table].schema, TABLES[one.to].schema
    assert one.to != table
    for column, other in zip(one.columns, one.to_columns, strict=True):
        assert here.field(column).type == there.field(other).type
    assert set(one.to_columns) <= set(TABLES[one.to].columns)


@pytest.mark.parametrize("table", TABLES)
def test_every_id_is_the_tables_own_or_refers_to_a_table(table: str) -> None:
    ids = {name for name in TABLES[table].columns if name.endswith("_id")} - OF_ANY_TABLE
    referring = {column for one in references(table) for column in one.columns}
    assert ids <= referring | set(TABLES[table].key[:1])


def test_no_two_tables_refer_to_each_other() -> None:
    pairs = {(table, one.to) for table, one in ALL}
    assert not {(a, b) for a, b in pairs if (b, a) in pairs}


def test_who_is_referred_to_knows_by_whom() -> None:
    assert {(other, one) for table in TABLES for other, one in referred_by(table)} == set(ALL)
    assert {other for other, _ in referred_by("scenes")} == {"pairings"}


@pytest.mark.parametrize(("table", "way"), WAYS, ids=[f"{table} {way.stage} {way.row_key}" for table, way in WAYS])
def test_a_key_of_requests_is_made_of_columns_and_can_be_taken_apart(table: str, way: AskedFor) -> None:
    assert way.columns and {*way.columns, *([way.alias] if way.alias else [])} <= set(TABLES[table].columns)
    row = {name: "org/a-7b" if name == "target" else f"x{place}" for place, name in enumerate(way.columns)}
    assert way.row_of(way.key_of(row)) == row
    assert (table, row) in asked_for(way.stage, way.key_of(row))
    assert way.row_of("neither") is None or way.row_key.count("{") == 1


@pytest.mark.parametrize(
    ("prefix", "table"),
    [("scene", "scenes"), ("chatseed", "chat_seeds"), ("call", "llm_calls"), ("item", "awareness_items")],
)
def test_an_id_tells_its_table(prefix: str, table: str) -> None:
    assert table_of_id(content_id(prefix, 1)) == table
    assert id_column(table) in TABLES[table].columns


@pytest.mark.parametrize("text", ["scene_", "scenes_0123456789abcdef", "nobody_0123456789abcdef", "../scene", ""])
def test_what_is_no_id_is_of_no_table(text: str) -> None:
    assert table_of_id(text) is None
