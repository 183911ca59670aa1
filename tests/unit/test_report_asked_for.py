"""What was asked for beside what was got, and where rows came from: the settings' side is in the commits."""

from __future__ import annotations

from typing import Any

from tasks.report.blocks import Table
from tasks.report.provenance import list_asked_for, list_origins
from tasks.report.questions import ask
from tests.contract.sql_rows import Rows, _row, good, tables_of
from tests.unit.test_report_page import commit, page

NEMOTRON = {"name": "a", "licence": "CC-BY-4.0", "path": "somewhere/of/mine/people.jsonl", "split": None}
HUB = {"name": "x", "licence": "MIT", "hub": "team/talk", "revision": "main", "commit": "c0de" * 10, "split": "train"}


def settings(stage: str, **values: Any) -> Any:
    return commit(stage, settings={stage: values, "run": {"benchmark": "both"}})


def texts(table: Table | None) -> list[list[str]]:
    assert table is not None
    return [[cell.text for cell in row] for row in table.rows]


def asked(rows: Rows, *commits: Any) -> list[list[str]]:
    with tables_of(rows) as connection:
        return texts(list_asked_for({each.run: each for each in commits}, ask(connection, "asked_for")))


def test_fewer_than_asked_for_is_said_in_words_for_each_pool_and_language() -> None:
    personas = settings("personas", sources=[{"pool": "a"}, {"pool": "b"}], pool_size=1, characters={"en": 5, "zh": 0})
    assert asked(good(), personas) == [
        ["persona pool", "a", "personas.pool_size", "1", "1", "yes"],
        ["persona pool", "b", "personas.pool_size", "1", "0", "fewer by 1"],
        ["characters", "en", "personas.characters.en", "5", "2", "fewer by 3"],
    ]


def test_every_number_of_the_settings_is_held_against_its_table() -> None:
    rows = good()
    rows["chat_seeds"].append(_row("chat_seeds", chat_seed_id="cs2", pool="a", error="refused"))
    rows["interaction_episodes"].append(_row("interaction_episodes", language="en", source="import"))
    found = asked(
        rows,
        settings("personas", sources=[{"pool": "a"}], pool_size=1, characters={"en": 0, "zh": 0}),
        settings("scenes", sample={"en": 1, "zh": 2}),
        settings("conflicts", pairings={"en": 1, "zh": 0}, select=36),
        settings("curation", items_per_task={"en": 1, "zh": 0}, episodes={"en": 2, "zh": 0}),
        settings("chatseeds", per_pool=2),
    )
    assert [row[:2] + row[3:] for row in found] == [
        ["persona pool", "a", "1", "1", "yes"],
        ["scenes", "en", "1", "1", "yes"],
        ["scenes", "zh", "2", "0", "fewer by 2"],
        # how many pairings may be drawn is a cap, where some are to be selected
        ["selected pairings", "–", "36", "1", "fewer by 35"],
        ["awareness items", "goal, en", "1", "1", "yes"],
        ["awareness items", "persona, en", "1", "1", "yes"],
        ["awareness items", "scene, en", "1", "0", "fewer by 1"],
        ["awareness items", "utterance, en", "1", "1", "yes"],
        ["interaction episodes", "en", "2", "1", "fewer by 1"],  # an imported one is none that was made
        ["chat seeds", "a", "2", "1", "fewer by 1"],  # nor is one that failed
    ]


def test_what_no_setting_asks_for_has_no_row_and_nothing_at_all_no_table() -> None:
    with tables_of(good()) as connection:
        there = ask(connection, "asked_for")
    assert list_asked_for({}, there) is None
    nothing = settings("conflicts", pairings={"en": 0, "zh": 0}, select=None)
    assert list_asked_for({"conflicts": nothing}, there) is None


def test_what_was_asked_for_stands_where_rows_went() -> None:
    found = page(good(), {"scenes": settings("scenes", sample={"en": 0, "zh": 2})})
    assert "fewer by 2" in found.text


def sources(rows: Rows, stage: str, table: str, *said: dict[str, Any]) -> list[list[str]]:
    with tables_of(rows) as connection:
        given = ask(connection, "source_rows").where(table_name=table)
    return texts(list_origins({stage: commit(stage, sources=list(said))}, stage, given, "c"))


def test_a_pools_source_is_named_by_its_file_without_the_folders_and_its_rows_by_language() -> None:
    rows = good()
    for row, language in zip(rows["persona_candidates"], ("en", "zh"), strict=True):
        row["language"] = language
    found = sources(rows, "personas", "persona_candidates", NEMOTRON)
    assert found == [["a", "people.jsonl", "–", "CC-BY-4.0", "2", "en 1, zh 1"]]


def test_a_corpus_of_the_hub_is_named_with_its_commit_and_one_that_gave_nothing_has_a_row() -> None:
    rows = good()
    rows["seed_dialogues"] = [{**rows["seed_dialogues"][0], "seed_id": f"s{n}"} for n in range(3)]
    assert sources(rows, "scenes", "seed_dialogues", HUB, NEMOTRON) == [
        ["x", "team/talk at c0dec0dec0de", "train", "MIT", "3", "en 3"],
        ["a", "people.jsonl", "–", "CC-BY-4.0", "0", "–"],
    ]


def test_rows_whose_source_no_commit_says_are_counted_all_the_same() -> None:
    assert sources(good(), "scenes", "seed_dialogues") == [["x", "–", "–", "x", "1", "en 1"]]


def test_lengths_asked_for_are_held_against_those_written_by_language() -> None:
    pairs = {"en": [(10, 12), (20, 14)], "zh": [(8, 8)]}
    rows = good()
    rows["dialogues"] = [
        {**rows["dialogues"][0], "dialogue_id": f"{of}{n}", "language": of, "target_turns": asked, "turn_count": got}
        for of, some in pairs.items()
        for n, (asked, got) in enumerate(some)
    ]
    rows["dialogues"].append({**rows["dialogues"][0], "dialogue_id": "free", "target_turns": None})
    with tables_of(rows) as connection:
        english, chinese = ask(connection, "dialogue_lengths").records
    assert [english[name] for name in ("language", "n", "asked_mean", "got_mean", "longest", "off_by")] == [
        *("en", 2, 15.0, 13.0, 14, 4.0)
    ]
    assert (chinese["n"], chinese["asked_sd"], chinese["off_by"]) == (1, None, 0.0)
