"""Blocked float32: every cosine is computed, a tile at a time. Also what all searches have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from tasks.foundation.texts.nearest.pairs import Pairs

SPARE = 1e-5
"""How far float32 cosines of the same two vectors may lie apart, by the order in which they are summed."""
TILE = 1024
"""Kept rows multiplied at once."""
MANY = 1 << 16
"""Pairs with kept ones beyond which those that cannot be a row's closest are let go."""
RIVAL = 1e-3
"""How far below a row's highest cosine a pair is still of interest to a caller that says nothing else."""


class KeptSearch(Protocol):
    """Rows are places in the walk, ascending; found are pairs whose cosine reaches the floor (less SPARE)."""

    def near(self, rows: np.ndarray) -> Pairs:
        """Pairs with kept ones; of a row with very many, those within the `rival` distance of its closest."""

    def within(self, rows: np.ndarray, among: np.ndarray) -> Pairs:
        """Pairs of a row and an earlier one of the same rows, out of those that `among` (bool) marks."""

    def keep(self, rows: np.ndarray) -> None:
        """From now on these are kept; they come after all that are kept already."""


class BlockedSearch:
    """Every cosine in float32. Holds places in the walk and one tile, no vectors."""

    def __init__(self, vectors: np.ndarray, walk: np.ndarray, floor: float, rival: float = RIVAL) -> None:
        self._vectors, self._walk, self._floor, self._rival = vectors, walk, floor - SPARE, rival + 2 * SPARE
        self._kept = np.empty(len(walk), np.int64)
        self._n_kept = 0

    def near(self, rows: np.ndarray) -> Pairs:
        block, kept = self._rows(rows), self._kept[: self._n_kept]
        found: list[Pairs] = []
        for start, stop in tiles(len(kept)):
            found.append(above(block, self._rows(kept[start:stop]), self._floor, kept[start:stop]))
            found = lightened(found, len(rows), self._rival)
        return Pairs.join(found)

    def within(self, rows: np.ndarray, among: np.ndarray) -> Pairs:
        block, columns = self._rows(rows), np.flatnonzero(among)
        found = (above(block, block[columns[a:b]], self._floor, columns[a:b]) for a, b in tiles(len(columns)))
        return Pairs.join([earlier(pairs, rows) for pairs in found])

    def keep(self, rows: np.ndarray) -> None:
        self._kept[self._n_kept : self._n_kept + len(rows)] = rows
        self._n_kept += len(rows)

    def _rows(self, places: np.ndarray) -> np.ndarray:
        return self._vectors[self._walk[places]]


def tiles(n: int, size: int = TILE) -> Iterator[tuple[int, int]]:
    """(0, size), (size, 2 size) … up to n."""
    return ((start, min(start + size, n)) for start in range(0, n, size))


def above(left: np.ndarray, right: np.ndarray, floor: float, names: np.ndarray) -> Pairs:
    """All pairs of a row of `left` and one of `right`, whose `names` are given, with a cosine from `floor` up."""
    cosines = left @ right.T
    row, column = np.nonzero(cosines >= floor)
    return Pairs(row, names[column], cosines[row, column])


def lightened(found: list[Pairs], n_rows: int, rival: float) -> list[Pairs]:
    """Few pairs as they are; of many those that may be their row's closest. Only of pairs with kept ones: among
    others the closest may be dropped, and then the next one counts."""
    return found if sum(map(len, found)) <= MANY else [Pairs.gather(found).strongest(n_rows, rival)]


def earlier(pairs: Pairs, rows: np.ndarray) -> Pairs:
    """Pairs within a block, each once and named by place in the walk: those whose other one comes first."""
    first = pairs.where(pairs.other < pairs.row)
    return Pairs(first.row, rows[first.other], first.cosine)
