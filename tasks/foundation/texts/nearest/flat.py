"""The same search by faiss: an exact flat index of the kept ones. Slower, and a check on the other."""

from __future__ import annotations

import numpy as np

from tasks.foundation.texts.nearest.blocked import RIVAL, BlockedSearch, lightened, tiles
from tasks.foundation.texts.nearest.pairs import Pairs

CHUNK = 1024
"""Rows searched at once: what bounds memory where a row is close to very many."""


class FlatSearch(BlockedSearch):
    """Kept ones in an `IndexFlatIP`, which holds a copy of their vectors."""

    def __init__(self, vectors: np.ndarray, walk: np.ndarray, floor: float, rival: float = RIVAL) -> None:
        import faiss

        super().__init__(vectors, walk, floor, rival)
        self._index = faiss.IndexFlatIP(vectors.shape[1])

    def near(self, rows: np.ndarray) -> Pairs:
        if not self._n_kept:
            return Pairs.none()
        block = self._rows(rows)
        chunks = (self._chunk(block, start, stop) for start, stop in tiles(len(rows), CHUNK))
        return Pairs.join([pairs for chunk in chunks for pairs in lightened([chunk], len(rows), self._rival)])

    def keep(self, rows: np.ndarray) -> None:
        super().keep(rows)
        if len(rows):
            self._index.add(self._rows(rows))

    def _chunk(self, block: np.ndarray, start: int, stop: int) -> Pairs:
        limits, cosines, found = self._index.range_search(block[start:stop], self._floor)
        limits = limits.astype(np.int64)
        row = start + np.repeat(np.arange(stop - start), limits[1:] - limits[:-1])
        return Pairs(row, self._kept[found], cosines)
