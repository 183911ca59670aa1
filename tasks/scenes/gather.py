"""Usable, distinct seed dialogues of all sources, and where every other row ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from tasks.foundation.settings import SceneSource, ScenesSection
from tasks.foundation.sources import SourceRow
from tasks.foundation.tables.operations import Reject
from tasks.foundation.tables.personas import Duplicate
from tasks.foundation.tables.scenes import SeedDialogue
from tasks.scenes.read_dialogues import dialogue_rows, parse_dialogue
from tasks.scenes.read_lccc import lccc_rows, parse_lccc
from tasks.scenes.read_soda import parse_soda, soda_rows
from tasks.scenes.reading import BadRow, SourceDialogue, Unwanted, as_seed, reject
from tasks.scenes.repeats import seed_key
from tasks.scenes.wanted import refuse_unwanted

Rows = Callable[[SceneSource], Iterator[SourceRow]]
Parse = Callable[[SourceRow], SourceDialogue]
READERS: dict[str, tuple[Rows, Parse]] = {
    "soda": (soda_rows, parse_soda),
    "lccc": (lccc_rows, parse_lccc),
    "jsonl": (dialogue_rows, parse_dialogue),
}


@dataclass
class Seeds:
    """`n_in` counts rows as they came; every row is exactly one of `seeds`, `duplicates` and `rejects`."""

    n_in: int = 0
    seeds: list[SeedDialogue] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    filtered: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    _first: dict[str, str] = field(default_factory=dict)
    _times: Counter[str] = field(default_factory=Counter)

    def read(self, source: SceneSource, section: ScenesSection) -> None:
        """Takes in a whole source."""
        rows, parse = READERS[source.reader]
        self.take(rows(source), parse, source, section)

    def take(self, rows: Iterable[SourceRow], parse: Parse, source: SceneSource, section: ScenesSection) -> None:
        for row in rows:
            self.n_in += 1
            if row.problem is not None:
                self._fail(row, row.problem.kind, row.problem.reason)
                continue
            try:
                dialogue = parse(row)
                refuse_unwanted(dialogue.texts, section)
            except BadRow as bad:
                self._fail(row, "schema", bad.reason)
            except Unwanted as unwanted:
                self.filtered[unwanted.why] += 1
                self.rejects.append(reject(row, "filter", f"{unwanted.why}: {unwanted.reason}"))
            else:
                self._add(as_seed(_with_split(dialogue, source), source.corpus, row.index, source.licence))

    def _add(self, seed: SeedDialogue) -> None:
        """Keeps the first dialogue that says something; a later one is a duplicate, also with another id."""
        first = self._first.setdefault(seed_key(seed), seed.seed_id)
        earlier = self._times[seed.seed_id]
        self._times[seed.seed_id] += 1
        if first == seed.seed_id and not earlier:
            self.seeds.append(seed)
            return
        row_id = f"{seed.seed_id}#{earlier}" if earlier else seed.seed_id
        self.filtered["duplicate"] += 1
        self.duplicates.append(
            Duplicate(table_name="seed_dialogues", row_id=row_id, duplicate_of=first, cosine=None, method="exact")
        )

    def _fail(self, row: SourceRow, kind: str, reason: str) -> None:
        self.failed[kind] += 1
        self.rejects.append(reject(row, kind, reason))


def _with_split(dialogue: SourceDialogue, source: SceneSource) -> SourceDialogue:
    if dialogue.split or not source.split:
        return dialogue
    return SourceDialogue(dialogue.speakers, dialogue.texts, dialogue.narrative, source.split)
