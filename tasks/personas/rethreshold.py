"""How many personas of a pool would remain at other thresholds, from the embeddings that are stored.

Nothing is encoded and nothing is written. Where a text was never encoded alone, its stored vector stands in: a
pair that near to a threshold (1e-6; 6e-3 in bfloat16, see docs/benchmarks.md) may then fall on the other side than in a
run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tasks.foundation.errors import StoreError
from tasks.foundation.texts.dedupe import deduplicate
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.nearest import SearchName
from tasks.personas.pool import text_hash

READ_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class Remaining:
    """What a threshold leaves of `n_candidates`: `n_kept`; the others have a kept one's text, or are close to one."""

    threshold: float
    n_candidates: int
    n_kept: int
    n_same_text: int

    @property
    def n_close(self) -> int:
        return self.n_candidates - self.n_kept - self.n_same_text

    def __add__(self, other: Remaining) -> Remaining:
        """Of a pool whose languages were compared one by one, at the same threshold."""
        return Remaining(
            self.threshold,
            self.n_candidates + other.n_candidates,
            self.n_kept + other.n_kept,
            self.n_same_text + other.n_same_text,
        )


@dataclass
class StoredPool:
    """The candidates of one pool: ids, hashes of their texts, and the vectors that the cache has of them."""

    name: str
    vectors: np.ndarray
    slack: float
    ids: list[str] = field(default_factory=list)
    text_hashes: list[str] = field(default_factory=list)
    alone: dict[int, np.ndarray] = field(default_factory=dict)

    def exact_vector(self, row: int) -> np.ndarray:
        """float64 of the text encoded alone, where it was; else of its stored vector."""
        vector = self.alone.get(row, self.vectors[row]).astype(np.float64)
        return np.asarray(vector / max(np.linalg.norm(vector), 1e-9))


def load_pool(name: str, n: int, personas: Iterable[Sequence[tuple[str, str]]], encoder: Encoder) -> StoredPool:
    """A pool of at most `n` from chunks of (persona_id, description). StoreError when the cache lacks any of them."""
    pool = StoredPool(name, np.empty((n, encoder.dimensions), np.float32), encoder.slack)
    missing: list[str] = []
    for chunk in personas:
        before, texts = len(pool.ids), [text for _, text in chunk]
        pool.ids += [persona_id for persona_id, _ in chunk]
        pool.text_hashes += map(text_hash, texts)
        pool.alone.update((before + at, vector) for at, vector in encoder.read_stored(texts, alone=True).items())
        vectors = encoder.read_stored(texts)
        for at, vector in vectors.items():
            pool.vectors[before + at] = vector
        missing += [persona_id for at, (persona_id, _) in enumerate(chunk) if at not in vectors]
    if missing:
        raise StoreError(
            f"pool {name}: expected a stored embedding of each of its {n} personas, found none of {len(missing)}, for "
            f"example {missing[0]!r}. They are stored where the personas stage ran, in the folder cache/embeddings of "
            "the artifacts, as long as the encoder's weights are the same; the stage run again with --force makes "
            "them anew."
        )
    pool.vectors = pool.vectors[: len(pool.ids)]
    return pool


def count_remaining(pool: StoredPool, threshold: float, seed: int, search: SearchName) -> Remaining:
    """What the pool would keep."""
    result = deduplicate(
        pool.ids,
        pool.text_hashes,
        pool.vectors,
        pool.exact_vector,
        threshold=threshold,
        seed=seed,
        search=search,
        slack=pool.slack,
    )
    n_same_text = sum(each.method == "exact" for each in result.dropped)
    return Remaining(threshold, len(pool.ids), len(result.kept), n_same_text)
