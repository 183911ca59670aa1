"""Duplicates among short texts of one language that are held in memory: what designers and distillers wrote.

The walk is the one that personas take: in a seeded order of the ids, one is kept unless it repeats, or is near, one
kept before it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from tasks.foundation.ids import seeded_order
from tasks.foundation.settings.sections import NearSection
from tasks.foundation.tables.personas import Duplicate
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.dedupe import Dropped, deduplicate, warn_if_most_dropped
from tasks.foundation.texts.dedupe_texts import deduplicate_texts, levelled
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.languages import LANGUAGES
from tasks.foundation.texts.similarity import ByCharacters, Similarity, readable

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
    found = _found(table, texts, language, similarity, near, seed)
    methods, kept = (each.method for each in found), (each.duplicate_of for each in found)
    warn_if_most_dropped(f"{table}, {LANGUAGES[language]}", len(texts), methods, kept, "the dedup threshold")
    return found


def _found(
    table: str,
    texts: Mapping[str, str],
    language: Language,
    similarity: Similarity,
    near: NearSection | None,
    seed: int,
) -> list[Duplicate]:
    if near is None:
        return _rows(table, list(texts), _repeats(list(texts), [levelled(text) for text in texts.values()], seed))
    read = {each: text for each, text in texts.items() if readable(similarity, text, language)}
    others = {each: text for each, text in texts.items() if each not in read}
    by_characters = ByCharacters(language, f"they are not in {LANGUAGES[language]}")
    return [
        *_rows(table, list(read), _near(read, language, similarity, near, seed)),
        *_rows(table, list(others), _near(others, language, by_characters, near, seed)),
    ]


def _rows(table: str, ids: Sequence[str], dropped: Sequence[Dropped]) -> list[Duplicate]:
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
    texts: Mapping[str, str], language: Language, similarity: Similarity, near: NearSection, seed: int
) -> Sequence[Dropped]:
    if len(texts) < 2:
        return ()
    ids, said = list(texts), list(texts.values())
    same = list(map(levelled, said))
    if isinstance(similarity, Encoder):
        return deduplicate(
            ids,
            same,
            similarity.encode(said),
            lambda position: similarity.encode_alone(said[position]),
            threshold=near.cosine,
            seed=seed,
            slack=similarity.slack,
        ).dropped
    log.info("%d %s %s", len(ids), LANGUAGES[language], similarity.told)
    return deduplicate_texts(ids, same, said.__getitem__, language, threshold=near.jaccard, seed=seed).dropped
