"""Near-duplicates by text: dialogues that have most of their short character sequences in common.

MinHash finds who could be near, the sets themselves decide (Jaccard). Of two that share 0.8 of their sequences,
all but one in five thousand pairs are found.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tasks.foundation.ids import seed_of
from tasks.foundation.tables.types import Language

LENGTH: dict[str, int] = {"en": 5, "zh": 3}
"""Characters of a sequence: a word or so in either language."""
BANDS, BAND_ROWS = 16, 4
_BASE = np.uint64(0x9E3779B97F4A7C15)
_RANDOM = np.random.default_rng(seed_of("scenes.near"))
_FACTORS = _RANDOM.integers(1, 2**63, (BANDS * BAND_ROWS, 1), np.uint64) * np.uint64(2) + np.uint64(1)
_SHIFT = np.uint64(32)


def sequences(text: str, language: Language) -> np.ndarray:
    """The distinct sequences of characters of a text as sorted 64-bit hashes; a shorter text is one sequence."""
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.uint64)
    length = min(LENGTH[language], len(points))
    windows = np.lib.stride_tricks.sliding_window_view(points, length) if length else np.zeros((1, 1), np.uint64)
    hashes = np.zeros(len(windows), np.uint64)
    for column in windows.T:
        hashes = (hashes + column + np.uint64(1)) * _BASE
        hashes ^= hashes >> _SHIFT
    return np.unique(hashes)


def in_common(a: np.ndarray, b: np.ndarray) -> float:
    """The share of the sequences of either that both have."""
    both = len(np.intersect1d(a, b, assume_unique=True))
    return both / (len(a) + len(b) - both)


class NearTexts:
    """Texts of one language taken in one after the other, each kept unless it is near a kept one."""

    def __init__(self, language: Language, threshold: float) -> None:
        self._language = language
        self._threshold = threshold
        self._texts: list[str] = []
        self._bands: list[dict[int, list[int]]] = [defaultdict(list) for _ in range(BANDS)]

    def take(self, text: str) -> int | None:
        """Keeps the text, as the next number from 0, and returns None; or the number of the kept one nearest to it."""
        own = sequences(text, self._language)
        bands = _bands(own)
        in_bands = (places.get(band, ()) for band, places in zip(bands, self._bands, strict=True))
        candidates = sorted(set().union(*in_bands))
        shares = [in_common(own, sequences(self._texts[kept], self._language)) for kept in candidates]
        if shares and max(shares) >= self._threshold:
            return candidates[shares.index(max(shares))]
        for band, places in zip(bands, self._bands, strict=True):
            places[band].append(len(self._texts))
        self._texts.append(text)
        return None


def _bands(hashes: np.ndarray) -> list[int]:
    """One number a band; texts with many sequences in common agree in some band."""
    mixed = hashes * _FACTORS
    mixed ^= mixed >> _SHIFT
    least = (mixed * _BASE).min(axis=1).reshape(BANDS, BAND_ROWS)
    folded = np.zeros(BANDS, np.uint64)
    for column in least.T:
        folded = (folded ^ column) * _BASE
        folded ^= folded >> _SHIFT
    return folded.tolist()
