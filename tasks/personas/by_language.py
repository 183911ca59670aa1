"""Near-duplicates within a pool, each language for itself: by an encoder that knows it, else by characters.

Personas of two languages are never held against each other: no measure here would say what that means.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tasks.foundation.ids import seeded_order
from tasks.foundation.settings.sections import DedupSection
from tasks.foundation.stage import Stored
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.dedupe import Deduplicated, deduplicate
from tasks.foundation.texts.dedupe_texts import deduplicate_texts
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.languages import LANGUAGES
from tasks.foundation.texts.similarity import Similarity
from tasks.personas.gather import Gathered
from tasks.personas.held import Candidates, sliced

SimilarityOf = Callable[[Language], Similarity]

log = logging.getLogger(__name__)


def deduplicate_each(
    here: Gathered, stored: Stored, held: Candidates, similarity_of: SimilarityOf, dedup: DedupSection, seed: int
) -> Deduplicated:
    """Who is kept of a source's candidates, in the order of the walk, and who is dropped because of whom."""
    parts = []
    for language in LANGUAGES:
        positions = [position for position, found in enumerate(held.languages) if found == language]
        if positions:
            similarity = similarity_of(language)
            if isinstance(similarity, Encoder):
                parts += _by_encoder(Some(here, stored, held, language, positions), similarity, dedup, seed)
            else:
                log.warning("pool %s, %s: %s", here.source.pool, LANGUAGES[language], similarity.told)
                parts.append(Some(here, stored, held, language, positions).by_characters(dedup, seed))
    return parts[0] if len(parts) == 1 else _joined(parts, held.ids, seed)


def _by_encoder(some: Some, encoder: Encoder, dedup: DedupSection, seed: int) -> list[Deduplicated]:
    """By the encoder those that are in its language; by characters those that are only said to be."""
    misnamed = [position for position in some.positions if position in some.held.misnamed]
    if not misnamed:
        return [some.by_encoder(encoder.reading(dedup.encode), dedup, seed)]
    log.warning(
        "pool %s: %d of %d texts said to be %s are in another language and are compared by their characters",
        some.here.source.pool,
        len(misnamed),
        len(some.positions),
        LANGUAGES[some.language],
    )
    found = [replace(some, positions=misnamed).by_characters(dedup, seed)]
    rest = [position for position in some.positions if position not in some.held.misnamed]
    if rest:
        found.append(replace(some, positions=rest).by_encoder(encoder.reading(dedup.encode), dedup, seed))
    return found


@dataclass(frozen=True, slots=True)
class Some:
    """The candidates of one source and language; `positions` are theirs among all of the source."""

    here: Gathered
    stored: Stored
    held: Candidates
    language: Language
    positions: Sequence[int]

    def by_encoder(self, encoder: Encoder, dedup: DedupSection, seed: int) -> Deduplicated:
        text_of = self._text_of()
        found = deduplicate(
            self._own(self.held.ids),
            self._own(self.held.text_hashes),  # texts are only compared
            self.vectors(encoder),
            lambda place: encoder.encode_alone(text_of(place)),
            threshold=dedup.threshold,
            seed=seed,
            search=dedup.search,
            slack=encoder.slack,
        )
        return _placed(found, self.positions)

    def by_characters(self, dedup: DedupSection, seed: int) -> Deduplicated:
        ids, hashes = self._own(self.held.ids), self._own(self.held.text_hashes)
        found = deduplicate_texts(ids, hashes, self._text_of(), self.language, threshold=dedup.jaccard, seed=seed)
        return _placed(found, self.positions)

    def vectors(self, encoder: Encoder) -> np.ndarray:
        """Unit float32 [n, d], in the order of the candidates."""
        vectors = np.empty((len(self.positions), encoder.dimensions), np.float32)
        wanted = np.zeros(self.here.stop - self.here.start, bool)
        wanted[list(self.positions)] = True
        seen = done = 0
        for batch in sliced(self.stored.batches(["description"]), self.here.start, self.here.stop):
            texts = batch.filter(pa.array(wanted[seen : seen + batch.num_rows]))["description"].to_pylist()
            encoder.encode(texts, out=vectors[done : done + len(texts)])
            seen, done = seen + batch.num_rows, done + len(texts)
        return vectors

    def _own(self, column: Sequence[str]) -> list[str]:
        return [column[position] for position in self.positions]

    def _text_of(self) -> Callable[[int], str]:
        texts, start = self.stored.column("description"), self.here.start
        return lambda place: str(texts[start + self.positions[place]])


def _placed(found: Deduplicated, positions: Sequence[int]) -> Deduplicated:
    """The result for some of the candidates, by their positions among all."""
    dropped = (
        replace(each, position=positions[each.position], closest=positions[each.closest]) for each in found.dropped
    )
    return Deduplicated(tuple(positions[place] for place in found.kept), tuple(dropped))


def _joined(parts: Sequence[Deduplicated], ids: Sequence[str], seed: int) -> Deduplicated:
    """All parts in the order in which all candidates together would be walked."""
    turn = {position: place for place, position in enumerate(seeded_order(ids, seed, "personas.dedupe"))}
    kept = sorted((position for part in parts for position in part.kept), key=turn.__getitem__)
    dropped = sorted((each for part in parts for each in part.dropped), key=lambda each: turn[each.position])
    return Deduplicated(tuple(kept), tuple(dropped))
