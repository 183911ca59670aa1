"""Who gave which rating to what: the input of every agreement statistic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

MISSING = -1


@dataclass(frozen=True)
class Ratings:
    """Codes [items, raters] into `levels` (sorted), `MISSING` where a rater gave none, and each item's cluster.

    `levels` are the numbers or words rated with; `scale` fixes them where categories that nobody used count
    (quadratic weights, Gwet's AC1).
    """

    codes: np.ndarray
    levels: tuple[float | str, ...]
    raters: tuple[str, ...]
    clusters: np.ndarray

    @staticmethod
    def of(
        rows: Sequence[Mapping[str, float | str]],
        raters: Sequence[str],
        clusters: Sequence[int],
        scale: Sequence[float | str] = (),
    ) -> Ratings:
        """From one mapping rater → rating an item; raters without an entry gave none."""
        levels = tuple(sorted({*scale, *(rating for row in rows for rating in row.values())}))
        place = {level: code for code, level in enumerate(levels)}
        codes = np.full((len(rows), len(raters)), MISSING)
        for i, row in enumerate(rows):
            for j, rater in enumerate(raters):
                if rater in row:
                    codes[i, j] = place[row[rater]]
        return Ratings(codes, levels, tuple(raters), np.asarray(clusters, dtype=int))

    @staticmethod
    def of_scores(
        scores: np.ndarray, raters: Sequence[str], clusters: np.ndarray, scale: Sequence[float] = ()
    ) -> Ratings:
        """From scores [items, raters], NaN where there is none."""
        given = ~np.isnan(scores)
        levels = np.unique(np.concatenate([np.asarray(scale, float), scores[given]]))
        codes = np.full(scores.shape, MISSING)
        codes[given] = np.searchsorted(levels, scores[given])
        return Ratings(codes, tuple(float(level) for level in levels), tuple(raters), np.asarray(clusters, dtype=int))

    def pick(self, *raters: int) -> Ratings:
        """Only the given columns."""
        names = tuple(self.raters[rater] for rater in raters)
        return Ratings(self.codes[:, list(raters)], self.levels, names, self.clusters)

    def only(self, items: np.ndarray) -> Ratings:
        """Only the items chosen by a mask [items]."""
        return Ratings(self.codes[items], self.levels, self.raters, self.clusters[items])

    @cached_property
    def given(self) -> np.ndarray:
        """Mask [items, raters] of the ratings that exist."""
        return self.codes != MISSING

    def rated_by(self, at_least: int) -> Ratings:
        """Only items with at least so many ratings."""
        return self.only(self.given.sum(axis=1) >= at_least)

    @property
    def complete(self) -> Ratings:
        """Only items that every rater rated."""
        return self.rated_by(len(self.raters))

    @property
    def values(self) -> np.ndarray:
        """The ratings as numbers [items, raters], NaN where missing; for numeric levels only."""
        numbers = np.append(np.asarray(self.levels, dtype=float), np.nan)
        return numbers[self.codes]

    @cached_property
    def counts(self) -> np.ndarray:
        """How many raters gave each level to each item: [items, levels]."""
        table = np.zeros((len(self.codes), len(self.levels)))
        for column in self.codes.T:
            rated = column != MISSING
            table[np.nonzero(rated)[0], column[rated]] += 1
        return table

    @property
    def joint(self) -> np.ndarray:
        """Of two raters, items rated by both as one-hot tables [items, levels · levels]."""
        q = len(self.levels)
        table = np.zeros((len(self.codes), q * q))
        both = self.given.all(axis=1)
        a, b = self.codes[both].T
        table[np.nonzero(both)[0], a * q + b] = 1
        return table
