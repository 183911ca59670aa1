"""Personas in numbers: counted, chunked, written and drawn without holding them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation import ROOT
from tasks.foundation.settings.sections import PersonaSource
from tasks.foundation.settings.strict_yaml import load_yaml
from tasks.foundation.sources import BadRow
from tasks.foundation.sources.literals import parse_list, parse_literal
from tasks.foundation.sources.values import one_line
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.word_encoder import WordEncoder
from tasks.foundation.weights import missing
from tasks.personas import candidates as gathering
from tasks.personas.candidates import PieceCounter, chunk_personas
from tasks.personas.readers.occupations import describe_coverage, occupation_mapping
from tasks.personas.readers.reading import Persona
from tasks.personas.readers.values import AGE_BUCKETS, age_bucket, age_or_none
from tasks.personas.task import STAGE
from tests.made_up_rows import make_nemotron, personamem_rows
from tests.pool_checks import check_pools
from tests.unit.source_stages import FakeContext, rows_of, write_jsonl

CENSUS: dict[str, list[str]] = load_yaml((ROOT / "tests" / "data" / "census_occupations.yaml").read_text())


@pytest.mark.parametrize("group", CENSUS)
def test_every_occupation_of_the_census_has_its_group(group: str) -> None:
    found = {occupation: occupation_mapping().group_of(occupation) for occupation in CENSUS[group]}
    assert found == dict.fromkeys(CENSUS[group], group)


def test_the_census_list_covers_every_group_of_the_mapping() -> None:
    assert set(CENSUS) == occupation_mapping().groups and sum(map(len, CENSUS.values())) > 550


def test_coverage_is_told_with_what_is_not_covered() -> None:
    others = {"lighthouse_keeper": 2, "hermit": 1}
    assert describe_coverage({"sales": 6, "not_in_workforce": 1, "other": 3, None: 2}, others) == (
        "occupations: 7 of 10 fall into a group of configs/occupations.yaml (70.0 %), 3 into none ('other', most often "
        "lighthouse_keeper: 2, hermit: 1); 2 candidates have none"
    )
    assert describe_coverage({}, {}).startswith(
        "occupations: 0 of 0 fall into a group of configs/occupations.yaml, 0 into none"
    )


def test_every_age_falls_into_the_bucket_that_begins_last_before_it() -> None:
    names = [age_bucket(age) for age in range(121)]
    assert [names.index(name) for _, name in AGE_BUCKETS] == [lowest for lowest, _ in AGE_BUCKETS]
    assert names == sorted(names, key=lambda name: [each for _, each in AGE_BUCKETS].index(str(name)))


@pytest.mark.parametrize(
    ("told", "age"),
    [("mid-30s", None), ("early forties", None), ("34-36", None), ({"value": 28}, None), ("32 years old", 32), (7, 7)],
)
def test_an_age_that_a_model_put_into_words_is_no_number(told: Any, age: int | None) -> None:
    assert age_or_none(told) == age


@pytest.mark.parametrize("told", [-1, 999, "-1", "999", "30.5"])
def test_a_number_that_is_no_age_is_none_whoever_wrote_it(told: Any) -> None:
    with pytest.raises(BadRow, match="expected an age of 0 to 120"):
        age_or_none(told)


@given(st.lists(st.text(max_size=12), max_size=5))
def test_a_list_as_python_prints_it_is_read_back(texts: list[str]) -> None:
    assert parse_list(repr(texts), "x") == tuple(line for text in texts if (line := one_line(text)))


@given(st.text(st.sampled_from(list("[]{}()'\",\\: x1_-*")), max_size=30))
def test_no_text_makes_the_literal_parser_raise_anything_but_a_bad_row(text: str) -> None:
    try:
        parse_literal(text, "x")
    except BadRow as bad:
        assert bad.reason


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    if missing("all-minilm-l6-v2"):
        pytest.skip("the encoder's weights are not on this machine")
    return Encoder("all-minilm-l6-v2")


ODD = ["naïve", "İstanbul", "ΣΑΣ", "中文", "[SEP]", "x[MASK]y", "don't", "e\u0301", "…", "a" * 101]
WORDS = st.text(max_size=8) | st.sampled_from(ODD)


@given(st.lists(WORDS, max_size=12))
def test_a_text_has_as_many_pieces_as_its_words_together(encoder: Encoder, words: list[str]) -> None:
    text = " ".join(" ".join(words).split())
    assert PieceCounter(encoder).count([text, "", text]) == encoder.count_pieces([text, "", text])


def test_counts_do_not_change_when_words_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.personas.candidates.MOST_CHARACTERS", 3)
    counter = PieceCounter(WordEncoder())
    assert [counter.count([text]) for text in ("a b c d", "e f", "a", "")] == [[4], [2], [1], [0]]
    assert counter.count([]) == []


def test_a_text_without_spaces_is_counted_and_not_remembered() -> None:
    counter = PieceCounter(WordEncoder())
    long = "长" * 41
    assert counter.count([f"{long} 短", long]) == [2, 1]
    assert list(counter._pieces) == ["短"]


def test_occupations_without_a_group_are_counted_also_when_no_further_ones_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gathering, "MOST_OTHERS", 1)
    here = gathering.Gathered([PersonaSource(pool="p", reader="nemotron", path="x", licence="x")], None, 0)  # type: ignore[arg-type]
    for name in ("kelper", "diviner", "kelper"):
        here.count([replace(persona(1), occupation=name, occupation_group="other")])
    assert here.others == {"kelper": 2}


def persona(number: int, raw: str = "{}") -> Persona:
    return Persona(source_key=str(number), language="en", description="x", raw=raw)


def test_chunks_end_after_so_many_source_rows_whether_they_made_personas_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gathering, "CHUNK_ROWS", 3)
    rows = [None, None, None, persona(1), None, persona(2), persona(3)]
    assert [[each.source_key for each in chunk] for chunk in chunk_personas(rows)] == [[], ["1", "2"], ["3"]]


def test_chunks_of_long_rows_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "CHUNK_CHARACTERS", 100)
    rows = [persona(number, "x" * 60) for number in range(5)]
    assert [len(chunk) for chunk in chunk_personas(rows)] == [2, 2, 1]


def test_a_source_in_many_chunks_ends_as_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_nemotron(tmp_path / "nemotron", 300)
    path = write_jsonl(tmp_path / "personamem.jsonl", list(personamem_rows(40)))
    sources = (
        f"personas.sources=[{{pool: a, reader: nemotron, path: {tmp_path / 'nemotron'}}},"
        f"{{pool: b, reader: personamem, path: {path}}}]"
    )
    made = []
    for rows in (7, 4096):
        monkeypatch.setattr(gathering, "CHUNK_ROWS", rows)
        context = FakeContext(STAGE, sources, "personas.pool_size=20")
        prepared = STAGE.prepare(context)
        prepared.accounting.check("personas")
        made.append(({name: rows_of(rows) for name, rows in prepared.rows.items()}, prepared.accounting))
    assert made[0] == made[1]
    pools = Counter(row.pool for row in made[0][0]["persona_pool"])  # type: ignore[attr-defined]
    assert pools == {"a": 20, "b": 20} and made[0][1].n_in == 300 + 200


def test_pools_are_drawn_so_that_no_two_are_near_and_quotas_are_exact(tmp_path: Path) -> None:
    make_nemotron(tmp_path / "nemotron", 1000)
    path = write_jsonl(tmp_path / "personamem.jsonl", list(personamem_rows(100)))
    context = FakeContext(
        STAGE,
        f"personas.sources=[{{pool: a, reader: nemotron, path: {tmp_path / 'nemotron'}}},"
        f"{{pool: b, reader: personamem, path: {path}}}]",
        "personas.pool_size=50",
        "personas.characters={en: 0, zh: 0}",
    )
    rows = {name: rows_of(rows) for name, rows in STAGE.prepare(context).rows.items()}
    near = check_pools(rows, context.encoder(), 50, context.settings.personas.dedup.threshold)
    assert near["a"] > 3, "one row in a hundred is the row before it, a year older"
