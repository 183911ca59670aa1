"""Approximate search for corpora where the exact one, quadratic in their size, is too slow.

Kept vectors lie in inverted lists (faiss), and a step is held against those of the nearest lists only: about n^1.5
products instead of n². What is found is decided on as always; a duplicate that is missed stays, and may drop others.
How many are found is measured as the search goes: every so manieth step is searched exactly as well.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tasks.foundation.texts.nearest import RIVAL, KeptSearch, Pairs, Recall, drop_hopeless

if TYPE_CHECKING:
    import faiss

TRAINED_ON = 50
"""Vectors a list that the centres of lists are found from; faiss warns below 39."""
ROUNDS = 6
"""Of k-means; more of them change little of what is found, and training is a good part of the time."""
PROBES = 8
"""Lists that are searched."""
LINKS, SEARCHED_LINKS = 32, 64
"""Of the graph over the centres, in which the nearest lists of a vector are found."""
SAMPLED = 1024
"""Steps that are searched exactly as well."""


class ApproximateSearch(KeptSearch):
    """Finds pairs with kept ones in the nearest lists only; pairs within a block are all found.

    Holds a copy of the kept vectors. `recall` says how much was found so far.
    """

    def __init__(self, vectors: np.ndarray, order: np.ndarray, floor: float, rival: float = RIVAL) -> None:
        super().__init__(vectors, order, floor, rival)
        self.recall: Recall = Recall(0, 0)
        self._every = max(1, len(order) // SAMPLED)
        self._index = _open_index(vectors, order)

    def near(self, steps: np.ndarray) -> Pairs:
        if not self._n_kept:
            return Pairs.none()
        limits, cosine, found = self._index.range_search(self._vectors_of(steps), self._floor)
        limits = limits.astype(np.int64)
        query = np.repeat(np.arange(len(steps)), limits[1:] - limits[:-1])
        pairs = Pairs(query, self._kept[found], cosine)
        self._measure(steps, pairs)
        return Pairs.join(drop_hopeless([pairs], len(steps), self._rival))

    def keep(self, steps: np.ndarray) -> None:
        super().keep(steps)
        if len(steps):
            self._index.add(self._vectors_of(steps))

    def _measure(self, steps: np.ndarray, pairs: Pairs) -> None:
        """Counts for which of the sampled steps a near one was found, and for which there is one."""
        sampled = np.flatnonzero(steps % self._every == 0)
        is_near = super().near(steps[sampled]).highest(len(sampled)) >= self._floor
        is_found = pairs.highest(len(steps))[sampled] >= self._floor
        self.recall += Recall(int((is_near & is_found).sum()), int(is_near.sum()))


def _open_index(vectors: np.ndarray, order: np.ndarray) -> faiss.IndexIVFFlat:
    """Empty inverted lists, about as many as the root of all vectors; their centres are found from the first vectors of
    the order, which is a random one."""
    import faiss

    lists = 2 ** round(math.log2(math.sqrt(len(order))))
    means = faiss.Kmeans(vectors.shape[1], lists, niter=ROUNDS, spherical=True, min_points_per_centroid=1)
    means.train(vectors[order[: TRAINED_ON * lists]])
    centres = faiss.IndexHNSWFlat(vectors.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    centres.hnsw.efSearch = SEARCHED_LINKS
    # One thread: the graph depends on the order in which several would add to it, and a build is to be the same again.
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    assert means.centroids is not None
    centres.add(means.centroids)
    faiss.omp_set_num_threads(threads)
    index = faiss.IndexIVFFlat(centres, vectors.shape[1], lists, faiss.METRIC_INNER_PRODUCT)
    index.is_trained, index.nprobe = True, PROBES
    return index
