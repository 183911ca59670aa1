"""What this machine multiplies fastest, and torch held to one thread for each of ours."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from functools import cache
from typing import Literal, get_args

import numpy as np

Kind = Literal["bfloat16", "float32"]
"""The numbers that bounds are made of."""
KINDS: tuple[Kind, ...] = get_args(Kind)

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


def eigenvectors(symmetric: np.ndarray) -> np.ndarray:
    """Those of a symmetric float64 matrix [d, d], as columns, of the highest eigenvalue first.

    One thread: several would wait for one another thousands of times, for seconds where processors are taken.
    """
    import torch

    with one_torch_thread():
        return torch.linalg.eigh(torch.from_numpy(symmetric)).eigenvectors.flip(1).numpy()


@cache
def fastest_product() -> Kind | None:
    """The kind of numbers whose products are quickest here and come out true; None when neither's do."""
    with one_torch_thread():
        seconds = {kind: _seconds(kind) for kind in KINDS}
    true = {kind: taken for kind, taken in seconds.items() if taken is not None}
    return min(true, key=true.__getitem__, default=None)


def _seconds(kind: Kind) -> float | None:
    """The best of some times for one tile of products of 64 numbers; None when they are not true."""
    import torch

    random = np.random.default_rng(0)
    left, right = (random.standard_normal((rows, 64)).astype(np.float32) for rows in (512, 1024))
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    dtype = getattr(torch, kind)
    a, b = torch.from_numpy(left).to(dtype), torch.from_numpy(right).to(dtype)
    product = torch.mm(a, b.t())
    expected = a.double() @ b.double().t()
    if bool(((product.double() - expected).abs() > ROUNDED[kind] * expected.abs() + SUMMED).any()):
        return None
    best = np.inf
    for _ in range(20):
        start = time.perf_counter()
        torch.mm(a, b.t(), out=product)
        best = min(best, time.perf_counter() - start)
    return float(best)
