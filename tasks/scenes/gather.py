"""Usable, distinct seed dialogues of all sources, and where every other row ended, some hundred rows at a time."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasks.foundation.settings.sections import SceneSource, ScenesSection
from tasks.foundation.sources import BadRow, Problem, SourceRejects, SourceRow, Unwanted
from tasks.foundation.sources.language import row_language
from tasks.foundation.sources.usable import refuse_unusable
from tasks.foundation.stage import TableWriter
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.operations import Reject
from tasks.foundation.tables.personas import Duplicate
from tasks.foundation.tables.types import Language
from tasks.scenes.read_dialogues import dialogue_rows, parse_dialogue
from tasks.scenes.read_lccc import lccc_rows, parse_lccc
from tasks.scenes.read_soda import parse_soda, soda_rows
from tasks.scenes.reading import STAGE_NAME, SourceDialogue, seed_row
from tasks.scenes.repeats import folded, text_key
from tasks.scenes.wanted import Rules, refuse_length

Read = Callable[[SceneSource], Iterator[SourceRow]]
Parse = Callable[[SourceRow], SourceDialogue]
READERS: dict[str, tuple[Read, Parse]] = {
    "soda": (soda_rows, parse_soda),
    "lccc": (lccc_rows, parse_lccc),
    "jsonl": (dialogue_rows, parse_dialogue),
}
CHUNK_ROWS = 2048
CHUNK_CHARACTERS = 32 * 2**20
"""Rows settled at once: so many, or fewer where they are very long."""
TOLD_EVERY = 250_000

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
    _usable: list[_Usable] = field(default_factory=list)
    _characters: int = 0
    _rejects: list[Reject] = field(default_factory=list)
    _first_left_out: str = ""

    def read(self, number: int, source: SceneSource) -> None:
        """Takes in a whole source, the `number`th. Raises SourceError for a problem of the whole source."""
        read, _ = READERS[source.reader]
        label = f"{number} {source.corpus}"
        before = (self.n_in, self.n_seeds, self.filtered.copy(), self.failed.copy())
        self._first_left_out = ""
        for row in read(source):
            self.n_in += 1
            self._take(row, source, label)
            if len(self._usable) + len(self._rejects) >= CHUNK_ROWS or self._characters >= CHUNK_CHARACTERS:
                self._settle(source, label)
            if self.n_in % TOLD_EVERY == 0:
                log.info("corpus %s: %d rows read so far, %d seeds", source.corpus, self.n_in, self.n_seeds)
        self._settle(source, label)
        refuse_unusable(
            STAGE_NAME,
            f"corpus {source.corpus}",
            n_in=self.n_in - before[0],
            n_usable=self.n_seeds - before[1] + self.filtered["duplicate"] - before[2]["duplicate"],
            failed=self.failed - before[3],
            filtered=self.filtered - before[2],
            first=self._first_left_out,
            max_failure_rate=self.section.max_failure_rate,
        )

    def _take(self, row: SourceRow, source: SceneSource, label: str) -> None:
        if row.problem is not None:
            self._fail(row, row.problem, label)
            return
        try:
            dialogue = READERS[source.reader][1](row)
            refuse_length(dialogue.texts, self.section)
            language = row_language(" ".join(dialogue.texts), dialogue.language, source.language)
        except BadRow as bad:
            self._fail(row, Problem("schema", bad.reason), label)
        except Unwanted as unwanted:
            self._leave_out(row, unwanted, label)
        else:
            self._usable.append(_Usable(row, dialogue, language, "\n".join(map(folded, dialogue.texts))))
            self._characters += len(self._usable[-1].said)

    def _settle(self, source: SceneSource, label: str) -> None:
        """Writes what waits: seeds, duplicates and rejects."""
        seeds, duplicates = [], []
        for each, unwanted in zip(self._usable, self.rules.found([each.said for each in self._usable]), strict=True):
            if unwanted is not None:
                self._leave_out(each.row, unwanted, label)
                continue
            seed = seed_row(each.dialogue, each.language, source, each.row.index)
            if duplicate := self._duplicate(seed["seed_id"], each.said):
                duplicates.append(duplicate)
            else:
                seeds.append(seed)
        self.n_seeds += len(seeds)
        self.filtered["duplicate"] += len(duplicates)
        _write(self.writers.seeds, "seed_dialogues", seeds)
        _write(self.writers.duplicates, "duplicates", [each.model_dump() for each in duplicates])
        _write(self.writers.rejects, "rejects", [each.model_dump() for each in self._rejects])
        self._usable, self._rejects, self._characters = [], [], 0

    def _duplicate(self, seed_id: str, said: str) -> Duplicate | None:
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

    def _fail(self, row: SourceRow, problem: Problem, label: str) -> None:
        self.failed[problem.kind] += 1
        self._first_left_out = self._first_left_out or f"{row.where}: {problem.reason}"
        self._rejects.append(self._rejecting.make(label, row, problem))

    def _leave_out(self, row: SourceRow, unwanted: Unwanted, label: str) -> None:
        self.filtered[unwanted.why] += 1
        self._first_left_out = self._first_left_out or f"{row.where}: {unwanted.problem.reason}"
        self._rejects.append(self._rejecting.make(label, row, unwanted.problem))


def _write(writer: TableWriter, table: str, rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        kind = TABLES[table]
        writer.write(kind.batch({name: [row[name] for row in rows] for name in kind.columns}))
