"""Near-duplicates among personas: who is kept, and for everyone dropped, because of whom.

Candidates are walked in a seeded order that depends only on their ids; one is kept if its cosine to every
kept one is below the threshold. A dropped one names the kept one, among those kept before it, that it is
closest to. The result does not depend on row order, block size or the batches in which the texts were
encoded: wherever the stored float32 vectors leave a decision within `SLACK`, it is made on float64 vectors
of the texts encoded one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.foundation.ids import seeded_order

SLACK = 1e-4
"""How far the cosine of stored vectors may be from the exact one (batches change it by about 1e-6)."""
BLOCK = 1024
"""Candidates searched at once."""

ExactVector = Callable[[int], np.ndarray]
"""Position of a candidate → unit vector float64 of its text encoded alone."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """`position` was dropped because of the kept `closest`; `cosine` is None for the same text."""

    position: int
    closest: int
    cosine: float | None
    method: Literal["exact", "embedding"]


@dataclass(frozen=True, slots=True)
class Deduplicated:
    """`kept` positions in the order they were walked, and those dropped, each with its reason."""

    kept: tuple[int, ...]
    dropped: tuple[Dropped, ...]


def deduplicate(
    ids: Sequence[str],
    texts: Sequence[str],
    vectors: np.ndarray,
    exact_vector: ExactVector,
    *,
    threshold: float,
    seed: int,
    block: int = BLOCK,
) -> Deduplicated:
    """Walks candidates as the module says; `ids`, `texts` and the rows of `vectors` (unit, float32 [n, d])
    belong together."""
    walk = _Walk(vectors, exact_vector, threshold)
    order = seeded_order(ids, seed, "personas.dedupe")
    for start in range(0, len(order), block):
        walk.through(order[start : start + block], texts)
    return Deduplicated(tuple(walk.kept), tuple(walk.dropped))


class _Walk:
    """Kept ones so far, searchable: in a faiss index those of earlier blocks, by hand those of this block."""

    def __init__(self, vectors: np.ndarray, exact_vector: ExactVector, threshold: float) -> None:
        import faiss

        self._vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        self._exact_vector = exact_vector
        self._threshold = threshold
        self._index = faiss.IndexFlatIP(self._vectors.shape[1])
        self._kept_by_text: dict[str, int] = {}
        self.kept: list[int] = []
        self.dropped: list[Dropped] = []

    def through(self, positions: Sequence[int], texts: Sequence[str]) -> None:
        """Decides one block; its kept ones are in the index afterwards."""
        before = len(self.kept)
        earlier = self._search(positions)
        within = self._vectors[positions] @ self._vectors[positions].T
        kept_here: list[int] = []
        for row, position in enumerate(positions):
            if texts[position] in self._kept_by_text:
                self._drop_repeat(position, texts[position])
                continue
            near = earlier[row] + [(positions[i], float(within[row, i])) for i in kept_here]
            dropped = self._decide(position, near)
            if dropped is not None:
                self.dropped.append(dropped)
                continue
            kept_here.append(row)
            self.kept.append(position)
            self._kept_by_text[texts[position]] = position
        if len(self.kept) > before:
            self._index.add(self._vectors[self.kept[before:]])

    def _search(self, positions: Sequence[int]) -> list[list[tuple[int, float]]]:
        """For each position the earlier kept ones that could reach the threshold, in the order they were kept."""
        if not self.kept:
            return [[] for _ in positions]
        limits, scores, found = self._index.range_search(self._vectors[positions], self._threshold - SLACK)
        hits = [sorted(zip(found[a:b], scores[a:b], strict=True)) for a, b in itertools.pairwise(limits)]
        return [[(self.kept[rank], float(cosine)) for rank, cosine in row] for row in hits]

    def _drop_repeat(self, position: int, text: str) -> None:
        self.dropped.append(Dropped(position, self._kept_by_text[text], None, "exact"))

    def _decide(self, position: int, near: list[tuple[int, float]]) -> Dropped | None:
        """Why `position` is dropped, given the kept ones near it in the order they were kept; None keeps it."""
        near = [(other, cosine) for other, cosine in near if cosine > self._threshold - SLACK]
        if not near:
            return None
        best = max(cosine for _, cosine in near)
        rivals = [other for other, cosine in near if cosine > best - 2 * SLACK]
        exact = [(other, self._exact_cosine(position, other)) for other in rivals]
        closest, cosine = max(exact, key=lambda pair: pair[1])
        return Dropped(position, closest, cosine, "embedding") if cosine >= self._threshold else None

    def _exact_cosine(self, a: int, b: int) -> float:
        return float(self._exact_vector(a) @ self._exact_vector(b))
