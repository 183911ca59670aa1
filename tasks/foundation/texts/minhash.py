"""Near-duplicates by text: texts that have most of their short character sequences in common.

MinHash says who could be near, the sets themselves decide (Jaccard). Of pairs at the threshold all but about one in
four thousand are found, of nearer ones more. Knows no words, so it serves languages that no encoder here knows.
"""

from __future__ import annotations

import math
import unicodedata

import numpy as np

from tasks.foundation.ids import seed_of
from tasks.foundation.tables.types import Language

LENGTH: dict[Language, int] = {"en": 5, "zh": 3}
"""Characters of a sequence: a word or so in either language."""
MISSED = 1 / 4000
"""Pairs at the threshold that no band may find."""
MOST_BANDS, MOST_ROWS = 48, 4
DOUBT = 4.0
"""Standard deviations by which the estimate of a pair may be below the threshold for its sets to be compared."""
_BASE = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


def fold(text: str, joint: str = " ") -> str:
    """The text with compatibility characters, case and spaces levelled; `joint` stands for every run of spaces.

    >>> fold("Ｈello   World "), fold("Ｈello   World ", joint="")
    ('hello world', 'helloworld')
    """
    return joint.join(unicodedata.normalize("NFKC", text).casefold().split())


def sequences(text: str, language: Language) -> np.ndarray:
    """The distinct sequences of characters of a text as sorted 64-bit hashes; a shorter text is one sequence."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
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


def bands_for(threshold: float) -> tuple[int, int]:
    """Bands and rows of each, so that a pair at the threshold agrees in some band but for `MISSED`."""
    for rows in range(MOST_ROWS, 0, -1):
        agree = threshold**rows
        bands = 1 if agree == 1.0 else math.ceil(math.log(MISSED) / math.log1p(-agree))
        if bands <= MOST_BANDS:
            return bands, rows
    return MOST_BANDS, 1


class MinHash:
    """The smallest of the sequences of a text under each of `size` orders; the orders are the same everywhere."""

    def __init__(self, size: int) -> None:
        random = np.random.default_rng(seed_of("near_texts"))
        self._factors = random.integers(1, 2**63, (size, 1), np.uint64) * np.uint64(2) + np.uint64(1)

    def sign(self, hashes: np.ndarray) -> np.ndarray:
        """uint64 [size]. The share of numbers in which two agree estimates what they have in common."""
        least = np.full(len(self._factors), np.iinfo(np.uint64).max, np.uint64)
        for start in range(0, len(hashes), 1 << 13):  # a long text's orders would take much memory at once
            mixed = hashes[start : start + (1 << 13)] * self._factors
            mixed ^= mixed >> _SHIFT
            least = np.minimum(least, (mixed * _BASE).min(axis=1))
        return least


class NearTexts:
    """Texts of one language, one after the other, each kept unless it is near a kept one."""

    def __init__(self, language: Language, threshold: float) -> None:
        self._language = language
        self._threshold = threshold
        self._bands, self._rows = bands_for(threshold)
        self._minhash = MinHash(self._bands * self._rows)
        doubt = DOUBT * math.sqrt(threshold * (1 - threshold) / (self._bands * self._rows))
        self._worth_a_look = threshold - doubt
        self._texts: list[str] = []
        self._signatures = np.empty((64, self._bands * self._rows), np.uint64)
        self._numbers: list[dict[int, int | tuple[int, ...]]] = [{} for _ in range(self._bands)]
        """Which texts have a band: mostly one, whose number takes a third of the memory of a list."""

    def keep_unless_near(self, text: str) -> int | None:
        """Keeps the text, as the next number from 0, and returns None; or the number of the kept one nearest to it."""
        own = sequences(text, self._language)
        signature = self._minhash.sign(own)
        bands = self._folded(signature)
        candidates = self._candidates(signature, bands)
        shares = [in_common(own, sequences(self._texts[kept], self._language)) for kept in candidates]
        if shares and max(shares) >= self._threshold:
            return candidates[shares.index(max(shares))]
        self._keep(text, signature, bands)
        return None

    def _candidates(self, signature: np.ndarray, bands: list[int]) -> list[int]:
        """The kept ones that agree in some band and, by their signatures, may be near."""
        in_bands = (_as_tuple(numbers.get(band, ())) for band, numbers in zip(bands, self._numbers, strict=True))
        found = np.array(sorted(set().union(*in_bands)), np.int64)
        estimates = (self._signatures[found] == signature).mean(axis=1)
        near: list[int] = found[estimates >= self._worth_a_look].tolist()
        return near

    def _keep(self, text: str, signature: np.ndarray, bands: list[int]) -> None:
        number = len(self._texts)
        if number == len(self._signatures):
            self._signatures = np.concatenate([self._signatures, np.empty_like(self._signatures)])
        self._signatures[number] = signature
        for band, numbers in zip(bands, self._numbers, strict=True):
            numbers[band] = (*_as_tuple(numbers[band]), number) if band in numbers else number
        self._texts.append(text)

    def _folded(self, signature: np.ndarray) -> list[int]:
        """One number a band; texts with many sequences in common agree in some band."""
        folded = np.zeros(self._bands, np.uint64)
        for column in signature.reshape(self._bands, self._rows).T:
            folded = (folded ^ column) * _BASE
            folded ^= folded >> _SHIFT
        return folded.tolist()


def _as_tuple(numbers: int | tuple[int, ...]) -> tuple[int, ...]:
    return (numbers,) if isinstance(numbers, int) else numbers
