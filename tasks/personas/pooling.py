"""From the candidates of one source to its pool: embedded, deduplicated, sampled by stratum.

Candidates lie on disk. What is held of a million of them are ids, strata, hashes of the texts and the vectors;
a text is read again where it is needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tasks.foundation.accounting import Accounting
from tasks.foundation.encoder import DIMENSIONS, Encoder
from tasks.foundation.settings import PersonasSection
from tasks.foundation.stage import Stored, TableWriter
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.personas import Duplicate, PersonaPoolRow
from tasks.personas.dedupe import Deduplicated, deduplicate
from tasks.personas.gather import Gathered
from tasks.personas.stratify import draw

DUPLICATES_AT_ONCE = 4096


@dataclass
class Candidates:
    """The candidates of one source as far as they are held; position i is row `start` + i of the table."""

    vectors: np.ndarray
    ids: list[str] = field(default_factory=list)
    strata: list[str] = field(default_factory=list)
    text_hashes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Pool:
    """What one source ends as; `inspirations` are the drawn personas' ids and descriptions in rank order."""

    drawn: list[PersonaPoolRow]
    inspirations: list[tuple[str, str]]
    accounting: Accounting


def make_pool(
    here: Gathered, stored: Stored, duplicates: TableWriter, section: PersonasSection, encoder: Encoder, seed: int
) -> Pool:
    """The drawn pool in rank order; what is dropped on the way goes to `duplicates`."""
    candidates = load(here, stored, encoder)
    texts = stored.column("description")
    result = deduplicate(
        candidates.ids,
        candidates.text_hashes,  # texts are only compared
        candidates.vectors,
        lambda position: encoder.encode_alone(texts[here.start + position]),
        threshold=section.dedup.threshold,
        seed=seed,
        search=section.dedup.search,
    )
    for rows in dropped_rows(result, candidates.ids):
        duplicates.write(TABLES["duplicates"].arrow(rows))
    positions, drawn = draw_pool(result.kept, candidates, here.source.pool, section.pool_size, seed)
    inspirations = [(candidates.ids[position], texts[here.start + position]) for position in positions]
    return Pool(drawn, inspirations, _accounting(here, n_kept=len(result.kept), n_drawn=len(drawn)))


def load(here: Gathered, stored: Stored, encoder: Encoder) -> Candidates:
    """The candidates of a source, their descriptions embedded batch by batch."""
    candidates = Candidates(np.empty((here.stop - here.start, DIMENSIONS), np.float32))
    for batch in _slice(stored.batches(["persona_id", "description", "stratum"]), here.start, here.stop):
        texts = batch["description"].to_pylist()
        before = len(candidates.ids)
        candidates.vectors[before : before + len(texts)] = encoder.encode(texts)
        candidates.ids += batch["persona_id"].to_pylist()
        candidates.strata += batch["stratum"].to_pylist()
        candidates.text_hashes += [hashlib.blake2b(text.encode(), digest_size=16).hexdigest() for text in texts]
    return candidates


def dropped_rows(result: Deduplicated, ids: Sequence[str]) -> Iterator[list[Duplicate]]:
    """The rows of `duplicates` for personas that are too close to a kept one, some thousands at once."""
    for start in range(0, len(result.dropped), DUPLICATES_AT_ONCE):
        yield [
            Duplicate(
                table_name="persona_candidates",
                row_id=ids[each.position],
                duplicate_of=ids[each.closest],
                cosine=each.cosine,
                method=each.method,
            )
            for each in result.dropped[start : start + DUPLICATES_AT_ONCE]
        ]


def draw_pool(
    kept: Sequence[int], candidates: Candidates, pool: str, size: int, seed: int
) -> tuple[list[int], list[PersonaPoolRow]]:
    """The stratified sample of a pool in rank order, as positions and as rows; all when there are fewer than `size`."""
    strata = [candidates.strata[position] for position in kept]
    drawn, quota = draw([candidates.ids[position] for position in kept], strata, size, seed)
    rows = [
        PersonaPoolRow(
            pool=pool,
            rank=rank,
            persona_id=candidates.ids[kept[place]],
            stratum=strata[place],
            quota=quota[strata[place]],
        )
        for rank, place in enumerate(drawn)
    ]
    return [kept[place] for place in drawn], rows


def _slice(batches: Iterator[pa.RecordBatch], start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Rows `start` to `stop` of all batches together."""
    first = 0
    for batch in batches:
        low, high = max(start - first, 0), min(stop - first, batch.num_rows)
        if low < high:
            yield batch.slice(low, high - low)
        first += batch.num_rows


def _accounting(here: Gathered, *, n_kept: int, n_drawn: int) -> Accounting:
    reading = here.reading
    ended = {
        **reading.filtered,
        "duplicate": reading.n_repeats + here.stop - here.start - n_kept,
        "not_sampled": n_kept - n_drawn,
    }
    return Accounting(
        n_in=reading.n_in,
        n_produced=n_drawn,
        filtered={reason: count for reason, count in ended.items() if count},
        failed=dict(reading.failed),
    )
