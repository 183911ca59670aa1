"""Usable, distinct seed dialogues of all sources, and where every other row ended, some hundred rows at a time."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tasks.foundation.settings.sections import SceneSource, ScenesSection
from tasks.foundation.sources import SourceRejects, SourceRow, SourceTally
from tasks.foundation.sources.values import WHY, refuse_other, row_language
from tasks.foundation.stage import TableWriter
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.personas import Duplicate
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.minhash import fold
from tasks.scenes.readers import READERS, STAGE_NAME, SourceDialogue, seed_row
from tasks.scenes.wanted import Rules, refuse_length

CHUNK_ROWS = 2048
CHUNK_CHARACTERS = 32 * 2**20
"""Rows settled at once: so many, or fewer where they are very long."""
LOGGED_EVERY = 250_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Writers:
    """Where the rows of all sources go."""

    seeds: TableWriter
    duplicates: TableWriter
    rejects: TableWriter


@dataclass(frozen=True, slots=True)
class _Usable:
    """A dialogue of the right shape and length; `said` is what it says, folded, one line a turn."""

    row: SourceRow
    dialogue: SourceDialogue
    language: Language
    said: str


@dataclass
class Gathering:
    """`n_in` counts rows as they come; every row becomes exactly one of a seed, filtered (a duplicate, too) and
    failed."""

    section: ScenesSection
    rules: Rules
    writers: Writers
    n_in: int = 0
    n_seeds: int = 0
    filtered: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    _rejecting: SourceRejects = field(default_factory=lambda: SourceRejects(STAGE_NAME))
    _first: dict[int, int] = field(default_factory=dict)
    """What was said → the seed that said it first; both as 64 bits, since there are millions."""
    _again: Counter[str] = field(default_factory=Counter)
    """Duplicates by the id they would have had."""

    def read(self, number: int, source: SceneSource) -> None:
        """Reads a whole source, the `number`th. Raises SourceError for a problem of the whole source."""
        rows, parse = READERS[source.reader](source)
        tally = SourceTally(f"{number} {source.corpus}", self._rejecting)
        waiting: list[_Usable] = []
        n_usable = characters = 0
        for row in rows:
            usable = tally.parse(row, lambda row: self._usable(row, parse(row), source))
            if usable is not None:
                waiting.append(usable)
                characters += len(usable.said)
            if len(waiting) + len(tally.rejects) >= CHUNK_ROWS or characters >= CHUNK_CHARACTERS:
                n_usable += self._settle(waiting, source, tally)
                waiting, characters = [], 0
            if (self.n_in + tally.n_in) % LOGGED_EVERY == 0:
                log.info("corpus %s: %d rows read so far, %d seeds", source.corpus, tally.n_in, self.n_seeds)
        n_usable += self._settle(waiting, source, tally)
        if len(self.section.languages) < len(LANGUAGES) and tally.n_in == tally.filtered[WHY]:
            log.warning("corpus %s: no row is in a language of run.languages", source.corpus)
        else:
            tally.require_usable(f"corpus {source.corpus}", n_usable, self.section.max_failure_rate)
        self.n_in += tally.n_in
        self.filtered.update(tally.filtered)
        self.failed.update(tally.failed)

    def _usable(self, row: SourceRow, dialogue: SourceDialogue, source: SceneSource) -> _Usable:
        """BadRow or Unwanted for a dialogue that is not."""
        refuse_length(dialogue.texts, self.section)
        language = row_language(" ".join(dialogue.texts), dialogue.language, source.language)
        refuse_other(language, self.section.languages)
        return _Usable(row, dialogue, language, "\n".join(map(fold, dialogue.texts)))

    def _settle(self, waiting: Sequence[_Usable], source: SceneSource, tally: SourceTally) -> int:
        """Writes what waits: seeds, duplicates and rejects. How many there were of the first two."""
        seeds, duplicates = [], []
        for each, unwanted in zip(waiting, self.rules.search([each.said for each in waiting]), strict=True):
            if unwanted is not None:
                tally.pass_over(each.row, unwanted)
                continue
            seed = seed_row(each.dialogue, each.language, source, each.row.index)
            if duplicate := self._find_duplicate(seed["seed_id"], each.said):
                duplicates.append(duplicate)
            else:
                seeds.append(seed)
        self.n_seeds += len(seeds)
        self.filtered["duplicate"] += len(duplicates)
        _write(self.writers.seeds, "seed_dialogues", seeds)
        _write(self.writers.duplicates, "duplicates", [each.model_dump() for each in duplicates])
        _write(self.writers.rejects, "rejects", [each.model_dump() for each in tally.rejects])
        tally.rejects.clear()
        return len(seeds) + len(duplicates)

    def _find_duplicate(self, seed_id: str, said: str) -> Duplicate | None:
        """The duplicate that a dialogue is, where one said the same before, also with another id; else None."""
        own, key = int(seed_id.removeprefix("seed_"), 16), text_key(said)
        if key not in self._first:
            self._first[key] = own
            return None
        first = self._first[key]
        times = self._again[seed_id] + (first == own)
        self._again[seed_id] += 1
        return Duplicate(
            table_name="seed_dialogues",
            row_id=f"{seed_id}#{times}" if times else seed_id,
            duplicate_of=f"seed_{first:016x}",
            cosine=None,
            method="exact",
        )


def text_key(folded: str) -> int:
    """64 bits of what a dialogue says, whoever says it: one line a turn, each folded."""
    return int.from_bytes(hashlib.blake2b(folded.encode(), digest_size=8).digest(), "big")


def _write(writer: TableWriter, table: str, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        kind = TABLES[table]
        writer.write(kind.batch({name: [row[name] for row in rows] for name in kind.columns}))
