"""The personas stage on the bundled sample: what was planted is found, and every row is accounted for."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.errors import ConfigError, SourceError
from tasks.foundation.settings import load_settings
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.stage import Prepared
from tasks.foundation.tables import TABLES
from tasks.foundation.texts import approximate
from tasks.foundation.texts.replies import cut_text
from tasks.personas.characters import CharacterBrief, draw_brief
from tasks.personas.inspirations import Inspiration
from tasks.personas.people import draw_people
from tasks.personas.prompts import DESIGN, design_inputs
from tasks.personas.task import STAGE
from tests.fakes.asker import FakeAsker
from tests.unit.source_stages import SAMPLE, FakeContext, rows_of, write_jsonl

LIMITS = load_settings("test").text_limits

PLANTED: dict[str, Any] = json.loads((SAMPLE / "planted.json").read_text(encoding="utf-8"))
SKETCH = {
    "background": "Grew up by the sea. Left it once.",
    "hobby": "swimming",
    "education": "evening school",
    "occupation": "welder",
    "culture": "coastal",
    "relationship": "a brother",
    "speaking_style": "short sentences",
}


@pytest.fixture(scope="module")
def run() -> tuple[FakeContext, Prepared]:
    context = FakeContext(STAGE)
    prepared = STAGE.prepare(context)
    context.add(prepared.rows)
    return context, prepared


def test_every_source_row_ends_once_and_the_pool_is_what_is_produced(run: tuple[FakeContext, Prepared]) -> None:
    context, prepared = run
    accounting = prepared.accounting
    accounting.check("personas")
    assert accounting.n_in == PLANTED["nemotron"]["lines"] + PLANTED["personamem"]["lines"]
    assert accounting.n_produced == len(prepared.rows["persona_pool"]) == 2 * context.settings.personas.pool_size
    assert accounting.filtered["where"] == len(PLANTED["nemotron"]["filtered_lines"])


def test_the_planted_bad_lines_and_no_others_are_rejected(run: tuple[FakeContext, Prepared]) -> None:
    _, prepared = run
    expected = {
        f"{PLANTED[name]['file']}:{bad['line']}"
        for name in ("nemotron", "personamem")
        for bad in PLANTED[name]["bad_lines"]
    }
    assert {reject.row_key for reject in rows_of(prepared.rows["rejects"])} == expected  # type: ignore[attr-defined]


def test_every_good_persona_is_a_candidate(run: tuple[FakeContext, Prepared]) -> None:
    _, prepared = run
    pools = Counter(row.pool for row in rows_of(prepared.rows["persona_candidates"]))  # type: ignore[attr-defined]
    assert pools == {
        "nemotron_usa": PLANTED["nemotron"]["good_personas_before_deduplication"],
        "personamem_v2": PLANTED["personamem"]["good_personas"],
    }


def test_rows_fit_their_tables_and_are_the_same_every_time(run: tuple[FakeContext, Prepared]) -> None:
    context, prepared = run
    other = FakeContext(STAGE)
    again = STAGE.prepare(other)
    assert again.items == prepared.items
    assert {name: rows_of(rows) for name, rows in again.rows.items()} == {
        name: rows_of(rows) for name, rows in prepared.rows.items()
    }
    for table in STAGE.prepared:
        assert context.made(table).height == len(prepared.rows[table])


def test_ranks_count_through_each_pool_and_strata_keep_to_their_quota(run: tuple[FakeContext, Prepared]) -> None:
    context, _ = run
    pool = context.made("persona_pool")
    for (_,), rows in pool.group_by("pool"):
        assert rows["rank"].sort().to_list() == list(range(rows.height))
        drawn = Counter(rows["stratum"].to_list())
        assert all(drawn[row["stratum"]] == row["quota"] for row in rows.to_dicts())


async def test_a_character_has_what_was_drawn_and_what_the_designer_wrote(run: tuple[FakeContext, Prepared]) -> None:
    context, prepared = run
    assert STAGE.load_items is not None and STAGE.work is not None
    briefs = STAGE.load_items(context, prepared.items[-2:])
    assert list(briefs) and set(briefs) == set(prepared.items[-2:])
    brief = briefs[prepared.items[-1]]
    ask = FakeAsker(SKETCH)
    (character,) = (await STAGE.work(context, brief, ask))["character_drafts"]
    plain = character.model_dump()
    assert plain["character_id"] == prepared.items[-1] and (plain["name"], plain["given_name"]) == (
        brief.name,
        brief.given_name,
    )
    assert plain["persona_id"] == brief.persona_id and plain["language"] == "zh"
    assert ask.asked[0].purpose == "design" and ask.asked[0].alias == context.settings.personas.designer


def test_characters_are_asked_for_in_the_numbers_of_the_settings(run: tuple[FakeContext, Prepared]) -> None:
    context, prepared = run
    languages = Counter(context.made("character_briefs")["language"].to_list())
    assert languages == {"en": context.settings.personas.characters.en, "zh": context.settings.personas.characters.zh}
    assert len(set(prepared.items)) == len(prepared.items)


def draw_briefs(language: Any, count: int, seed: int) -> list[CharacterBrief]:
    people = draw_people(language, count, seed)
    return [
        draw_brief(language, number, person, Inspiration(f"Persona {number}.", "a"), seed)
        for number, person in enumerate(people)
    ]


@given(st.integers(0, 2**40), st.integers(1, 30))
def test_briefs_keep_to_the_attribute_pool_and_to_their_age_band(seed: int, count: int) -> None:
    bands = {label.name: label for label in taxonomy("age_band").labels}
    groups = {label.name: label.group for label in taxonomy("attributes").labels}
    for brief in draw_briefs("zh", count, seed):
        band = bands[brief.age_band]
        assert (band.low or 0) <= brief.age <= (band.high or 0)
        assert {groups[name] for name in brief.moral_values} == {"moral_value"} and len(brief.moral_values) in (1, 2)
        assert {groups[name] for name in brief.personal_values} == {"personal_value"}
        assert len(set(brief.personal_values)) == 2
        assert groups[brief.decision_style] == "decision_style" and groups[brief.social_skill] == "social_skill"


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("short", 10, "short"),
        ("One. Two. Three.", 11, "One. Two."),
        ("他来了。他走了。", 5, "他来了。"),
        ("no end here", 6, "no end"),
        ("no end here", 5, "no"),
    ],
)
def test_an_inspiration_ends_with_a_sentence_where_it_can(text: str, most: int, expected: str) -> None:
    assert cut_text(text, most) == expected


def test_the_constant_part_of_the_design_prompt_is_the_same_for_every_character() -> None:
    briefs = draw_briefs("zh", 5, 1)
    systems = {DESIGN.render("zh", design_inputs(brief), LIMITS)[0] for brief in briefs}
    assert len(systems) == 1


def test_a_pool_smaller_than_asked_for_stops_the_stage_before_anything_is_paid_for() -> None:
    with pytest.raises(SourceError, match=r"pool nemotron_usa has only \d+ personas .* asks for 1,000.*if_short=warn"):
        STAGE.prepare(FakeContext(STAGE, "personas.pool_size=1000", "personas.if_short=fail"))


def test_a_pool_smaller_than_asked_for_is_taken_whole_with_a_warning_where_that_is_allowed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    context = FakeContext(STAGE, "personas.pool_size=1000")
    with caplog.at_level("WARNING"):
        prepared = STAGE.prepare(context)
    assert "personas.pool_size" in caplog.text
    prepared.accounting.check("personas")
    assert "not_sampled" not in prepared.accounting.filtered


def test_an_approximate_search_says_how_many_near_duplicates_it_found(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(approximate, "WORTH_APPROXIMATING", 0)
    monkeypatch.setattr(approximate, "PROBES", 1000)  # all lists
    dropped = []
    for way in ("exact", "approximate"):
        context = FakeContext(STAGE, f"personas.dedup.search={way}")
        dropped.append({row.row_id for row in rows_of(STAGE.prepare(context).rows["duplicates"])})  # type: ignore[attr-defined]
    assert re.search(r"dedup.search is approximate. Of \d+ sampled .* found one for \d+", caplog.text)
    assert dropped[0] == dropped[1]


def test_two_pools_of_one_file_do_not_share_reject_keys() -> None:
    source = "reader: nemotron, path: configs/sample/nemotron_personas.jsonl"
    context = FakeContext(STAGE, f"personas.sources=[{{pool: p, {source}}}, {{pool: q, {source}}}]")
    prepared = STAGE.prepare(context)
    prepared.accounting.check("personas")
    context.add(prepared.rows)
    for table in STAGE.prepared:
        keys = context.made(table).select(TABLES[table].key) if table in TABLES else context.made(table)
        assert keys.is_unique().all(), table


def test_settings_that_cannot_work_stop_before_anything_is_read(tmp_path: Path) -> None:
    source = "{pool: p, reader: nemotron, path: configs/sample/nemotron_personas.jsonl}"
    other = source.replace("nemotron, ", "personamem, ")
    with pytest.raises(ConfigError, match="expected one reader and one licence for all sources of pool p"):
        STAGE.check(FakeContext(STAGE, f"personas.sources=[{source}, {other}]"))
    with pytest.raises(SourceError, match="does not exist"):
        STAGE.check(FakeContext(STAGE, f"personas.sources=[{{pool: p, reader: nemotron, path: {tmp_path}/x.jsonl}}]"))


def halves(folder: Path, name: str) -> tuple[str, str]:
    """The lines of a bundled file, in two files that have the middle third of them both."""
    lines = (SAMPLE / name).read_text(encoding="utf-8").splitlines(keepends=True)
    third = len(lines) // 3
    for place, some in enumerate((lines[: 2 * third], lines[third:])):
        (folder / f"{place}.jsonl").write_text("".join(some), encoding="utf-8")
    return str(folder / "0.jsonl"), str(folder / "1.jsonl")


@pytest.mark.parametrize(
    ("reader", "name"), [("nemotron", "nemotron_personas"), ("personamem", "personamem_benchmark")]
)
def test_the_sources_of_one_pool_name_are_one_pool(tmp_path: Path, reader: str, name: str) -> None:
    def prepare(*paths: str) -> Prepared:
        sources = [{"pool": "p", "reader": reader, "path": path} for path in paths]
        prepared = STAGE.prepare(context := FakeContext(STAGE, f"personas.sources={json.dumps(sources)}"))
        prepared.accounting.check("personas")
        contexts.append(context)
        return prepared

    contexts: list[FakeContext] = []
    whole, both = prepare(str(SAMPLE / f"{name}.jsonl")), prepare(*halves(tmp_path, f"{name}.jsonl"))
    assert rows_of(both.rows["persona_candidates"]) == rows_of(whole.rows["persona_candidates"])
    assert both.rows["persona_pool"] == whole.rows["persona_pool"] and both.items == whole.items
    assert both.accounting.n_in > whole.accounting.n_in


def test_a_pool_of_which_every_row_is_bad_stops_the_stage_and_names_the_first(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", [{"id": "a", "text": "Ada keeps bees.", "age": 999}] * 2)
    source = {"pool": "p", "reader": "mapped", "path": str(path), "mapping": {"description": "text", "age": "age"}}
    with pytest.raises(SourceError, match=r"sources, pool p: 2 of 2 rows cannot be read \(schema 2\)") as caught:
        STAGE.prepare(FakeContext(STAGE, f"personas.sources={json.dumps([source])}"))
    assert "rows.jsonl:1: expected an age of 0 to 120" in str(caught.value)
