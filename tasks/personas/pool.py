"""From the candidates of a pool's sources to the pool: near-duplicates dropped, the rest sampled by stratum.

Each language is deduplicated for itself, by an encoder that knows it, else by characters: no measure here would say
what the likeness of two languages means. Candidates lie on disk. What is held of a million of them are ids, strata,
languages, hashes of the texts and the vectors; a text is read again where it is needed.
"""

from __future__ import annotations

import hashlib
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tasks.foundation.ids import seeded_order
from tasks.foundation.settings.sections import DedupSection, PersonasSection
from tasks.foundation.stage import Stored, TableWriter
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.personas import PersonaPoolRow
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.dedupe import (
    Deduplicated,
    Texts,
    deduplicate_language,
    duplicate_rows,
    join_results,
    warn_if_most_dropped,
)
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.languages import language_of
from tasks.foundation.texts.similarity import Similarity
from tasks.personas.candidates import Gathered

DUPLICATES_AT_ONCE = 4096

SimilarityOf = Callable[[Language], Similarity]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pool:
    """What the sources of one pool end as; `kept` are the rows of the candidates' table that are no duplicates, and
    their ids."""

    name: str
    reader: str
    drawn: list[PersonaPoolRow]
    kept: list[int]
    kept_ids: list[str]
    accounting: Accounting


@dataclass
class Candidates:
    """The candidates of one pool as far as they are held; row i is row `start` + i of the table."""

    ids: list[str] = field(default_factory=list)
    strata: list[str] = field(default_factory=list)
    languages: list[str] = field(default_factory=list)
    text_hashes: list[str] = field(default_factory=list)
    foreign: set[int] = field(default_factory=set)
    """Those whose text is in another language than its row or source says."""


def make_pool(
    here: Gathered,
    stored: Stored,
    duplicates: TableWriter,
    section: PersonasSection,
    similarity_of: SimilarityOf,
    seed: int,
) -> Pool:
    """The drawn pool in rank order; what is dropped on the way goes to `duplicates`."""
    candidates, name = load_candidates(here, stored), f"pool {here.source.pool}"
    result = deduplicate_candidates(here, stored, candidates, similarity_of, section.dedup, seed)
    if result.recall is not None:
        log.warning(
            "%s: personas.dedup.search is approximate. Of %d sampled personas with a near one kept before them it "
            "found one for %d; the others stay, and so does about that share of all",
            *(name, result.recall.n_near, result.recall.n_found),
        )
    why = ((each.method, candidates.ids[each.closest]) for each in result.dropped)
    warn_if_most_dropped(name, len(candidates.ids), why, "personas.dedup")
    for start in range(0, len(result.dropped), DUPLICATES_AT_ONCE):
        dropped = result.dropped[start : start + DUPLICATES_AT_ONCE]
        rows = duplicate_rows("persona_candidates", candidates.ids, dropped)
        duplicates.write(TABLES["duplicates"].arrow(rows))
    kept_ids = [candidates.ids[row] for row in result.kept]
    drawn = draw_pool(
        kept_ids, [candidates.strata[row] for row in result.kept], here.source.pool, section.pool_size, seed
    )
    kept = [here.start + row for row in result.kept]
    accounting = _account(here, n_kept=len(kept), n_drawn=len(drawn))
    return Pool(here.source.pool, here.source.reader, drawn, kept, kept_ids, accounting)


def load_candidates(here: Gathered, stored: Stored) -> Candidates:
    """The candidates of a source."""
    candidates, named = Candidates(), here.names_language
    for batch in slice_batches(
        stored.batches(["persona_id", "description", "stratum", "language"]), here.start, here.stop
    ):
        texts = batch["description"].to_pylist()
        candidates.ids += batch["persona_id"].to_pylist()
        candidates.strata += batch["stratum"].to_pylist()
        languages = batch["language"].to_pylist()
        if named:
            pairs = enumerate(zip(texts, languages, strict=True), start=len(candidates.languages))
            candidates.foreign |= {row for row, (text, language) in pairs if language_of(text) != language}
        candidates.languages += map(sys.intern, languages)
        candidates.text_hashes += map(text_hash, texts)
    return candidates


