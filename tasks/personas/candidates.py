"""Reads the sources of the settings into candidates, duplicates and rejects, some thousand rows at a time."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.foundation.settings.sections import PersonaSource
from tasks.foundation.sources import SourceRejects
from tasks.foundation.stage import TableWriter
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.encoder import Encoder
from tasks.personas.readers import READERS
from tasks.personas.readers.occupations import OTHER
from tasks.personas.readers.reading import STAGE_NAME, Persona, Reading

CANDIDATES = TABLES["persona_candidates"]
AS_READ = [name for name in CANDIDATES.columns if name in Persona.__dataclass_fields__]
STRATUM_COLUMNS = {
    "personamem": ("topic_tags", "interaction_length_bucket"),
    "nemotron": ("occupation_group", "age_bucket"),
    "mapped": ("occupation_group", "age_bucket"),
}
"""What the pool of a reader is stratified by; of a list its first entry."""
UNKNOWN = "unknown"
JOINT = " × "
CHUNK_ROWS = 4096
CHUNK_CHARACTERS = 64 * 2**20
"""Source rows taken at once: so many, or fewer where rows are very long."""
LOGGED_EVERY = 50
"""Chunks between two lines of the log."""
MOST_OTHERS = 10_000
"""Occupations without a group that are told apart."""
MOST_CHARACTERS = 16_000_000
"""Of the words whose pieces are remembered; beyond that all are forgotten, and counted again as they come."""
LONGEST_WORD = 40
"""Characters of a word that may recur; a Chinese text, which has no spaces, is one word and does not."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Writers:
    """Where the rows of all sources go."""

    candidates: TableWriter
    duplicates: TableWriter
    rejects: TableWriter


@dataclass
class Gathered:
    """The sources of one pool, read to their end: its candidates are rows `start` to `stop` of the table."""

    sources: Sequence[PersonaSource]
    reading: Reading
    start: int
    stop: int = 0
    groups: Counter[str | None] = field(default_factory=Counter)
    """Candidates by occupation group; None: without an occupation."""
    others: Counter[str] = field(default_factory=Counter)
    """Occupations that fit no group."""

    @property
    def source(self) -> PersonaSource:
        """The first source: pool, reader and licence are those of all."""
        return self.sources[0]

    @property
    def names_language(self) -> bool:
        return any(source.names_language for source in self.sources)

    def count(self, personas: Sequence[Persona]) -> None:
        self.stop += len(personas)
        self.groups.update(persona.occupation_group for persona in personas)
        others = (persona.occupation for persona in personas if persona.occupation_group == OTHER)
        for occupation in filter(None, others):
            if occupation in self.others or len(self.others) < MOST_OTHERS:
                self.others[occupation] += 1


def gather(
    sources: Sequence[PersonaSource],
    writers: Writers,
    pieces: PieceCounter,
    languages: Sequence[Language] = tuple(LANGUAGES),
) -> list[Gathered]:
    """Reads every source to its end, pool by pool, and leaves out what is in none of the languages. Raises SourceError
    for a problem of a whole source."""
    rejecting = SourceRejects(STAGE_NAME)
    gathered: list[Gathered] = []
    for pool, own in group_by_pool(sources).items():
        start = gathered[-1].stop if gathered else 0
        here = Gathered(own, Reading(pool, rejecting, languages=languages), start, start)
        _read(here, writers, pieces)
        gathered.append(here)
    return gathered


def group_by_pool(sources: Sequence[PersonaSource]) -> dict[str, list[PersonaSource]]:
    """The sources of each pool, in the order of the settings."""
    pools: dict[str, list[PersonaSource]] = {}
    for source in sources:
        pools.setdefault(source.pool, []).append(source)
    return pools


def _read(here: Gathered, writers: Writers, pieces: PieceCounter) -> None:
    reading, source = here.reading, here.source
    for number, personas in enumerate(chunk_personas(READERS[source.reader](here.sources, reading)), start=1):
        if personas:
            writers.candidates.write(make_batch(personas, reading, source, pieces))
            here.count(personas)
        _write_others(reading, writers)
        if number % LOGGED_EVERY == 0:
            log.info("pool %s: %d rows read so far", source.pool, reading.n_in)
    _write_others(reading, writers)


