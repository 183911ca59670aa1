"""How alike the texts of one language are, on average over pairs: a number to watch, not to decide on.

Cosines where an encoder knows the language, over all pairs; else the share of character sequences in common, over
all pairs or a seeded sample of them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np

from tasks.foundation.ids import seed_of
from tasks.foundation.tables.personas import Diversity
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.dedupe_texts import levelled
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.near_texts import in_common, sequences
from tasks.foundation.texts.similarity import Similarity, readable

MOST_PAIRS = 20_000
"""Pairs compared by their characters."""


def likeness(table: str, texts: Sequence[str], language: Language, similarity: Similarity, seed: int) -> Diversity:
    """How alike the texts of a table's rows are on average: 0 nothing in common, 1 all the same; None for fewer than
    two. Texts that the encoder cannot read are not counted."""
    by_encoder = isinstance(similarity, Encoder)
    texts = [text for text in texts if readable(similarity, text, language)]
    mean: float | None = None
    pairs = [] if by_encoder else sampled_pairs(len(texts), seed)
    if isinstance(similarity, Encoder) and len(texts) > 1:
        mean = mean_cosine(similarity.encode(texts))
    elif pairs:
        mean = mean_jaccard(texts, pairs, language)
    return Diversity(
        table_name=table,
        language=language,
        statistic="mean_cosine" if by_encoder else "mean_jaccard",
        value=mean,
        n=len(texts),
        n_of=_n_pairs(len(texts)) if by_encoder else len(pairs),
    )


def mean_cosine(vectors: np.ndarray) -> float | None:
    """The mean over all pairs of unit vectors (float32 [n, d]), from their sum; None for fewer than two.

    >>> mean_cosine(np.array([[1, 0], [0, 1], [1, 0]], np.float32))
    0.3333333333333333
    """
    n = len(vectors)
    if n < 2:
        return None
    total = vectors.sum(axis=0, dtype=np.float64)
    own = float(np.square(vectors, dtype=np.float64).sum())
    return (float(total @ total) - own) / (n * (n - 1))


def mean_jaccard(texts: Sequence[str], pairs: Sequence[tuple[int, int]], language: Language) -> float:
    """The mean over some pairs of what two texts have in common, case, width and spaces aside."""
    places = {place for pair in pairs for place in pair}
    sets = {place: sequences(levelled(texts[place]), language) for place in places}
    return math.fsum(in_common(sets[a], sets[b]) for a, b in pairs) / len(pairs)


def sampled_pairs(n: int, seed: int, most: int = MOST_PAIRS) -> list[tuple[int, int]]:
    """All pairs of `n` places, or `most` different ones of them where there are more."""
    whole = _n_pairs(n)
    numbers: Sequence[int] = range(whole)
    if whole > most:
        numbers = random.Random(seed_of(seed, "diversity.pairs", n)).sample(numbers, most)
    return [_pair(number) for number in numbers]


def _pair(number: int) -> tuple[int, int]:
    """The pairs counted through: (0, 1), (0, 2), (1, 2), (0, 3) …"""
    second = (1 + math.isqrt(1 + 8 * number)) // 2
    return number - _n_pairs(second), second


def _n_pairs(n: int) -> int:
    return n * (n - 1) // 2
