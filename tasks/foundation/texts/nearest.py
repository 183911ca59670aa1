"""Which of many unit vectors are close to which: every pair above a cosine, none missed, no pair table kept.

Steps are searched against those *kept* before them (the package says what a step, a row and a query are).
`approximate.open_search` gives the way that is asked for; the exact ones find the same pairs but for some within 1e-5
of the floor, and the caller decides.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from tasks.foundation.texts.bounds import Bound, one_torch_thread, points_of, tiles, usable_threads

if TYPE_CHECKING:
    import torch

SearchName = Literal["exact", "approximate"]

SPARE = 1e-5
"""How far float32 cosines of the same two vectors may lie apart, by the order in which they are summed."""
TILE = 1024
"""Kept steps multiplied at once."""
MANY = 1 << 16
"""Pairs with kept ones beyond which those that cannot be a query's closest are let go."""
RIVAL = 1e-3
"""How far below a query's highest cosine a pair is still of interest to a caller that says nothing else."""
FULL_SHARE = 0.02
"""Share of a tile's bounds that pass from which on all its cosines are computed."""
STRIP = 32
"""Queries of which the highest bound of each column is found first."""
FEW_HITS = 2048
"""Strips of one column that are cheaper to look through one by one than the whole tile again."""
VERIFIED = 4096
"""Pairs whose cosines are computed at once."""

Tile = tuple[int, int, int, int]
"""First query, end of queries, first column, end of columns."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of a query and an earlier step with their cosine, as three columns."""

    query: np.ndarray
    step: np.ndarray
    cosine: np.ndarray

    def __len__(self) -> int:
        return len(self.query)

    @staticmethod
    def none() -> Pairs:
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))

    @staticmethod
    def gather(several: Sequence[Pairs]) -> Pairs:
        """All of them, as they come."""
        several = several or [Pairs.none()]
        return Pairs(
            np.concatenate([pairs.query for pairs in several]),
            np.concatenate([pairs.step for pairs in several]),
            np.concatenate([pairs.cosine for pairs in several]),
        )

    @staticmethod
    def join(several: Sequence[Pairs]) -> Pairs:
        """All of them, by query and then by step."""
        pairs = Pairs.gather(several)
        return pairs.where(np.lexsort((pairs.step, pairs.query)))

    def where(self, wanted: np.ndarray) -> Pairs:
        """Those that are marked (bool), or named by number."""
        return Pairs(self.query[wanted], self.step[wanted], self.cosine[wanted])

    def strongest(self, n_queries: int, within: float) -> Pairs:
        """Of each query those at most `within` below its highest cosine."""
        return self.where(self.cosine >= self.highest(n_queries)[self.query] - within)

    def highest(self, n_queries: int) -> np.ndarray:
        """The highest cosine of each query, -inf where it has no pair."""
        best = np.full(n_queries, -np.inf, np.float32)
        np.maximum.at(best, self.query, self.cosine)
        return best


@dataclass(frozen=True, slots=True)
class Recall:
    """An approximate search found a near kept one for `n_found` of `n_near` sampled steps that have one."""

    n_found: int
    n_near: int

    def __add__(self, other: Recall) -> Recall:
        return Recall(self.n_found + other.n_found, self.n_near + other.n_near)


