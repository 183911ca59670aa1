"""What is held in memory of the candidates of one source, which themselves lie on disk."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from tasks.foundation.stage import Stored
from tasks.foundation.texts.languages import language_of
from tasks.personas.gather import Gathered


@dataclass
class Candidates:
    """The candidates of one source as far as they are held; position i is row `start` + i of the table."""

    ids: list[str] = field(default_factory=list)
    strata: list[str] = field(default_factory=list)
    languages: list[str] = field(default_factory=list)
    text_hashes: list[str] = field(default_factory=list)
    misnamed: set[int] = field(default_factory=set)
    """Those whose text is in another language than its row or source says."""


def load(here: Gathered, stored: Stored) -> Candidates:
    """The candidates of a source."""
    candidates, named = Candidates(), here.source.names_language
    for batch in sliced(stored.batches(["persona_id", "description", "stratum", "language"]), here.start, here.stop):
        texts = batch["description"].to_pylist()
        candidates.ids += batch["persona_id"].to_pylist()
        candidates.strata += batch["stratum"].to_pylist()
        languages = batch["language"].to_pylist()
        if named:
            pairs = enumerate(zip(texts, languages, strict=True), start=len(candidates.languages))
            candidates.misnamed |= {place for place, (text, language) in pairs if language_of(text) != language}
        candidates.languages += map(sys.intern, languages)
        candidates.text_hashes += map(text_hash, texts)
    return candidates


def text_hash(text: str) -> str:
    """What stands for a text where texts are only compared."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def sliced(batches: Iterator[pa.RecordBatch], start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Rows `start` to `stop` of all batches together."""
    first = 0
    for batch in batches:
        low, high = max(start - first, 0), min(stop - first, batch.num_rows)
        if low < high:
            yield batch.slice(low, high - low)
        first += batch.num_rows
