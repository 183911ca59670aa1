"""Exact search with few full cosines: a bound of every pair first, in float32 only those whose bound passes.

The points of kept rows are moved together at the front of the array of all points, so that a tile of bounds
is one product. Threads take tiles in turn, as many as there are processors, each with one torch thread.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tasks.foundation.texts.nearest.blocked import RIVAL, TILE, BlockedSearch, above, earlier, lightened, tiles
from tasks.foundation.texts.nearest.bound import Bound, points_of
from tasks.foundation.texts.nearest.numerics import one_torch_thread, usable_threads
from tasks.foundation.texts.nearest.pairs import Pairs

if TYPE_CHECKING:
    import torch

FULL_SHARE = 0.02
"""Share of a tile's bounds that pass from which on all its cosines are computed."""
STRIP = 32
"""Rows of which the highest bound of each column is found first."""
FEW_HITS = 2048
"""Strips of one column that are cheaper to look through one by one than the whole tile again."""
VERIFIED = 4096
"""Pairs whose cosines are computed at once."""

Tile = tuple[int, int, int, int]
"""First row, end of rows, first column, end of columns."""


@dataclass(frozen=True, slots=True)
class Side:
    """What is on one side of the products: `points`, the `places` in the walk they belong to, what pairs call
    them, and whether all of them are kept."""

    points: np.ndarray
    places: np.ndarray
    names: np.ndarray
    kept: bool


class BoundedSearch(BlockedSearch):
    """Rows must come in order of the walk, each once. `threads` and the bound change nothing but the time."""

    def __init__(
        self,
        vectors: np.ndarray,
        walk: np.ndarray,
        floor: float,
        bound: Bound,
        rival: float = RIVAL,
        threads: int | None = None,
    ) -> None:
        super().__init__(vectors, walk, floor, rival)
        points = points_of(vectors, walk, bound, self._floor)
        self._points, self._limit = points.values, points.limit
        self._threads = threads or usable_threads()

    def near(self, rows: np.ndarray) -> Pairs:
        kept = self._kept[: self._n_kept]
        right = Side(self._points[: len(kept)], kept, kept, kept=True)
        return Pairs.join(self._search(rows, right, [(*a, *c) for c in tiles(len(kept)) for a in tiles(len(rows))]))

    def within(self, rows: np.ndarray, among: np.ndarray) -> Pairs:
        columns = np.flatnonzero(among)
        right = Side(self._points[rows[columns]], rows[columns], columns, kept=False)
        below = [(*a, *c) for c in tiles(len(columns)) for a in tiles(len(rows)) if columns[c[0]] < a[1]]
        return Pairs.join([earlier(pairs, rows) for pairs in self._search(rows, right, below)])

    def keep(self, rows: np.ndarray) -> None:
        # What lies there belongs to rows that were visited before and dropped, or to these.
        self._points[self._n_kept : self._n_kept + len(rows)] = self._points[rows]
        super().keep(rows)

    def _search(self, rows: np.ndarray, right: Side, work: list[Tile]) -> list[Pairs]:
        left, block = np.zeros((whole_strips(len(rows)), self._points.shape[1]), self._points.dtype), self._rows(rows)
        left[: len(rows)] = self._points[rows]
        turns = iter(work)  # a list's iterator gives each tile to one thread
        with one_torch_thread(), ThreadPoolExecutor(self._threads) as pool:
            jobs = [pool.submit(self._take, turns, left, block, right) for _ in range(min(self._threads, len(work)))]
            return list(itertools.chain.from_iterable(job.result() for job in jobs))

    def _take(self, turns: Iterator[Tile], left: np.ndarray, block: np.ndarray, right: Side) -> list[Pairs]:
        """What one thread finds in the tiles that it gets."""
        import torch

        torch.set_num_threads(1)  # here, not only where the thread was begun: OpenMP counts by thread
        a, b = as_tensor(left), as_tensor(right.points).t()
        room = np.empty(TILE * TILE, left.dtype)
        found: list[Pairs] = []
        passed: list[tuple[np.ndarray, np.ndarray]] = []
        for top, bottom, first, end in turns:
            height = whole_strips(bottom - top)
            bounds = room[: height * (end - first)].reshape(height, end - first)
            torch.mm(a[top : top + height], b[:, first:end], out=as_tensor(bounds))
            row, column = self._passing(bounds)
            if len(row) > FULL_SHARE * bounds.size:
                found.append(self._multiplied(slice(top, bottom), slice(first, end), block, right))
            elif len(row):
                passed.append((row + top, column + first))
            if sum(len(row) for row, _ in passed) > VERIFIED:
                found.append(self._verified(passed, block, right))
                passed.clear()
            if right.kept:
                found = lightened(found, len(block), self._rival)
        return [*found, self._verified(passed, block, right)]

    def _passing(self, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where a bound reaches the limit: rows and columns of the tile."""
        strips = bounds.reshape(-1, STRIP, bounds.shape[1])
        hit = np.flatnonzero(strips.max(axis=1) >= self._limit)
        if len(hit) > FEW_HITS:
            return np.divmod(np.flatnonzero(bounds >= self._limit), bounds.shape[1])
        strip, column = np.divmod(hit, bounds.shape[1])
        which, row = np.nonzero(strips[strip, :, column] >= self._limit)
        return strip[which] * STRIP + row, column[which]

    def _multiplied(self, rows: slice, columns: slice, block: np.ndarray, right: Side) -> Pairs:
        """The pairs of a tile in which bounds rule out too little, from all its cosines."""
        pairs = above(block[rows], self._rows(right.places[columns]), self._floor, right.names[columns])
        return Pairs(pairs.row + rows.start, pairs.other, pairs.cosine)

    def _verified(self, passed: list[tuple[np.ndarray, np.ndarray]], block: np.ndarray, right: Side) -> Pairs:
        """Those of the passing pairs whose cosine in float32 reaches the floor."""
        if not passed:
            return Pairs.none()
        row, column = (np.concatenate(part) for part in zip(*passed, strict=True))
        parts = [slice(start, stop) for start, stop in tiles(len(row), VERIFIED)]
        cosine = [np.vecdot(block[row[part]], self._rows(right.places[column[part]])) for part in parts]
        pairs = Pairs(row, right.names[column], np.concatenate(cosine))
        return pairs.where(pairs.cosine >= self._floor)


def whole_strips(n: int) -> int:
    """`n`, rounded up to whole strips: a row of zeros has no bound that passes."""
    return -(-n // STRIP) * STRIP


def as_tensor(points: np.ndarray) -> torch.Tensor:
    """The same memory for torch: int16 are bfloat16."""
    import torch

    tensor = torch.from_numpy(points)
    return tensor.view(torch.bfloat16) if points.dtype == np.int16 else tensor