class KeptSearch:
    """Every cosine in float32, a tile at a time. Holds steps and one tile, no vectors.

    What it finds are pairs whose cosine reaches the floor (less SPARE). Steps come in ascending order, each once.
    """

    def __init__(self, vectors: np.ndarray, order: np.ndarray, floor: float, rival: float = RIVAL) -> None:
        self._vectors, self._order, self._floor, self._rival = vectors, order, floor - SPARE, rival + 2 * SPARE
        self._kept = np.empty(len(order), np.int64)
        self._n_kept = 0

    def near(self, steps: np.ndarray) -> Pairs:
        """Pairs with kept ones; of a step with very many, those within the `rival` distance of its closest."""
        block, kept = self._vectors_of(steps), self._kept[: self._n_kept]
        found: list[Pairs] = []
        for start, stop in tiles(len(kept), TILE):
            found.append(pairs_above(block, self._vectors_of(kept[start:stop]), self._floor, kept[start:stop]))
            found = drop_hopeless(found, len(steps), self._rival)
        return Pairs.join(found)

    def within(self, steps: np.ndarray, among: np.ndarray) -> Pairs:
        """Pairs of a step and an earlier one of the same steps, out of those that `among` (bool) marks."""
        block, columns = self._vectors_of(steps), np.flatnonzero(among)
        spans = tiles(len(columns), TILE)
        found = (pairs_above(block, block[columns[a:b]], self._floor, columns[a:b]) for a, b in spans)
        return Pairs.join([earlier(pairs, steps) for pairs in found])

    def keep(self, steps: np.ndarray) -> None:
        """From now on these are kept; they come after all that are kept already."""
        self._kept[self._n_kept : self._n_kept + len(steps)] = steps
        self._n_kept += len(steps)

    def measure_recall(self) -> Recall | None:
        """How much an approximate search has found; None for one that misses nothing."""
        return None

    def _vectors_of(self, steps: np.ndarray) -> np.ndarray:
        return self._vectors[self._order[steps]]


def pairs_above(left: np.ndarray, right: np.ndarray, floor: float, names: np.ndarray) -> Pairs:
    """All pairs of a row of `left` and one of `right`, whose `names` are given, with a cosine from `floor` up."""
    cosines = left @ right.T
    query, column = np.nonzero(cosines >= floor)
    return Pairs(query, names[column], cosines[query, column])


def drop_hopeless(found: list[Pairs], n_queries: int, rival: float) -> list[Pairs]:
    """Few pairs as they are; of many those that may be their query's closest. Only of pairs with kept ones: among
    others the closest may be dropped, and then the next one counts."""
    return found if sum(map(len, found)) <= MANY else [Pairs.gather(found).strongest(n_queries, rival)]


def earlier(pairs: Pairs, steps: np.ndarray) -> Pairs:
    """Pairs within a block (both sides as queries), each once and named by step: those whose other one comes first."""
    first = pairs.where(pairs.step < pairs.query)
    return Pairs(first.query, steps[first.step], first.cosine)


@dataclass(frozen=True, slots=True)
class Columns:
    """What queries are multiplied with: `points`, the `steps` they belong to, what pairs call them, and whether all of
    them are kept."""

    points: np.ndarray
    steps: np.ndarray
    names: np.ndarray
    kept: bool


