"""bfloat16 as numpy, which has none, can hold it: int16 with the upper half of a float32's bits.

Those of positive numbers compare like the numbers; those of negative ones are negative.
"""

from __future__ import annotations

import numpy as np


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
