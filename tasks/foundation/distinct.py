"""Duplicates among short texts of one language that are held in memory: what designers and distillers wrote.

The walk is the one that personas take: in a seeded order of the ids, one is kept unless it repeats, or is near, one
kept before it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from tasks.foundation.dedupe import Dropped, deduplicate
from tasks.foundation.dedupe_texts import deduplicate_texts, levelled
from tasks.foundation.encoder import Encoder
from tasks.foundation.ids import seeded_order
from tasks.foundation.sections import NearSection
from tasks.foundation.similarity import LANGUAGES, Similarity
from tasks.foundation.tables.personas import Duplicate
from tasks.foundation.tables.types import Language

log = logging.getLogger(__name__)


def duplicates_among(
    table: str,
    texts: Mapping[str, str],
    language: Language,
    similarity: Similarity,
    near: NearSection | None,
    seed: int,
) -> list[Duplicate]:
    """Rows of `duplicates` for those of `texts` (by id, all of one language) that repeat, or are near, a kept one.

    Without `near` only repeats are found (but for case, width and spaces). The result depends on ids and texts only,
    not on their order.
    """
    if len(texts) < 2:
        return []
    ids = list(texts)
    same = [levelled(texts[each]) for each in ids]
    dropped = _repeats(ids, same, seed) if near is None else _near(ids, same, texts, language, similarity, near, seed)
    return [
        Duplicate(
            table_name=table,
            row_id=ids[each.position],
            duplicate_of=ids[each.closest],
            cosine=each.cosine,
            method=each.method,
        )
        for each in dropped
    ]


def _repeats(ids: Sequence[str], same: Sequence[str], seed: int) -> list[Dropped]:
    first: dict[str, int] = {}
    walk = seeded_order(ids, seed, "personas.dedupe")
    closest = [(position, first.setdefault(same[position], position)) for position in walk]
    return [Dropped(position, kept, None, "exact") for position, kept in closest if position != kept]


def _near(
    ids: Sequence[str],
    same: Sequence[str],
    texts: Mapping[str, str],
    language: Language,
    similarity: Similarity,
    near: NearSection,
    seed: int,
) -> Sequence[Dropped]:
    if isinstance(similarity, Encoder):
        found = deduplicate(
            ids,
            same,
            similarity.encode([texts[each] for each in ids]),
            lambda position: similarity.encode_alone(texts[ids[position]]),
            threshold=near.cosine,
            seed=seed,
            slack=similarity.slack,
        )
        return found.dropped
    log.info("%d %s %s", len(ids), LANGUAGES[language], similarity.told)
    return deduplicate_texts(
        ids, same, lambda position: texts[ids[position]], language, threshold=near.jaccard, seed=seed
    ).dropped
