"""The sections on people: strata, the beginnings of chats and the characters, each number with its n."""

from __future__ import annotations

from typing import Any

from tasks.report.blocks import Figure, Section, Table
from tasks.report.people_sections import characters, pools
from tasks.report.questions import Record, ask
from tests.contract.sql_rows import Rows, _row, good, tables_of


def answers(name: str, rows: Rows) -> list[Record]:
    with tables_of(rows) as connection:
        return ask(connection, name).records


def shown(make: Any, rows: Rows, commits: dict[str, Any] | None = None) -> tuple[Section, dict[str, str]]:
    """A section, and its figures' descriptions by caption."""
    with tables_of(rows) as connection:
        made = make(lambda name: ask(connection, name), commits or {}, "b1")
    figures = [block for group in made.groups for block in group.blocks if isinstance(block, Figure)]
    return made, {figure.caption: figure.description for figure in figures}


def tables_under(made: Section, heading: str) -> list[Table]:
    (group,) = (group for group in made.groups if group.heading == heading)
    return [block for block in group.blocks if isinstance(block, Table)]


def persona(number: int, stratum: str, **values: Any) -> Record:
    return _row("persona_candidates", persona_id=f"p{number}", pool="a", stratum=stratum, token_count=number, **values)


def drawn(number: int, stratum: str, quota: int, rank: int) -> Record:
    return _row("persona_pool", pool="a", rank=rank, persona_id=f"p{number}", stratum=stratum, quota=quota)


def pool() -> Rows:
    """Five personas: three of s, one of which is near another, and one each of t and u; two of s and t are drawn."""
    near = {"table_name": "persona_candidates", "row_id": "p3", "duplicate_of": "p1", "method": "embedding"}
    return {
        "persona_candidates": [*(persona(n, "s") for n in (1, 2, 3)), persona(4, "t"), persona(5, "u")],
        "persona_pool": [drawn(1, "s", 1, 0), drawn(4, "t", 1, 1)],
        "duplicates": [_row("duplicates", **near, cosine=0.9)],
    }


def test_a_stratum_shows_what_was_there_available_wanted_and_drawn_also_where_nobody_was() -> None:
    columns = ("stratum", "source_personas", "available", "quota", "drawn", "n_available", "n_drawn")
    found = [tuple(record[column] for column in columns) for record in answers("persona_strata", pool())]
    assert found == [("s", 3, 2, 1, 1, 4, 2), ("t", 1, 1, 1, 1, 4, 2), ("u", 1, 1, 0, 0, 4, 2)]


def test_the_strata_say_in_the_caption_what_their_shares_are_of_and_are_folded_from_twenty_rows_on() -> None:
    made, _ = shown(pools, pool())
    (strata,) = tables_under(made, "Strata")
    assert strata.caption.endswith("drawn. a: n = 4 available, n = 2 drawn.")
    assert not {"n available", "n drawn"} & {cell.text for cell in strata.head}
    assert not strata.folded
    rows = pool()
    rows["persona_candidates"] += [persona(100 + n, f"v{n}") for n in range(17)]
    made, _ = shown(pools, rows)
    assert [(len(table.rows), table.folded) for table in tables_under(made, "Strata")] == [(20, True)]


def test_lengths_have_mean_median_bounds_and_n_for_the_source_and_for_the_drawn() -> None:
    columns = ("part", "personas", "mean_tokens", "median_tokens", "min_tokens", "max_tokens")
    found = [tuple(record[column] for column in columns) for record in answers("persona_lengths", pool())]
    assert found == [("source", 5, 3.0, 3, 1, 5), ("drawn", 2, 2.5, 1, 1, 4)]


def seed(number: int, pool: str, emotion: str, **values: Any) -> Record:
    return _row(
        "chat_seeds",
        chat_seed_id=f"c{number}",
        pool=pool,
        persona_id="p1",
        initial_emotion=emotion,
        error=None,
        **values,
    )


def test_the_emotions_of_chat_seeds_are_drawn_by_pool_with_their_n_and_failed_seeds_are_left_out() -> None:
    rows = pool()
    rows["chat_seeds"] = [seed(1, "a", "Joy"), seed(2, "a", "Joy"), seed(3, "a", "Hope"), seed(4, "b", "Hope")]
    rows["chat_seeds"] += [seed(5, "b", "Guilt") | {"error": "refused"}, seed(6, "a", "Joy")]
    _, figures = shown(pools, rows)
    assert figures["Emotions of the chat seeds, by pool."] == (
        "Hope: a (n = 4) 25.0, b (n = 1) 100.0; Joy: a (n = 4) 75.0, b (n = 1) 0.0"
    )


def test_the_first_topics_are_those_of_the_personas_and_a_figure_of_one_pool_names_it() -> None:
    rows = pool()
    rows["persona_candidates"][0]["topic_tags"] = ["Tea", "Rain"]
    rows["persona_candidates"][3]["topic_tags"] = ["Snow"]
    rows["chat_seeds"] = [*(seed(n, "a", "Joy") for n in (1, 2, 3)), seed(4, "b", "Joy")]
    rows["chat_seeds"].append(seed(5, "a", "Joy") | {"persona_id": "p4"})
    _, figures = shown(pools, rows)
    assert figures["First topics of the chat seeds, a (n = 4)."] == "Tea: a (n = 4) 75.0; Snow: a (n = 4) 25.0"


def test_charts_of_a_pool_say_over_how_many_personas_they_are() -> None:
    rows = pool()
    for number, row in enumerate(rows["persona_candidates"]):
        row["sex"] = ("x", "x", "x", "y", None)[number]
    _, figures = shown(pools, rows)
    assert figures["Sex, pool a."] == (
        "x: source (n = 4) 75.0, drawn (n = 2) 50.0; y: source (n = 4) 25.0, drawn (n = 2) 50.0"
    )
    assert any("a: n = 5 source, n = 2 drawn" in caption for caption in figures)


def test_the_attributes_of_characters_are_shares_of_the_characters_of_a_language() -> None:
    rows = good()
    rows["characters"][0]["moral_values"] = ["care", "fairness"]
    rows["characters"][1]["moral_values"] = ["care"]
    rows["characters"][1]["inspired_by"] = "notes: old.txt:17"
    found = answers("character_attributes", rows)
    moral = {
        record["found"]: (record["percent"], record["n"]) for record in found if record["attribute"] == "moral_value"
    }
    assert moral == {"care": (100.0, 2), "fairness": (50.0, 2)}
    assert "notes: old.txt" in {record["found"] for record in found if record["attribute"] == "inspired_by"}


def test_what_is_not_known_of_diversity_is_a_dash_and_not_a_zero() -> None:
    rows = good()
    rows["diversity"] = [
        _row("diversity", table_name="scenes", language="zh", statistic="mean_jaccard", value=None, n=1, n_of=0)
    ]
    made, _ = shown(characters, rows)
    table = tables_under(made, "Diversity")[0]
    assert [cell.text for cell in table.rows[0]] == ["scenes", "zh", "mean_jaccard", "–", "1", "0", "pairs of texts"]


def test_a_language_without_any_text_has_no_row_of_diversity() -> None:
    rows = good()
    rows["diversity"].append(_row("diversity", table_name="scenes", language="zh", value=None, n=0, n_of=0))
    made, _ = shown(characters, rows)
    (table,) = tables_under(made, "Diversity")
    assert [row[0].text for row in table.rows] == ["characters"]