class BoundedSearch(KeptSearch):
    """Exact with few full cosines: a bound of every pair first, in float32 only those whose bound passes.

    The points of kept steps are moved together at the front of the array of all points, so that a tile of bounds
    is one product. Threads take tiles in turn, as many as there are processors, each with one torch thread. Their
    number and the bound change nothing but the time.
    """

    def __init__(
        self,
        vectors: np.ndarray,
        order: np.ndarray,
        floor: float,
        bound: Bound,
        rival: float = RIVAL,
        threads: int | None = None,
    ) -> None:
        super().__init__(vectors, order, floor, rival)
        points = points_of(vectors, order, bound, self._floor)
        self._points, self._limit = points.values, points.limit
        self._threads = threads or usable_threads()

    def near(self, steps: np.ndarray) -> Pairs:
        kept = self._kept[: self._n_kept]
        columns = Columns(self._points[: len(kept)], kept, kept, kept=True)
        work = [(*a, *c) for c in tiles(len(kept), TILE) for a in tiles(len(steps), TILE)]
        return Pairs.join(self._search(steps, columns, work))

    def within(self, steps: np.ndarray, among: np.ndarray) -> Pairs:
        marked = np.flatnonzero(among)
        columns = Columns(self._points[steps[marked]], steps[marked], marked, kept=False)
        spans = itertools.product(tiles(len(marked), TILE), tiles(len(steps), TILE))
        below = [(*a, *c) for c, a in spans if marked[c[0]] < a[1]]
        return Pairs.join([earlier(pairs, steps) for pairs in self._search(steps, columns, below)])

    def keep(self, steps: np.ndarray) -> None:
        # What lies there belongs to steps that were visited before and dropped, or to these.
        self._points[self._n_kept : self._n_kept + len(steps)] = self._points[steps]
        super().keep(steps)

    def _search(self, steps: np.ndarray, columns: Columns, work: list[Tile]) -> list[Pairs]:
        left = np.zeros((whole_strips(len(steps)), self._points.shape[1]), self._points.dtype)
        left[: len(steps)] = self._points[steps]
        block = self._vectors_of(steps)
        turns = iter(work)  # a list's iterator gives each tile to one thread
        with one_torch_thread(), ThreadPoolExecutor(self._threads) as pool:
            n_jobs = min(self._threads, len(work))
            jobs = [pool.submit(self._search_tiles, turns, left, block, columns) for _ in range(n_jobs)]
            return list(itertools.chain.from_iterable(job.result() for job in jobs))

    def _search_tiles(
        self, turns: Iterator[Tile], left: np.ndarray, block: np.ndarray, columns: Columns
    ) -> list[Pairs]:
        """What one thread finds in the tiles that it gets."""
        import torch

        torch.set_num_threads(1)  # here, not only where the thread was begun: OpenMP counts by thread
        a, b = as_tensor(left), as_tensor(columns.points).t()
        room = np.empty(TILE * TILE, left.dtype)
        found: list[Pairs] = []
        passed: list[tuple[np.ndarray, np.ndarray]] = []
        for top, bottom, first, end in turns:
            height = whole_strips(bottom - top)
            bounds = room[: height * (end - first)].reshape(height, end - first)
            torch.mm(a[top : top + height], b[:, first:end], out=as_tensor(bounds))
            query, column = self._find_passing(bounds)
            if len(query) > FULL_SHARE * bounds.size:
                found.append(self._multiply(slice(top, bottom), slice(first, end), block, columns))
            elif len(query):
                passed.append((query + top, column + first))
            if sum(len(query) for query, _ in passed) > VERIFIED:
                found.append(self._verify(passed, block, columns))
                passed.clear()
            if columns.kept:
                found = drop_hopeless(found, len(block), self._rival)
        return [*found, self._verify(passed, block, columns)]

    def _find_passing(self, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where a bound reaches the limit: queries and columns of the tile."""
        strips = bounds.reshape(-1, STRIP, bounds.shape[1])
        hit = np.flatnonzero(strips.max(axis=1) >= self._limit)
        if len(hit) > FEW_HITS:
            return np.divmod(np.flatnonzero(bounds >= self._limit), bounds.shape[1])
        strip, column = np.divmod(hit, bounds.shape[1])
        which, query = np.nonzero(strips[strip, :, column] >= self._limit)
        return strip[which] * STRIP + query, column[which]

    def _multiply(self, queries: slice, span: slice, block: np.ndarray, columns: Columns) -> Pairs:
        """The pairs of a tile in which bounds rule out too little, from all its cosines."""
        pairs = pairs_above(block[queries], self._vectors_of(columns.steps[span]), self._floor, columns.names[span])
        return Pairs(pairs.query + queries.start, pairs.step, pairs.cosine)

    def _verify(self, passed: list[tuple[np.ndarray, np.ndarray]], block: np.ndarray, columns: Columns) -> Pairs:
        """Those of the passing pairs whose cosine in float32 reaches the floor."""
        if not passed:
            return Pairs.none()
        query, column = (np.concatenate(each) for each in zip(*passed, strict=True))
        spans = [slice(start, stop) for start, stop in tiles(len(query), VERIFIED)]
        cosine = [np.vecdot(block[query[span]], self._vectors_of(columns.steps[column[span]])) for span in spans]
        pairs = Pairs(query, columns.names[column], np.concatenate(cosine))
        return pairs.where(pairs.cosine >= self._floor)


def whole_strips(n: int) -> int:
    """`n`, rounded up to whole strips: a row of zeros has no bound that passes."""
    return -(-n // STRIP) * STRIP


def as_tensor(points: np.ndarray) -> torch.Tensor:
    """The same memory for torch: int16 are bfloat16."""
    import torch

    tensor = torch.from_numpy(points)
    return tensor.view(torch.bfloat16) if points.dtype == np.int16 else tensor
