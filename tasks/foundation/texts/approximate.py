"""Approximate search for corpora where the exact one, quadratic in their size, is too slow.

Kept vectors lie in inverted lists (faiss), and a step is held against those of the nearest lists only: about n^1.5
products instead of n². What is found is decided on as always; a duplicate that is missed stays, and may drop others.
How many are found is measured: every so manieth step is searched exactly as well, all of these together at the end.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tasks.foundation.texts.bounds import choose_bound, tiles
from tasks.foundation.texts.nearest import (
    RIVAL,
    TILE,
    BoundedSearch,
    KeptSearch,
    Pairs,
    Recall,
    SearchName,
    drop_hopeless,
    pairs_above,
)

if TYPE_CHECKING:
    import faiss

WORTH_APPROXIMATING = 100_000
"""Vectors up to which an exact search takes seconds; `approximate` is exact as well."""
LISTS = 2.0
"""Lists, as a multiple of the root of all vectors: to find the nearest then costs about what it does to search them."""
TRAINED_ON = 50
"""Vectors a list that the centres of lists are found from; faiss warns below 39."""
ROUNDS = 6
"""Of k-means; more of them change little of what is found, and training is a good part of the time."""
PROBES = 8
"""Lists that are searched."""
SAMPLED = 2048
"""Steps that are searched exactly as well."""


class ApproximateSearch(KeptSearch):
    """Finds pairs with kept ones in the nearest lists only; pairs within a block are all found.

    Holds a copy of the kept vectors.
    """

    def __init__(self, vectors: np.ndarray, order: np.ndarray, floor: float, rival: float = RIVAL) -> None:
        super().__init__(vectors, order, floor, rival)
        self._every = max(1, len(order) // SAMPLED)
        self._sampled: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        """Steps, how many were kept before each, and whether a near one was found."""
        self._index = _open_index(vectors, order)

    def near(self, steps: np.ndarray) -> Pairs:
        if not self._n_kept:
            return Pairs.none()
        limits, cosine, found = self._index.range_search(self._vectors_of(steps), self._floor)
        limits = limits.astype(np.int64)
        pairs = Pairs(np.repeat(np.arange(len(steps)), limits[1:] - limits[:-1]), self._kept[found], cosine)
        sampled = np.flatnonzero(steps % self._every == 0)
        is_found = pairs.highest(len(steps))[sampled] >= self._floor
        self._sampled.append((steps[sampled], np.full(len(sampled), self._n_kept), is_found))
        return Pairs.join(drop_hopeless([pairs], len(steps), self._rival))

    def keep(self, steps: np.ndarray) -> None:
        super().keep(steps)
        if len(steps):
            self._index.add(self._vectors_of(steps))

    def measure_recall(self) -> Recall:
        """For how many of the sampled steps a near one was found, and for how many there was one."""
        if not self._sampled:
            return Recall(0, 0)
        steps, n_before, is_found = (np.concatenate(column) for column in zip(*self._sampled, strict=True))
        block, is_near = self._vectors_of(steps), np.zeros(len(steps), bool)
        for start, stop in tiles(self._n_kept, TILE):
            kept = self._vectors_of(self._kept[start:stop])
            pairs = pairs_above(block, kept, self._floor, np.arange(start, stop))
            is_near[pairs.query[pairs.step < n_before[pairs.query]]] = True
        return Recall(int((is_near & is_found).sum()), int(is_near.sum()))


def _open_index(vectors: np.ndarray, order: np.ndarray) -> faiss.IndexIVFFlat:
    """Empty inverted lists; their centres are found from the first vectors of the order, which is a random one."""
    import faiss

    lists = 2 ** round(math.log2(LISTS * math.sqrt(len(order))))
    means = faiss.Kmeans(vectors.shape[1], lists, niter=ROUNDS, spherical=True, min_points_per_centroid=1)
    means.train(vectors[order[: TRAINED_ON * lists]])
    assert means.centroids is not None
    # All centres are compared: up to some thousands that is quicker than a graph over them (HNSW), and always the same.
    centres = faiss.IndexFlatIP(vectors.shape[1])
    centres.add(means.centroids)
    index = faiss.IndexIVFFlat(centres, vectors.shape[1], lists, faiss.METRIC_INNER_PRODUCT)
    index.is_trained, index.nprobe = True, PROBES
    return index


def open_search(
    name: SearchName, vectors: np.ndarray, order: np.ndarray, floor: float, rival: float = RIVAL
) -> KeptSearch:
    """A search over `vectors` (unit or zero, float32 [n, d]; may be memory-mapped), walked in `order`.

    `rival`: how far below a query's highest cosine with a kept one the caller still needs every pair.
    `exact` bounds every cosine by a short product first, or multiplies in full where that would not pay.
    """
    if name == "approximate" and len(order) > WORTH_APPROXIMATING:
        return ApproximateSearch(vectors, order, floor, rival)
    bound = choose_bound(vectors, order, floor)
    if bound is None:
        return KeptSearch(vectors, order, floor, rival)
    return BoundedSearch(vectors, order, floor, bound, rival)
