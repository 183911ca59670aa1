"""What of a text the network reads: its beginning, or all of it in windows that overlap.

>>> [(window.start, window.stop) for window in windows(500, room=254)]
[(0, 254), (190, 444), (380, 500)]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

LongTexts = Literal["truncate", "windows"]
OVERLAP = 0.25
"""The share of a window that the next one reads again: of 254 pieces 64, a stride of 190."""


def windows(pieces: int, room: int) -> list[range]:
    """The windows of a text of so many pieces, `room` pieces each but for the last; one for a text that fits."""
    stride = room - round(room * OVERLAP)
    starts = range(0, max(pieces - room, 0) + stride, stride) if pieces > room else range(1)
    return [range(start, min(start + room, pieces)) for start in starts]


def parts_read(pieces: int, room: int, long_texts: LongTexts) -> list[range]:
    """Which pieces of a text are read together; nothing but the first `room` under `truncate`."""
    return windows(pieces, room) if long_texts == "windows" else [range(min(pieces, room))]


def joined(vectors: np.ndarray, weights: Sequence[int], owners: Sequence[int], texts: int) -> np.ndarray:
    """Unit float32 [texts, d]: of each text the mean of its windows' unit vectors, weighted by their pieces.

    `owners` says whose each window is, in ascending order. The vector of a text with one window is that window's.
    """
    owner = np.asarray(owners)
    first = np.searchsorted(owner, np.arange(texts))
    found = vectors[first]
    for text in _with_several(owner, texts):
        own = slice(first[text], int(np.searchsorted(owner, text + 1)))
        total = np.asarray(weights[own], np.float64) @ vectors[own].astype(np.float64)
        found[text] = total / np.linalg.norm(total)
    return found


def _with_several(owner: np.ndarray, texts: int) -> Iterable[int]:
    several: list[int] = np.flatnonzero(np.bincount(owner, minlength=texts) > 1).tolist()
    return several
