"""Reads the sources of the settings into candidates, duplicates and rejects, some thousand rows at a time."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tasks.foundation.settings.sections import PersonaSource
from tasks.foundation.sources import SourceRejects
from tasks.foundation.stage import TableWriter
from tasks.foundation.tables import TABLES
from tasks.personas.candidates import candidate_batch
from tasks.personas.occupations import OTHER
from tasks.personas.pieces import PieceCounter
from tasks.personas.read_mapped import read_mapped
from tasks.personas.read_nemotron import read_nemotron
from tasks.personas.read_personamem import read_personamem
from tasks.personas.reading import STAGE_NAME, Persona, Reading

READERS = {"nemotron": read_nemotron, "personamem": read_personamem, "mapped": read_mapped}
CHUNK_ROWS = 4096
CHUNK_CHARACTERS = 64 * 2**20
"""Source rows taken at once: so many, or fewer where rows are very long."""
TOLD_EVERY = 50
"""Chunks between two lines of the log."""
MOST_OTHERS = 10_000
"""Occupations without a group that are told apart."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Writers:
    """Where the rows of all sources go."""

    candidates: TableWriter
    duplicates: TableWriter
    rejects: TableWriter


@dataclass
class Gathered:
    """One source, read to its end: its candidates are rows `start` to `stop` of the table."""

    source: PersonaSource
    reading: Reading
    start: int
    stop: int = 0
    groups: Counter[str | None] = field(default_factory=Counter)
    """Candidates by occupation group; None: without an occupation."""
    others: Counter[str] = field(default_factory=Counter)
    """Occupations that fit no group."""

    def count(self, personas: Sequence[Persona]) -> None:
        self.stop += len(personas)
        self.groups.update(persona.occupation_group for persona in personas)
        others = (persona.occupation for persona in personas if persona.occupation_group == OTHER)
        for occupation in filter(None, others):
            if occupation in self.others or len(self.others) < MOST_OTHERS:
                self.others[occupation] += 1


def gather(sources: Sequence[PersonaSource], writers: Writers, pieces: PieceCounter) -> list[Gathered]:
    """Reads every source to its end. Raises SourceError for a problem of a whole source."""
    rejecting = SourceRejects(STAGE_NAME)
    gathered: list[Gathered] = []
    for source in sources:
        start = gathered[-1].stop if gathered else 0
        here = Gathered(source, Reading(source.pool, rejecting), start, start)
        _read(here, writers, pieces)
        gathered.append(here)
    return gathered


def _read(here: Gathered, writers: Writers, pieces: PieceCounter) -> None:
    reading, source = here.reading, here.source
    for number, personas in enumerate(chunks(READERS[source.reader](source, reading)), start=1):
        if personas:
            writers.candidates.write(candidate_batch(personas, reading, source, pieces))
            here.count(personas)
        _write_others(reading, writers)
        if number % TOLD_EVERY == 0:
            log.info("pool %s: %d rows read so far", source.pool, reading.n_in)
    _write_others(reading, writers)


def chunks(personas: Iterable[Persona | None]) -> Iterator[list[Persona]]:
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
    if reading.repeats:
        writers.duplicates.write(TABLES["duplicates"].arrow(reading.repeats))
        reading.repeats.clear()
    if reading.rejects:
        writers.rejects.write(TABLES["rejects"].arrow(reading.rejects))
        reading.rejects.clear()
