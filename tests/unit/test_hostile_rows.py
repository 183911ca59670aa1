"""Rows that nobody should send: each is accounted for with a reason, and none runs anything or stops the stage."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.foundation.sources import BadRow, SourceRow, Unwanted
from tasks.foundation.stage import Prepared, Stage
from tasks.foundation.tables.operations import Reject
from tasks.foundation.tables.personas import Duplicate, PersonaCandidate
from tasks.foundation.tables.scenes import SeedDialogue
from tasks.personas.readers import mapped as read_mapped
from tasks.personas.readers import nemotron as read_nemotron
from tasks.personas.readers import personamem as read_personamem
from tasks.personas.task import STAGE as PERSONAS
from tasks.scenes.readers import parse_dialogue, parse_lccc, parse_soda
from tasks.scenes.task import STAGE as SCENES
from tests.unit.source_stages import FakeContext, rows_of, write_jsonl
from tests.unit.test_personas_readers import NEMOTRON, personamem_row
from tests.unit.test_scenes_stage import SODA

MEGABYTE = "bees " * 200_000
BOMBS = {
    "call": "__import__('pathlib').Path({marker!r}).touch()",
    "call in a list": "[__import__('pathlib').Path({marker!r}).touch()]",
    "comprehension": "[x for x in ().__class__.__base__.__subclasses__()]",
    "repetition": "['a'] * 10**9",
    "power": "[9**9**9]",
    "brackets": "[" * 100_000,
    "braces": "{'a':" * 5_000,
    "minus signs": "[" + "-" * 100_000 + "1]",
    "decimal digits": "[" + "9" * 100_000 + "]",
    "hexadecimal digits": "[0x" + "f" * 100_000 + "]",
    "infinity": "[1e999]",
    "half a character": "['\\ud800']",
    "bytes": "[b'a']",
    "a set": "{{'a'}}",
    "NUL": "['a\\x00'",
    "length": "['" + "a" * 250_000 + "', {}]",
}


def bomb(name: str, marker: Path) -> str:
    return BOMBS[name].replace("{marker!r}", repr(str(marker)))


class Ended:
    """What `prepare` made of the lines of one source."""

    def __init__(self, stage: Stage, setting: str) -> None:
        self.context = FakeContext(stage, setting, f"{stage.name}.max_failure_rate=1")
        self.prepared: Prepared = stage.prepare(self.context)
        self.prepared.accounting.check("hostile rows")

    def rows(self, table: str) -> list[Any]:
        return list(rows_of(self.prepared.rows[table]))

    def reasons(self) -> dict[str, str]:
        """Reject by line."""
        rejects: list[Reject] = self.rows("rejects")
        assert all(reject.reason for reject in rejects)
        return {reject.row_key: f"{reject.kind}: {reject.reason}" for reject in rejects}


def personas_of(path: Path, reader: str = "nemotron") -> Ended:
    ended = Ended(PERSONAS, f"personas.sources=[{{pool: p, reader: {reader}, path: {path}, language: en}}]")
    accounting, candidates = ended.prepared.accounting, ended.rows("persona_candidates")
    pooled = len(ended.rows("persona_pool"))
    near = accounting.filtered.get("duplicate", 0) - sum("#" in row.row_id for row in ended.rows("duplicates"))
    assert accounting.n_produced == pooled == len(candidates) - near - accounting.filtered.get("not_sampled", 0)
    assert accounting.n_failed == len(ended.reasons())
    return ended


def test_hostile_persona_rows_each_end_with_a_reason(tmp_path: Path) -> None:
    marker = tmp_path / "run"
    good = [NEMOTRON, NEMOTRON | {"uuid": "emoji", "persona": "Ada 👩🏽‍🚀 flies"}]
    good += [NEMOTRON | {"uuid": "rtl", "persona": "עדה אוהבת דבורים"}, NEMOTRON | {"uuid": "nul", "persona": "A\0da"}]
    bad: list[tuple[Any, str]] = [
        (NEMOTRON | {"uuid": "empty", "persona": ""}, "schema: expected a uuid and a persona text"),
        (NEMOTRON | {"uuid": "only controls", "persona": "\0\x01"}, "schema: expected a uuid and a persona text"),
        (
            NEMOTRON | {"uuid": "long", "persona": MEGABYTE},
            "schema: expected a description of at most 20000 characters",
        ),
        (NEMOTRON | {"age": 42}, "schema: expected each id once, found 'u1' again with other content"),
        (NEMOTRON | {"uuid": "young", "age": -1}, "schema: expected an age of 0 to 120"),
        (NEMOTRON | {"uuid": "old", "age": 999}, "schema: expected an age of 0 to 120"),
        (NEMOTRON | {"uuid": "no", "persona": {"text": "x"}}, "schema: expected a uuid and a persona text"),
        (NEMOTRON | {"uuid": ["x"]}, "schema: expected a uuid and a persona text"),
        (NEMOTRON | {"uuid": None}, "schema: expected a uuid and a persona text"),
        (NEMOTRON | {"uuid": "list", "hobbies_and_interests_list": [["x"]]}, "schema: expected a list of texts"),
        ({name: value for name, value in NEMOTRON.items() if name != "age"}, "schema: expected the column 'age'"),
        ([1, 2], "schema: expected an object with columns, found list"),
        (
            "!{not json",
            "parse: expected one JSON value on the line, found '{not json': Expecting property name "
            "enclosed in double quotes at column 2",
        ),
        ('!{"uuid": "\\ud800"}', "parse: expected one JSON value"),
        ('!{"uuid": "vast", "seen": -1e999}', "parse: expected one JSON value"),
        ("![1\t", "parse: expected one JSON value on the line, found '[1': Expecting ',' delimiter at column"),
        ('!"open', "parse: expected one JSON value on the line, found '\"open': Invalid control character at column"),
        ("!" + '{"a": ' * 60 + "1" + "}" * 60, "parse: expected one JSON value"),
        *(
            (NEMOTRON | {"uuid": name, "hobbies_and_interests_list": bomb(name, marker)}, "schema: expected ")
            for name in BOMBS
        ),
    ]
    same = [NEMOTRON] * 10_000
    ended = personas_of(write_jsonl(tmp_path / "rows.jsonl", [*good, *(row for row, _ in bad), *same]))

    assert not marker.exists(), "a literal was run"
    assert ended.prepared.accounting.n_in == len(good) + len(bad) + 10_000
    reasons = ended.reasons()
    assert len(reasons) == len(bad)
    for line, (_, reason) in enumerate(bad, start=len(good) + 1):
        assert reasons[f"rows.jsonl:{line}"].startswith(reason), line
    duplicates: list[Duplicate] = ended.rows("duplicates")
    exact = [row for row in duplicates if row.method == "exact"]
    assert len(exact) == len({row.row_id for row in exact}) == 10_000
    candidates: dict[str, PersonaCandidate] = {row.source_key: row for row in ended.rows("persona_candidates")}
    assert set(candidates) == {"u1", "emoji", "rtl", "nul"}
    assert "👩🏽‍🚀" in candidates["emoji"].description and "עדה אוהבת דבורים" in candidates["rtl"].description
    assert ". Ada. " in candidates["nul"].description and json.loads(candidates["nul"].raw)["persona"] == "A\0da"


@pytest.mark.parametrize("name", BOMBS)
def test_an_expanded_persona_that_is_a_bomb_is_a_reject_and_runs_nothing(tmp_path: Path, name: str) -> None:
    marker = tmp_path / "run"
    rows = [personamem_row(), personamem_row(persona_id=8, expanded_persona=bomb(name, marker))]
    ended = personas_of(write_jsonl(tmp_path / "rows.jsonl", rows), "personamem")
    assert list(ended.reasons()) == ["rows.jsonl:2"] and not marker.exists()


def test_hostile_query_rows_each_end_with_a_reason(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(30):
        deep = {"a": deep}
    bad = [
        personamem_row(persona_id=None),
        personamem_row(persona_id=[1]),
        personamem_row(persona_id=2, expanded_persona="{1: 'a key that is a number'}"),
        personamem_row(persona_id=3, expanded_persona={"a": deep}),
        personamem_row(persona_id=4, expanded_persona={"bio": MEGABYTE}),
        personamem_row(persona_id=5, expanded_persona={"name": "X", "age": 999}),
        personamem_row(persona_id=6, expanded_persona={"name": "X", "age": -1}),
        personamem_row(persona_id=7, expanded_persona={"name": "Somebody else"}),
        personamem_row(persona_id=8, short_persona="{'a': __import__('os')}", expanded_persona={"name": "X"}),
        {"persona_id": 9},
    ]
    odd = [
        personamem_row(total_tokens_in_chat_history_128k="²", topic_preference={"a": 1}),
        personamem_row(total_tokens_in_chat_history_128k=float(10**30), topic_preference="\0"),
        personamem_row(persona_id=10, expanded_persona={"name": "A\0na", "\0key_🐝": ["نحل", True, None, 1.5, {}]}),
    ]
    path = write_jsonl(tmp_path / "rows.jsonl", [personamem_row(), *odd, *bad])
    ended = personas_of(path, "personamem")
    assert set(ended.reasons()) == {f"rows.jsonl:{line}" for line in range(5, 15)}
    assert ended.prepared.accounting.filtered["further_row"] == 2
    first, last = sorted(ended.rows("persona_candidates"), key=lambda row: int(row.source_key))
    assert (first.topic_tags, first.source_key, last.source_key) == (["Travel"], "7", "10")
    assert last.description == "A ferry pilot. Name: Ana. Key 🐝: نحل, yes, 1.5."


def test_parquet_rows_with_nulls_other_types_and_text_that_is_not_utf8_are_accounted_for(tmp_path: Path) -> None:
    table = pa.table(
        {
            "uuid": pa.array(["a", "b", None, "d"]),
            "persona": pa.array([b"Ada keeps bees", b"\xff\xfe", b"Ben", None], pa.binary()).view(pa.utf8()),
            "age": pa.array([41.0, 42.0, float("nan"), 43.0]),
            "sex": pa.array([None, "F", "M", "M"]),
            "occupation": pa.array([None] * 4, pa.utf8()),
            "seen": pa.array([0, 1, 2, 3], pa.timestamp("s")),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    ended = personas_of(tmp_path / "rows.parquet")
    reasons = ended.reasons()
    assert reasons["rows.parquet:2"].startswith("parse: expected UTF-8 text")
    assert reasons["rows.parquet:3"].startswith("schema: expected a uuid") and len(reasons) == 3
    (candidate,) = ended.rows("persona_candidates")
    assert (candidate.age, candidate.sex, candidate.occupation_group) == (41, None, None)
    assert json.loads(candidate.raw)["seen"] == "1970-01-01T00:00:00"


def test_parquet_rows_of_texts_and_numbers_only_are_accounted_for_too(tmp_path: Path) -> None:
    texts = pa.array([b"Ada keeps bees", b"\xff\xfe", b"Ben mends nets"], pa.binary()).view(pa.utf8())
    table = pa.table(
        {
            "uuid": pa.array(["a", "b", "c"]),
            "persona": texts,
            "age": pa.array([41, 42, 43]),
            "sex": pa.array(["F", "F", "M"]),
            "occupation": pa.array([None] * 3, pa.utf8()),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    ended = personas_of(tmp_path / "rows.parquet")
    assert list(ended.reasons()) == ["rows.parquet:2"]
    raws = [json.loads(row.raw) for row in ended.rows("persona_candidates")]
    assert sorted((raw["uuid"], raw["age"]) for raw in raws) == [("a", 41), ("c", 43)]


def test_hostile_dialogues_each_end_with_a_reason(tmp_path: Path) -> None:
    good = [
        SODA,
        SODA | {"dialogue": ["👋🏽", "👋", "🐝?"]},
        SODA | {"dialogue": ["שלום", "مرحبا", "\u202eabc"]},
        SODA | {"dialogue": ["May\0 I", "No\x07.", "Why?"], "narrative": "\0"},
    ]
    bad: list[tuple[Any, str]] = [
        (SODA | {"dialogue": ["", "x", "y"]}, "schema: expected text in every utterance, found number 1 of 3 empty"),
        (SODA | {"dialogue": ["x", "\0", "y"]}, "schema: expected text in every utterance, found number 2"),
        (SODA | {"dialogue": [MEGABYTE, "x", "y"]}, "filter: too_long"),
        (SODA | {"dialogue": None}, "schema: expected a list of utterances"),
        (SODA | {"dialogue": {"a": "b"}}, "schema: expected a list of utterances"),
        (SODA | {"dialogue": [["x"], "y", "z"]}, "schema: expected a list of utterances"),
        (SODA | {"speakers": ["A", "\0", "A"]}, "schema: expected a list of names"),
        (SODA | {"speakers": "ABA"}, "schema: expected a list of names"),
        ({"dialogue": ["x", "y", "z"]}, "schema: expected the column 'speakers'"),
        (7, "schema: expected an object"),
        ("![", "parse: expected one JSON value"),
        ('!{"dialogue": ["x", "y", "z"], "weight": 1e999}', "parse: expected one JSON value"),
    ]
    path = write_jsonl(tmp_path / "rows.jsonl", [*good, *(row for row, _ in bad), *([SODA] * 10_000)])
    ended = Ended(SCENES, f"scenes.sources=[{{corpus: soda, reader: soda, path: {path}, language: en}}]")
    accounting = ended.prepared.accounting
    assert accounting.n_in + len(ended.prepared.items) == len(good) + len(bad) + 10_000
    assert accounting.filtered["duplicate"] == 10_000 and accounting.filtered["too_long"] == 1
    reasons = ended.reasons()
    assert len(reasons) == len(bad)
    for line, (_, reason) in enumerate(bad, start=len(good) + 1):
        assert reasons[f"rows.jsonl:{line}"].startswith(reason), line
    seeds: list[SeedDialogue] = ended.rows("seed_dialogues")
    assert [turn.text for turn in seeds[3].turns] == ["May I", "No.", "Why?"] and seeds[3].narrative is None
    assert len(seeds) == 4 and Counter(seed.language for seed in seeds) == {"en": 4}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def columns(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(dict.fromkeys(names, VALUES))


NEMOTRON_COLUMNS = ("uuid", "persona", "age", "sex", "occupation", "detailed_occupation", "hobbies_and_interests_list")
EXTENDED_COLUMNS = ("professional_persona", "last_name", "openness", "ocean", "city")
PERSONAMEM_COLUMNS = ("persona_id", "short_persona", "expanded_persona", "topic_preference")
MAPPING = {name: name for name in ("source_key", "description", "age", "hobbies", "language", "big_five")}


@settings(max_examples=50)
@given(columns(*NEMOTRON_COLUMNS, *EXTENDED_COLUMNS), columns(*PERSONAMEM_COLUMNS), columns(*MAPPING))
def test_no_persona_row_ends_in_anything_but_a_persona_or_why_it_is_none(
    nemotron: dict[str, Any], personamem: dict[str, Any], own: dict[str, Any]
) -> None:
    for parse in (
        lambda: read_nemotron.parse_row(SourceRow(0, "x:1", nemotron)),
        lambda: read_personamem.parse_persona(personamem),
        lambda: read_mapped.parse_row(SourceRow(0, "x:1", own), MAPPING),
    ):
        try:
            persona = parse()
        except (BadRow, Unwanted) as error:
            assert error.reason
        else:
            assert persona.source_key and persona.description


@given(columns("dialogue", "speakers", "narrative", "split"), VALUES)
def test_no_dialogue_ends_in_anything_but_a_dialogue_or_why_it_is_none(row: dict[str, Any], bare: Any) -> None:
    for parse, value in ((parse_soda, row), (parse_dialogue, row), (parse_lccc, bare), (parse_lccc, {"dialog": bare})):
        try:
            dialogue = parse(SourceRow(0, "x:1", value))
        except (BadRow, Unwanted) as error:
            assert error.reason
        else:
            assert len(dialogue.speakers) == len(dialogue.texts) and all(dialogue.texts)
