"""Pairs of a row and an earlier one with their cosine, as three columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Pairs:
    """`row` counts within the rows that were searched for, `other` is a place in the walk."""

    row: np.ndarray
    other: np.ndarray
    cosine: np.ndarray

    def __len__(self) -> int:
        return len(self.row)

    @staticmethod
    def none() -> Pairs:
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))

    @staticmethod
    def gather(several: Sequence[Pairs]) -> Pairs:
        """All of them, as they come."""
        several = several or [Pairs.none()]
        return Pairs(
            np.concatenate([pairs.row for pairs in several]),
            np.concatenate([pairs.other for pairs in several]),
            np.concatenate([pairs.cosine for pairs in several]),
        )

    @staticmethod
    def join(several: Sequence[Pairs]) -> Pairs:
        """All of them, by row and then by place in the walk."""
        pairs = Pairs.gather(several)
        return pairs.where(np.lexsort((pairs.other, pairs.row)))

    def where(self, wanted: np.ndarray) -> Pairs:
        """Those that are marked (bool), or named by position."""
        return Pairs(self.row[wanted], self.other[wanted], self.cosine[wanted])

    def strongest(self, n_rows: int, within: float) -> Pairs:
        """Of each row those at most `within` below its highest cosine."""
        return self.where(self.cosine >= self.highest(n_rows)[self.row] - within)

    def highest(self, n_rows: int) -> np.ndarray:
        """The highest cosine of each row, -inf where it has no pair."""
        best = np.full(n_rows, -np.inf, np.float32)
        np.maximum.at(best, self.row, self.cosine)
        return best
