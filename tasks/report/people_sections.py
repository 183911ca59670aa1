"""The sections on people: the pools of source personas, and the characters designed for DEMO."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tasks.foundation.store.commits import Commit
from tasks.report import charts, numbers
from tasks.report.blocks import Block, Note, Section, make_filled_table, make_section
from tasks.report.provenance import list_origins
from tasks.report.questions import QueryResult, Record

Ask = Callable[[str], QueryResult]

ATTRIBUTES = {
    "age_bucket": "Age",
    "sex": "Sex",
    "occupation_group": "Occupation group",
    "first_topic": "First topic",
    "interaction_length": "Length of the interaction history",
}
BEGINNINGS = {
    "emotion": "Emotions",
    "first_topic": "First topics",
    "latent": "Latent intents",
    "explicit": "Explicit intents",
}
LONG = 20
"""Rows from which on the table of strata is folded."""
DRAWN = {
    "age_band": "Age bands",
    "personal_value": "Personal values",
    "moral_value": "Moral values",
    "decision_style": "Decision styles",
    "social_skill": "Social skills",
    "inspired_by": "Inspirations",
}


def pools(ask: Ask, commits: Mapping[str, Commit], build: str) -> Section:
    attributes, strata, lengths, bins = (
        ask(name) for name in ("persona_attributes", "persona_strata", "persona_lengths", "persona_token_bins")
    )
    by_pool = [(pool, list(_attribute_charts(attributes, pool))) for pool in attributes.values("pool")]
    seeds = ask("chat_seed_labels")
    return make_section(
        "personas",
        "Persona pools",
        "Who the source holds and who was drawn. A pool is drawn by stratum, after near-duplicates were dropped: "
        "shares should be alike, but for the rounding of a small pool. How the chats of these personas begin is the "
        "seeder's choice.",
        [
            (
                "Sources",
                [
                    list_origins(
                        commits,
                        "personas",
                        ask("source_rows").where(table_name="persona_candidates"),
                        "Each pool's source, and its personas before near-duplicates are dropped.",
                    )
                ],
            ),
            *((f"Pool {pool}", blocks) for pool, blocks in by_pool),
            (
                "All values",
                [make_filled_table(attributes, "Personas by attribute, in the source and drawn.", folded=True)],
            ),
            (
                "Strata",
                [
                    make_filled_table(
                        strata,
                        "Personas of each stratum: in the source, available after near-duplicates were dropped, "
                        f"wanted (quota) and drawn. {_of_all(strata)}",
                        drop=("n_available", "n_drawn"),
                        folded=len(strata) >= LONG,
                    )
                ],
            ),
            (
                "Length",
                [
                    charts.histogram(
                        f"Personas by the length of their description ({_counted(lengths)}).",
                        bins.records,
                        "pool",
                        {"source_personas": "source", "drawn": "drawn"},
                    ),
                    make_filled_table(
                        lengths, "Length in word pieces. MiniLM reads 256, two of which it puts around a text."
                    ),
                ],
            ),
            (
                "Chat seeds",
                [
                    *(
                        _side_by_side(seeds.where(label=label).records, "pool", f"{title} of the chat seeds", "seeds")
                        for label, title in BEGINNINGS.items()
                    ),
                    make_filled_table(seeds, "Chat seeds by what they begin with.", folded=True),
                ],
            ),
        ],
        Note("No persona pool has been drawn.", "missing", f"colloquy run --build {build} --only personas"),
    )


def _attribute_charts(attributes: QueryResult, pool: str) -> Iterator[Block | None]:
    for attribute, title in ATTRIBUTES.items():
        records = attributes.where(pool=pool, attribute=attribute).records
        if not charts.tells_something(max(record["source_personas"], record["drawn"]) for record in records):
            continue
        ordered = sorted(records, key=lambda one: one["found"]) if attribute == "age_bucket" else records
        series = {
            "source_percent": f"source (n = {numbers.count(records[0]['n_source'])})",
            "drawn_percent": f"drawn (n = {numbers.count(records[0]['n_drawn'])})",
        }
        yield charts.bars(f"{title}, pool {pool}.", ordered, "found", series, "% of those who have one")


def _of_all(strata: QueryResult) -> str:
    """What the percentages of each pool are of."""
    n = {record["pool"]: (record["n_available"], record["n_drawn"] or 0) for record in strata.records}
    return (
        "; ".join(
            f"{pool}: n = {numbers.count(available)} available, n = {numbers.count(drawn)} drawn"
            for pool, (available, drawn) in n.items()
        )
        + "."
    )


def _counted(lengths: QueryResult) -> str:
    """How many personas of each pool there are, and how many were drawn."""
    return "; ".join(
        f"{pool}: "
        + ", ".join(f"n = {numbers.count(one['personas'])} {one['part']}" for one in lengths.where(pool=pool).records)
        for pool in lengths.values("pool")
    )


def _side_by_side(records: list[Record], group: str, caption: str, whose: str) -> Block | None:
    """The percentages of each group side by side, the most frequent value first; each group with its n. None where the
    counts, in column `whose`, tell nothing."""
    if not charts.tells_something(record[whose] for record in records):
        return None
    n = {record[group]: record["n"] for record in records}
    found: dict[str, Record] = {}
    for record in records:
        row = found.setdefault(record["found"], {"found": record["found"], **dict.fromkeys(n, 0.0)})
        row[record[group]] = record["percent"]
    ordered = sorted(found.values(), key=lambda row: -sum(row[name] for name in n))
    series = {name: f"{name} (n = {numbers.count(n[name])})" for name in n}
    of_whom = f"by {group}" if len(n) > 1 else "".join(series.values())
    return charts.bars(f"{caption}, {of_whom}.", ordered, "found", series, f"% of the {group}'s {whose}")


def characters(ask: Ask, commits: Mapping[str, Commit], build: str) -> Section:
    drawn, diversity = ask("character_attributes"), ask("diversity").without(n=0)
    return make_section(
        "characters",
        "Characters and scenes",
        "How unlike the participants are that the designer made from drawn attributes and inspiring texts, and the "
        "goals that were distilled. Of near-duplicates the first in a seeded order is kept.",
        [
            (
                "Sources",
                [
                    list_origins(
                        commits,
                        "scenes",
                        ask("source_rows").where(table_name="seed_dialogues"),
                        "Each corpus's source, and its usable dialogues, of which the seeds of scenes are drawn.",
                    )
                ],
            ),
            (
                "Diversity",
                [
                    make_filled_table(
                        diversity,
                        "Mean likeness of two texts (0 nothing in common, 1 the same), and the share of the attribute "
                        "pool that occurs. n: rows looked at; n of: pairs or values that it is over.",
                    )
                ],
            ),
            (
                "Attributes",
                [
                    *(
                        _side_by_side(
                            drawn.where(attribute=attribute).records,
                            "language",
                            f"{title} of the characters",
                            "characters",
                        )
                        for attribute, title in DRAWN.items()
                    ),
                    make_filled_table(drawn, "Characters by what was drawn for them.", folded=True),
                ],
            ),
        ],
        Note("No character has been designed.", "missing", f"colloquy run --build {build} --only personas"),
        only="demo",
    )
