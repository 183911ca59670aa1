"""From the candidates of one source to its pool: deduplicated, sampled by stratum.

Candidates lie on disk. What is held of a million of them are ids, strata, languages, hashes of the texts and the
vectors; a text is read again where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tasks.foundation.settings.sections import PersonasSection
from tasks.foundation.stage import Stored, TableWriter
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.personas import Duplicate, PersonaPoolRow
from tasks.foundation.texts.dedupe import Deduplicated, warn_if_most_dropped
from tasks.personas.by_language import SimilarityOf, deduplicate_each
from tasks.personas.gather import Gathered
from tasks.personas.held import Candidates, load
from tasks.personas.stratify import draw

DUPLICATES_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class Pool:
    """What one source ends as; `inspirations` are the drawn personas' ids and descriptions in rank order."""

    drawn: list[PersonaPoolRow]
    inspirations: list[tuple[str, str]]
    accounting: Accounting


def make_pool(
    here: Gathered,
    stored: Stored,
    duplicates: TableWriter,
    section: PersonasSection,
    similarity_of: SimilarityOf,
    seed: int,
) -> Pool:
    """The drawn pool in rank order; what is dropped on the way goes to `duplicates`."""
    candidates = load(here, stored)
    texts = stored.column("description")
    result = deduplicate_each(here, stored, candidates, similarity_of, section.dedup, seed)
    methods, kept = (each.method for each in result.dropped), (candidates.ids[each.closest] for each in result.dropped)
    warn_if_most_dropped(f"pool {here.source.pool}", len(candidates.ids), methods, kept, "personas.dedup")
    for rows in dropped_rows(result, candidates.ids):
        duplicates.write(TABLES["duplicates"].arrow(rows))
    positions, drawn = draw_pool(result.kept, candidates, here.source.pool, section.pool_size, seed)
    inspirations = [(candidates.ids[position], texts[here.start + position]) for position in positions]
    return Pool(drawn, inspirations, _accounting(here, n_kept=len(result.kept), n_drawn=len(drawn)))


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