def chunk_personas(personas: Iterable[Persona | None]) -> Iterator[list[Persona]]:
    """The personas of some thousand source rows at a time, which may be none; the last chunk may be short."""
    rows = iter(personas)
    while True:
        chunk: list[Persona] = []
        seen = characters = 0
        for persona in itertools.islice(rows, CHUNK_ROWS):
            seen += 1
            if persona is not None:
                chunk.append(persona)
                characters += len(persona.raw)
                if characters >= CHUNK_CHARACTERS:
                    break
        if not seen:
            return
        yield chunk


def _write_others(reading: Reading, writers: Writers) -> None:
    """Writes the repeats and rejects that wait."""
    waiting: tuple[tuple[str, TableWriter, list[Any]], ...] = (
        ("duplicates", writers.duplicates, reading.repeats),
        ("rejects", writers.rejects, reading.rejects),
    )
    for table, writer, rows in waiting:
        if rows:
            writer.write(TABLES[table].arrow(rows))
            rows.clear()


def make_batch(
    personas: Sequence[Persona], reading: Reading, source: PersonaSource, pieces: PieceCounter
) -> pa.RecordBatch:
    """The candidates of some personas of one source, in their order."""
    columns = {name: [getattr(persona, name) for persona in personas] for name in AS_READ}
    columns["big_five"] = [each and each.model_dump() for each in columns["big_five"]]
    columns["persona_id"] = [reading.persona_id(persona.source_key) for persona in personas]
    columns["stratum"] = list_strata(columns, source)
    columns["token_count"] = pieces.count([persona.description for persona in personas])
    columns["pool"] = [source.pool] * len(personas)
    columns["licence"] = [source.licence] * len(personas)
    return CANDIDATES.batch(columns)


def list_strata(columns: Mapping[str, Sequence[Any]], source: PersonaSource) -> list[str]:
    """The stratum of each candidate: primary topic × length bucket for PersonaMem, occupation group × age bucket for
    all others."""
    values_of_each = zip(*(columns[name] for name in STRATUM_COLUMNS[source.reader]), strict=True)
    return [stratum_of([_first(value) for value in values]) for values in values_of_each]


def stratum_of(values: Sequence[str | None]) -> str:
    """The stratum's name: the values joined, `unknown` for one that is not given.

    >>> stratum_of(["sales", None])
    'sales × unknown'
    """
    return JOINT.join(value or UNKNOWN for value in values)


def _first(value: str | Sequence[str] | None) -> str | None:
    return value if isinstance(value, str | None) else next(iter(value), None)


class PieceCounter:
    """Counts of `Encoder.count_pieces` for texts on one line with single spaces.

    The tokenizer splits a text at its spaces before anything else, so a text has as many pieces as its words together;
    and words recur. Each is given to the tokenizer once, which makes the count of a million personas a matter of
    seconds instead of many minutes.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._pieces: dict[str, int] = {}
        self._characters = 0

    def count(self, texts: Sequence[str]) -> list[int]:
        """Word pieces of each text, untruncated."""
        if not texts:
            return []
        words_of_texts = pc.split_pattern(pa.array(texts, pa.large_utf8()), " ")
        words = words_of_texts.flatten().dictionary_encode()
        pieces = self._count_words(words.dictionary.to_pylist())[words.indices.to_numpy()]
        counts: list[int] = np.add.reduceat(pieces, words_of_texts.offsets.to_numpy()[:-1]).tolist()
        return counts

    def _count_words(self, words: Sequence[str]) -> np.ndarray:
        if self._characters > MOST_CHARACTERS:
            self._pieces.clear()
            self._characters = 0
        new = [word for word in words if word not in self._pieces]
        counts = dict(zip(new, self._encoder.count_pieces(new), strict=True))
        known = self._pieces
        found = np.array([counts[word] if word in counts else known[word] for word in words], np.int64)
        lasting = {word: count for word, count in counts.items() if len(word) <= LONGEST_WORD}
        known.update(lasting)
        self._characters += sum(map(len, lasting))
        return found