def text_hash(text: str) -> str:
    """What stands for a text where texts are only compared."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def deduplicate_candidates(
    here: Gathered, stored: Stored, candidates: Candidates, similarity_of: SimilarityOf, dedup: DedupSection, seed: int
) -> Deduplicated:
    """Who is kept of a source's candidates, in the order of the walk, and who is dropped because of whom."""
    descriptions = stored.column("description")
    texts = Texts(
        name=f"pool {here.source.pool}",
        ids=candidates.ids,
        keys=candidates.text_hashes,
        foreign=candidates.foreign,
        text_of=lambda row: str(descriptions[here.start + row]),
        encode=lambda encoder, rows: encode_stored(here, stored, encoder, rows),
    )
    results = []
    for language in LANGUAGES:
        rows = [row for row, found in enumerate(candidates.languages) if found == language]
        if not rows:
            continue
        similarity = similarity_of(language)
        if isinstance(similarity, Encoder):
            similarity = similarity.with_long_texts(dedup.encode)
        else:
            log.warning("%s, %s: %s", texts.name, LANGUAGES[language], similarity.explanation)
        results.append(
            deduplicate_language(
                texts,
                rows,
                language,
                similarity,
                cosine=dedup.threshold,
                jaccard=dedup.jaccard,
                seed=seed,
                search=dedup.search,
            )
        )
    return join_results(results, candidates.ids, seed)


def encode_stored(here: Gathered, stored: Stored, encoder: Encoder, rows: Sequence[int]) -> np.ndarray:
    """Unit float32 [n, d] of some rows of a source's candidates, whose texts are read again batch by batch."""
    vectors = np.empty((len(rows), encoder.dimensions), np.float32)
    wanted = np.zeros(here.stop - here.start, bool)
    wanted[list(rows)] = True
    seen = done = 0
    for batch in slice_batches(stored.batches(["description"]), here.start, here.stop):
        texts = batch.filter(pa.array(wanted[seen : seen + batch.num_rows]))["description"].to_pylist()
        encoder.encode(texts, out=vectors[done : done + len(texts)])
        seen, done = seen + batch.num_rows, done + len(texts)
    return vectors


def slice_batches(batches: Iterator[pa.RecordBatch], start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Rows `start` to `stop` of all batches together."""
    first = 0
    for batch in batches:
        low, high = max(start - first, 0), min(stop - first, batch.num_rows)
        if low < high:
            yield batch.slice(low, high - low)
        first += batch.num_rows


def draw_pool(ids: Sequence[str], strata: Sequence[str], pool: str, size: int, seed: int) -> list[PersonaPoolRow]:
    """The stratified sample of a pool in rank order; all when there are fewer than `size`."""
    drawn, quota = draw(ids, strata, size, seed)
    return [
        PersonaPoolRow(pool=pool, rank=rank, persona_id=ids[each], stratum=strata[each], quota=quota[strata[each]])
        for rank, each in enumerate(drawn)
    ]


def draw(ids: Sequence[str], strata: Sequence[str], total: int, seed: int) -> tuple[list[int], dict[str, int]]:
    """Rows of a stratified sample, rank by rank, and the quota of each stratum.

    Within a stratum the first of a seeded order of ids are drawn; the ranks are a seeded shuffle of the
    whole sample, so that the first k of it are a fair sample too. Both depend on the ids only.
    """
    quota = quotas(dict(sorted(Counter(strata).items())), total)
    left = dict(quota)
    drawn = []
    for row in seeded_order(ids, seed, "personas.draw"):
        if left[strata[row]]:
            left[strata[row]] -= 1
            drawn.append(row)
    shuffle = seeded_order([ids[row] for row in drawn], seed, "personas.rank")
    return [drawn[each] for each in shuffle], quota


def quotas(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """How many to draw from each stratum: `min(total, all there are)` in all, proportional to the sizes.

    Rounded by largest remainder, ties by stratum name; on integers, so without rounding errors. No stratum
    is ever short: the shares are those of the strata themselves, and a share of at most everything, rounded
    up, is at most the stratum's size. Nothing is left over to be shared out again.

    >>> quotas({"a": 5, "b": 3, "c": 2}, 5)
    {'a': 3, 'b': 1, 'c': 1}
    """
    whole = sum(sizes.values())
    total = min(total, whole)
    shares = {name: total * size // whole for name, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda name: (-(total * sizes[name] % whole), name))
    for name in by_remainder[: total - sum(shares.values())]:
        shares[name] += 1
    return shares


def _account(here: Gathered, *, n_kept: int, n_drawn: int) -> Accounting:
    """Where the rows of a pool's sources ended."""
    reading = here.reading
    ended = {
        **reading.filtered,
        "duplicate": reading.n_repeats + here.stop - here.start - n_kept,
        "not_sampled": n_kept - n_drawn,
    }
    return Accounting(
        n_in=reading.n_in,
        n_produced=n_drawn,
        filtered={reason: count for reason, count in ended.items() if count},
        failed=dict(reading.failed),
    )
