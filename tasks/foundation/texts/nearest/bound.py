"""An upper bound of a cosine that costs a sixth of it: cos(a, b) ≤ ⟨a₁, b₁⟩ + ‖a₂‖·‖b₂‖.

a₁ are the coordinates of a on the first principal axes (not centred: the mean direction is one of them), a₂
is the rest, of which only the length is known; [a₁, ‖a₂‖] is the *point* of a, and the bound is the product of
two points. Where the machine multiplies bfloat16 fast, points are rounded to it: coordinates to the nearest,
lengths up, and the limit that a bound has to reach is lowered by what the rounding can have cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tasks.foundation.texts.nearest.bfloat16 import as_float32, bfloat16_above, nearest_bfloat16
from tasks.foundation.texts.nearest.blocked import tiles
from tasks.foundation.texts.nearest.numerics import Kind, eigenvectors, fastest_product

WIDTHS = (32, 64, 96, 128, 192)
"""Numbers a point may have."""
FEW = 4096
"""Vectors up to which multiplying in full takes a moment."""
SAMPLE = 8192
"""Vectors that the principal axes are found from."""
TRIED = (512, 4096)
"""Pairs that the share of bounds above the limit is counted on, as rows × columns."""
SCAN_NS = 0.3
"""About how long it takes to store a bound and to see that it does not pass (two cores, nanoseconds)."""
NUMBER_NS = {"bfloat16": 0.0025, "float32": 0.014}
"""… to multiply one number of two points, or of two vectors (float32)."""
PAIR_NS = 2000
"""… to compute the cosine of a pair that passes."""
ROUNDING = 0.005
"""About what bfloat16 lowers the limit by."""
LOSS = 1e-5
"""More than float32 loses in a product of points, in the coordinates and in the lengths."""
LOWEST_LIMIT = 0.05
"""Bounds are not worth it below; and bfloat16 compare as int16 only above 0."""


@dataclass(frozen=True, slots=True)
class Bound:
    """`axes` (float32 [d, k], orthonormal columns) and the numbers that points are made of."""

    axes: np.ndarray
    kind: Kind


@dataclass(frozen=True, slots=True)
class Points:
    """`values` [n, k + 1] in order of the walk; a bound below `limit` means a cosine below the floor.

    Both are float32, or bfloat16 held as int16. A bound is rounded to the nearest bfloat16 when it is stored:
    one that reached the limit before reaches the rounded limit after.
    """

    values: np.ndarray
    limit: float | int


def choose_bound(vectors: np.ndarray, walk: np.ndarray, floor: float) -> Bound | None:
    """The bound that makes a search cheapest, judged on a sample; None where none would pay.

    The choice changes how long a search takes and nothing else.
    """
    limit = floor - ROUNDING
    if len(walk) <= FEW or limit < LOWEST_LIMIT:
        return None
    kind = fastest_product()
    if kind is None:
        return None
    axes = principal_axes(vectors[walk[:SAMPLE]])
    columns, rows = vectors[walk[: TRIED[1]]], vectors[walk[-TRIED[0] :]]
    costs = {
        width: SCAN_NS + width * NUMBER_NS[kind] + PAIR_NS * _share_above(rows, columns, axes[:, : width - 1], limit)
        for width in WIDTHS
        if width <= vectors.shape[1]
    }
    full = vectors.shape[1] * NUMBER_NS["float32"]
    width = min(costs, key=costs.__getitem__, default=0)
    return Bound(axes[:, : width - 1], kind) if costs.get(width, full) < full else None


def principal_axes(sample: np.ndarray) -> np.ndarray:
    """Eigenvectors of the second moments, strongest first, as float32 columns [d, d]."""
    moments = (sample.T @ sample).astype(np.float64)
    return np.ascontiguousarray(eigenvectors(moments), np.float32)


def _share_above(rows: np.ndarray, columns: np.ndarray, axes: np.ndarray, limit: float) -> float:
    """The share of pairs whose bound reaches the limit."""
    (left, left_rest), (right, right_rest) = split(rows, axes), split(columns, axes)
    return float(np.mean(left @ right.T + np.outer(left_rest, right_rest) >= limit))


def split(vectors: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates on the axes, and the length of what they leave (never too short)."""
    coordinates = vectors @ axes
    rest = np.vecdot(vectors, vectors) - np.vecdot(coordinates, coordinates)
    return coordinates, np.sqrt(np.maximum(rest, 0) + np.float32(LOSS))


def points_of(vectors: np.ndarray, walk: np.ndarray, bound: Bound, floor: float) -> Points:
    """The points of all vectors in order of the walk, and the limit for them."""
    halves = bound.kind == "bfloat16"
    values = np.empty((len(walk), bound.axes.shape[1] + 1), np.int16 if halves else np.float32)
    error = length = 0.0
    for start, stop in tiles(len(walk), SAMPLE):
        coordinates, rest = split(vectors[walk[start:stop]], bound.axes)
        length = max(length, _longest(coordinates))
        if halves:
            values[start:stop, :-1] = nearest_bfloat16(coordinates)
            values[start:stop, -1] = bfloat16_above(rest)
            error = max(error, _longest(as_float32(values[start:stop, :-1]) - coordinates))
        else:
            values[start:stop, :-1], values[start:stop, -1] = coordinates, rest
    limit = floor - 2 * LOSS - error * (2 * length + error)
    return Points(values, int(nearest_bfloat16(np.array([limit]))[0]) if halves else limit)


def _longest(rows: np.ndarray) -> float:
    return float(np.sqrt(np.vecdot(rows, rows).max(initial=0.0)))
