"""Which seed dialogues are distilled: of each language the first of a seeded order, near-duplicates passed over.

The order depends on ids only (of dialogues that say the same, the id of the one read first), so asking for more
changes none of those drawn before. What is drawn is decided before anything is paid for.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tasks.foundation.ids import digest
from tasks.foundation.stage import Stored
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.personas import Duplicate
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.near_texts import NearTexts
from tasks.scenes.repeats import folded

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
    n_there = sum(1 for _ in _ids(stored, language))
    looked_at = wanted + wanted // 10 + 20 if wanted else 0
    while True:
        ids = heapq.nsmallest(looked_at, _ids(stored, language), key=lambda each: digest(seed, "scenes.sample", each))
        rows = rows_of(stored, ids)
        kept, duplicates = distinct(ids, rows, language, wanted, near)
        if len(kept) >= wanted or looked_at >= n_there:
            return Sample(kept, rows.filter(pc.is_in(rows["seed_id"], pa.array(kept, pa.utf8()))), duplicates, n_there)
        looked_at *= 2


def distinct(
    ids: Sequence[str], rows: pa.Table, language: Language, wanted: int, near: float
) -> tuple[list[str], list[Duplicate]]:
    """The first `wanted` ids whose dialogue is near none before it, and the duplicates met on the way."""
    places = {seed_id: place for place, seed_id in enumerate(rows["seed_id"].to_pylist())}
    texts, kept, duplicates = NearTexts(language, near), list[str](), list[Duplicate]()
    for seed_id in ids:
        if len(kept) == wanted:
            break
        turns = rows["turns"][places[seed_id]].as_py()
        nearest = texts.take("\n".join(folded(turn["text"]) for turn in turns))
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


def rows_of(stored: Stored, ids: Sequence[str]) -> pa.Table:
    """The rows of some seeds, in the order they were written."""
    wanted = pa.array(ids, pa.utf8())
    found = (batch.filter(pc.is_in(batch["seed_id"], wanted)) for batch in stored.batches())
    return pa.Table.from_batches(found, SEEDS.schema)


def _ids(stored: Stored, language: Language) -> Iterator[str]:
    for batch in stored.batches(["seed_id", "language"]):
        yield from batch.filter(pc.equal(batch["language"], language))["seed_id"].to_pylist()
