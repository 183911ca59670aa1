"""Statistics as functions of sums over clusters, so that 2,000 resamples are one matrix product.

A formula takes summed columns [..., k] and gives values [...]; NaN where there is nothing to compute
from. The same formula serves the value itself (sums over all clusters) and its resamples.

>>> float(ratio(100.0)(np.array([3.0, 4.0])))
75.0
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Formula = Callable[[np.ndarray], np.ndarray]


def quotient(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """numerator / denominator, NaN where the denominator is 0; shapes broadcast."""
    numerator, denominator = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    return np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator != 0)


def ratio(scale: float = 1.0) -> Formula:
    """Columns [sum, count] → scale · sum / count: a mean, over units or pooled over parts of units."""
    return lambda sums: scale * quotient(sums[..., 0], sums[..., 1])


def difference(scale: float = 1.0) -> Formula:
    """Columns [sum a, count a, sum b, count b] → scale · (mean a − mean b); NaN when either count is 0."""
    return lambda sums: scale * (quotient(sums[..., 0], sums[..., 1]) - quotient(sums[..., 2], sums[..., 3]))


def mean_of_means(parts: int) -> Formula:
    """Columns [sum, count] × parts → the plain mean of the parts' means; NaN when a part has none."""

    def formula(sums: np.ndarray) -> np.ndarray:
        return np.mean([quotient(sums[..., 2 * part], sums[..., 2 * part + 1]) for part in range(parts)], axis=0)

    return formula


def macro_f1(labels: int) -> Formula:
    """Columns [hits × labels, gold × labels, predicted × labels] → mean of 2·hits / (gold + predicted) over
    the labels that occur in gold or prediction; NaN when none occurs. Equals scikit-learn's `f1_score`
    with average="macro" over the occurring labels."""

    def formula(sums: np.ndarray) -> np.ndarray:
        hits, gold, predicted = (sums[..., part * labels : (part + 1) * labels] for part in range(3))
        occurs = gold + predicted > 0
        scores = np.where(occurs, 2 * hits / np.where(occurs, gold + predicted, 1), 0.0)
        return quotient(scores.sum(axis=-1), occurs.sum(axis=-1))

    return formula


def by_cluster(columns: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Columns [n, k] summed within clusters (codes ≥ 0, [n]) → [m, k] over the clusters that occur, in code order."""
    if len(columns) == 0:
        return np.zeros((0, columns.shape[1]))
    found, places = np.unique(clusters, return_inverse=True)
    return sum_rows(columns, places, len(found))


def sum_rows(columns: np.ndarray, codes: np.ndarray, size: int) -> np.ndarray:
    """Columns [n, k] summed by code below `size` [n] → [size, k], in the order of the rows."""
    k = columns.shape[1]
    places = (codes[:, None] * k + np.arange(k)).ravel()
    return np.bincount(places, weights=columns.ravel(), minlength=size * k).reshape(size, k)
