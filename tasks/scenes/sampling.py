"""Which seed dialogues are distilled: of each language the first of a seeded order, near-duplicates passed over.

The order depends on ids only (of dialogues that say the same, the id of the one read first), so asking for more
changes none of those drawn before. What is drawn is decided before anything is paid for.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tasks.foundation.ids import digest, seeded_order
from tasks.foundation.stage import Stored
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.personas import Duplicate
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.minhash import NearTexts, fold

SEEDS = TABLES["seed_dialogues"]


@dataclass(frozen=True, slots=True)
class Sample:
    """The seeds of one language to distil, as ids in the order drawn and as rows, and those passed over."""

    ids: list[str]
    rows: pa.Table
    duplicates: list[Duplicate]
    n_there: int


def draw(stored: Stored, language: Language, wanted: int, near: float, seed: int) -> Sample:
    """`wanted` seeds of a language, or all there are; none shares more than `near` of its text with one before it."""
    n_there = sum(1 for _ in _read_ids(stored, language))
    looked_at = wanted + wanted // 10 + 20 if wanted else 0
    while True:
        ids = heapq.nsmallest(
            looked_at, _read_ids(stored, language), key=lambda each: digest(seed, "scenes.sample", each)
        )
        rows = read_rows(stored, ids)
        kept, duplicates = keep_distinct(ids, rows, language, wanted, near)
        if len(kept) >= wanted or looked_at >= n_there:
            return Sample(kept, rows.filter(pc.is_in(rows["seed_id"], pa.array(kept, pa.utf8()))), duplicates, n_there)
        looked_at *= 2


def keep_distinct(
    ids: Sequence[str], rows: pa.Table, language: Language, wanted: int, near: float
) -> tuple[list[str], list[Duplicate]]:
    """The first `wanted` ids whose dialogue is near none before it, and the duplicates met on the way."""
    row_of = {seed_id: row for row, seed_id in enumerate(rows["seed_id"].to_pylist())}
    texts, kept, duplicates = NearTexts(language, near), list[str](), list[Duplicate]()
    for seed_id in ids:
        if len(kept) == wanted:
            break
        turns = rows["turns"][row_of[seed_id]].as_py()
        nearest = texts.keep_unless_near("\n".join(fold(turn["text"]) for turn in turns))
        if nearest is None:
            kept.append(seed_id)
        else:
            duplicates.append(
                Duplicate(
                    table_name="seed_dialogues",
                    row_id=seed_id,
                    duplicate_of=kept[nearest],
                    cosine=None,
                    method="minhash",
                )
            )
    return kept, duplicates


def read_rows(stored: Stored, ids: Sequence[str]) -> pa.Table:
    """The rows of some seeds, in the order they were written."""
    wanted = set(ids)  # looked up once a row; Arrow's is_in would hash all of them anew for every batch
    found = (
        batch.filter(pa.array([each in wanted for each in batch["seed_id"].to_pylist()])) for batch in stored.batches()
    )
    return pa.Table.from_batches(found, SEEDS.schema)


def _read_ids(stored: Stored, language: Language) -> Iterator[str]:
    for batch in stored.batches(["seed_id", "language"]):
        yield from batch.filter(pc.equal(batch["language"], language))["seed_id"].to_pylist()


def find_surplus(by_language: Mapping[Language, Collection[str]], seed: int) -> set[str]:
    """Ids beyond the size of the smallest language, the last of a seeded order. Nothing where a language has none:
    half a benchmark is better than none."""
    fewest = min(map(len, by_language.values()), default=0)
    if not fewest:
        return set()
    return {
        ids[row]
        for ids in map(list, by_language.values())
        for row in seeded_order(ids, seed, "scenes.one_to_one")[fewest:]
    }
