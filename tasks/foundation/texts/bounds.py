"""An upper bound of a cosine that costs a sixth of it: cos(a, b) ≤ ⟨a₁, b₁⟩ + ‖a₂‖·‖b₂‖.

a₁ are the coordinates of a on the first principal axes (not centred: the mean direction is one of them), a₂
is the rest, of which only the length is known; [a₁, ‖a₂‖] is the *point* of a, and the bound is the product of
two points. Where the machine multiplies bfloat16 fast, points are rounded to it: coordinates to the nearest,
lengths up, and the limit that a bound has to reach is lowered by what the rounding can have cost. numpy has no
bfloat16: they are held as int16, the upper half of a float32's bits.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np

Dtype = Literal["bfloat16", "float32"]
"""The numbers that bounds are made of."""
DTYPES: tuple[Dtype, ...] = get_args(Dtype)

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
    dtype: Dtype


@dataclass(frozen=True, slots=True)
class Points:
    """`values` [n, k + 1] in the order walked; a bound below `limit` means a cosine below the floor.

    Both are float32, or bfloat16 held as int16. A bound is rounded to the nearest bfloat16 when it is stored:
    one that reached the limit before reaches the rounded limit after.
    """

    values: np.ndarray
    limit: float | int


def choose_bound(vectors: np.ndarray, order: np.ndarray, floor: float) -> Bound | None:
    """The bound that makes a search cheapest, judged on a sample; None where none would pay.

    The choice changes how long a search takes and nothing else.
    """
    limit = floor - ROUNDING
    if len(order) <= FEW or limit < LOWEST_LIMIT:
        return None
    dtype = fastest_product()
    if dtype is None:
        return None
    axes = principal_axes(vectors[order[:SAMPLE]])
    columns, rows = vectors[order[: TRIED[1]]], vectors[order[-TRIED[0] :]]
    costs = {
        width: SCAN_NS + width * NUMBER_NS[dtype] + PAIR_NS * _share_above(rows, columns, axes[:, : width - 1], limit)
        for width in WIDTHS
        if width <= vectors.shape[1]
    }
    full = vectors.shape[1] * NUMBER_NS["float32"]
    width = min(costs, key=costs.__getitem__, default=0)
    return Bound(axes[:, : width - 1], dtype) if costs.get(width, full) < full else None


def principal_axes(sample: np.ndarray) -> np.ndarray:
    """Eigenvectors of the second moments, strongest first, as float32 columns [d, d].

    One thread: several would wait for one another thousands of times, for seconds where processors are taken.
    """
    import torch

    moments = (sample.T @ sample).astype(np.float64)
    with one_torch_thread():
        vectors = torch.linalg.eigh(torch.from_numpy(moments)).eigenvectors.flip(1).numpy()
    return np.ascontiguousarray(vectors, np.float32)


def _share_above(rows: np.ndarray, columns: np.ndarray, axes: np.ndarray, limit: float) -> float:
    """The share of pairs whose bound reaches the limit."""
    (left, left_rest), (right, right_rest) = split(rows, axes), split(columns, axes)
    return float(np.mean(left @ right.T + np.outer(left_rest, right_rest) >= limit))


def split(vectors: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates on the axes, and the length of what they leave (never too short)."""
    coordinates = vectors @ axes
    rest = np.vecdot(vectors, vectors) - np.vecdot(coordinates, coordinates)
    return coordinates, np.sqrt(np.maximum(rest, 0) + np.float32(LOSS))


def points_of(vectors: np.ndarray, order: np.ndarray, bound: Bound, floor: float) -> Points:
    """The points of all vectors in the order walked, and the limit for them."""
    halves = bound.dtype == "bfloat16"
    values = np.empty((len(order), bound.axes.shape[1] + 1), np.int16 if halves else np.float32)
    error = length = 0.0
    for start, stop in tiles(len(order), SAMPLE):
        coordinates, rest = split(vectors[order[start:stop]], bound.axes)
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


def nearest_bfloat16(values: np.ndarray) -> np.ndarray:
    """float32, rounded to the nearest bfloat16 (ties to even), as processors do when they store a product."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.int16)


def bfloat16_above(values: np.ndarray) -> np.ndarray:
    """Positive float32, rounded up to the next bfloat16."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + np.uint32(0xFFFF)) >> np.uint32(16)).astype(np.int16)


def as_float32(halves: np.ndarray) -> np.ndarray:
    """The numbers that bfloat16 stand for."""
    return (halves.astype(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


MAX_THREADS = 8
ROUNDED = {"bfloat16": 2.0**-8, "float32": 0.0}
"""What storing a product may change, as a share of it: rounding to the nearest bfloat16, once."""
SUMMED = 1e-5
"""What summing in float32 may change a product of unit vectors by."""


def usable_threads() -> int:
    """Processors this process may use, eight at most."""
    affinity = getattr(os, "sched_getaffinity", None)
    return min(len(affinity(0)) if affinity else os.cpu_count() or 1, MAX_THREADS)


@contextlib.contextmanager
def one_torch_thread() -> Iterator[None]:
    """torch with one thread within, and with as many as before afterwards."""
    import torch

    found = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(found)


@cache
def fastest_product() -> Dtype | None:
    """The numbers whose products are quickest here and come out true; None when neither's do."""
    with one_torch_thread():
        seconds = {dtype: _seconds(dtype) for dtype in DTYPES}
    true = {dtype: taken for dtype, taken in seconds.items() if taken is not None}
    return min(true, key=true.__getitem__, default=None)


def _seconds(dtype: Dtype) -> float | None:
    """The best of some times for one tile of products of 64 numbers; None when they are not true."""
    import torch

    random = np.random.default_rng(0)
    left, right = (random.standard_normal((rows, 64)).astype(np.float32) for rows in (512, 1024))
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    a, b = (torch.from_numpy(side).to(getattr(torch, dtype)) for side in (left, right))
    product = torch.mm(a, b.t())
    expected = a.double() @ b.double().t()
    if bool(((product.double() - expected).abs() > ROUNDED[dtype] * expected.abs() + SUMMED).any()):
        return None
    best = np.inf
    for _ in range(20):
        start = time.perf_counter()
        torch.mm(a, b.t(), out=product)
        best = min(best, time.perf_counter() - start)
    return float(best)


def tiles(n: int, size: int) -> Iterator[tuple[int, int]]:
    """(0, size), (size, 2 size) … up to n."""
    return ((start, min(start + size, n)) for start in range(0, n, size))
