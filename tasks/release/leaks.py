"""Whether training material holds what is to be released: the same ids, and texts that stand in it, whole or nearly.

An agent that was trained on the benchmark scores what it remembers (DEMO's agent is trained on elements that the
benchmark does not share). The material is any files of rows; every text in them is looked at, however deep it lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tasks.foundation.errors import SourceError
from tasks.foundation.sources import find_files
from tasks.foundation.sources.files import read_file
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.minhash import fold, sequences

HELD = 0.8
"""Of a text's short character sequences, the share that a text of the material must have to hold it."""
SHORTEST = 30
"""Characters, without spaces, below which a text could stand anywhere."""
SAMPLED = 8
"""One in so many sequences says who is worth a closer look."""
SURE = 0.5
"""The share of those sampled from which it is taken."""

IDS = ("item_id", "dialogue_id", "episode_id", "chat_seed_id")
TEXTS: dict[str, tuple[str, ...]] = {
    "awareness_items": ("dialogue_text",),
    "interaction_episodes": ("background1", "background2", "goal1", "goal2"),
    "chat_seeds": ("first_query", "final_intent"),
}
"""Of what is released, what must not be trained on."""


@dataclass(frozen=True, slots=True)
class Leak:
    """What of the benchmark (table, id) a place of the material holds; `share`: of the text, None for an id."""

    table: str
    id: str
    where: str
    share: float | None


@dataclass(frozen=True, slots=True)
class Checked:
    """How many rows and texts of the material were looked at, and what they hold of the benchmark."""

    files: tuple[str, ...]
    rows: int
    texts: int
    leaks: tuple[Leak, ...]


def check_material(tables: Mapping[str, pa.Table], material: Sequence[Path]) -> Checked:
    """Reads all files (or folders) of the material against what is to be released.

    SourceError for one that is not there or has a row that cannot be read: what was not looked at was not checked.
    """
    own = _Own.of(tables)
    files = [file for path in material for file in find_files(path)]
    rows = texts = 0
    leaks: dict[tuple[str, str, str], Leak] = {}
    for file in files:
        for row in read_file(file, file.name):
            if row.problem is not None:
                raise SourceError(f"{row.where} cannot be read ({row.problem}): training material is checked whole")
            rows += 1
            for text in _texts_in(row.value):
                texts += 1
                for leak in own.find(text, row.where):
                    leaks.setdefault((leak.table, leak.id, leak.where), leak)
    return Checked(tuple(map(str, files)), rows, texts, tuple(leaks.values()))


@dataclass(frozen=True, eq=False)
class _Own:
    """What is to be released: ids, and texts as sets of sequences, found again by a sample of these."""

    ids: Mapping[str, str]
    """Id → its table."""
    named: Sequence[tuple[str, str, Language]]
    """Table, id and language of each text."""
    sets: Sequence[np.ndarray]
    hashes: np.ndarray
    owners: np.ndarray
    sizes: np.ndarray

    @staticmethod
    def of(tables: Mapping[str, pa.Table]) -> _Own:
        ids: dict[str, str] = {}
        named: dict[tuple[str, str], tuple[str, str, Language]] = {}
        for table, columns in TEXTS.items():
            for row in tables[table].to_pylist() if table in tables else ():
                ids |= {row[name]: table for name in IDS if row.get(name)}
                for column in columns:
                    text = fold(row[column] or "", joint="")
                    if len(text) >= SHORTEST:
                        named.setdefault((text, row["language"]), (table, _id_of(row), row["language"]))
        sets = [sequences(text, language) for (text, _), (_, _, language) in named.items()]
        sampled = [each[each % np.uint64(SAMPLED) == 0] for each in sets]
        sizes = np.array([len(each) for each in sampled], int)
        hashes = np.concatenate([np.zeros(0, np.uint64), *sampled])
        order = np.argsort(hashes, kind="stable")
        owners = np.repeat(np.arange(len(sets)), sizes)[order]
        return _Own(ids, list(named.values()), sets, hashes[order], owners, sizes)

    def find(self, text: str, where: str) -> Iterator[Leak]:
        """What of the benchmark a text of the material holds."""
        if text in self.ids:
            yield Leak(self.ids[text], text, where, None)
        folded = fold(text, joint="")
        if len(folded) < SHORTEST * HELD:
            return
        for language in LANGUAGES:
            yield from self._find_in(sequences(folded, language), language, where)

    def _find_in(self, found: np.ndarray, language: Language, where: str) -> Iterator[Leak]:
        sampled = found[found % np.uint64(SAMPLED) == 0]
        starts, ends = (np.searchsorted(self.hashes, sampled, side=side) for side in ("left", "right"))
        hits = [self.owners[start:end] for start, end in zip(starts, ends, strict=True) if start < end]
        counts = np.bincount(np.concatenate([np.zeros(0, int), *hits]), minlength=len(self.sizes))
        for number in np.flatnonzero((counts >= SURE * self.sizes) & (counts > 0)).tolist():
            table, id_, of = self.named[number]
            own = self.sets[number]
            share = len(np.intersect1d(own, found, assume_unique=True)) / len(own)
            if of == language and share >= HELD:
                yield Leak(table, id_, where, share)


def _id_of(row: Mapping[str, Any]) -> str:
    return str(next(row[name] for name in IDS if row.get(name)))


def _texts_in(value: Any) -> Iterable[str]:
    """Every text of a row, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts_in(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _texts_in(inner)
