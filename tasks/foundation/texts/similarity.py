"""What texts of a language are compared with; the one place where that is chosen.

An encoder is used for the languages it was trained on and for no other: MiniLM, the papers' encoder, knows English
only, and gives Chinese texts vectors that mean nothing. Where no encoder knows the language, or its weights are not
here, texts are compared by their characters (MinHash); so are those that are in another language than is said of them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.foundation.errors import ConfigError
from tasks.foundation.ids import seed_of
from tasks.foundation.settings import Settings
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.personas import Diversity
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.encoder_folder import Precision
from tasks.foundation.texts.languages import language_of
from tasks.foundation.texts.minhash import fold, in_common, sequences
from tasks.foundation.texts.word_encoder import WORDS, WordEncoder
from tasks.foundation.weights import missing, weights_of

BY_CHARACTERS = "minhash"


@dataclass(frozen=True, slots=True)
class ByCharacters:
    """Texts have in common what sequences of characters they share; `why` says why no encoder is used."""

    language: Language
    why: str

    @property
    def fingerprint(self) -> str:
        return BY_CHARACTERS

    @property
    def explanation(self) -> str:
        return f"texts are compared by their characters (MinHash): {self.why}"


Similarity = Encoder | ByCharacters


def similarity_of(language: Language, settings: Settings, cache: Path | None = None) -> Similarity:
    """The encoder that the settings name for a language, or its characters.

    English is never compared by characters: without its weights, the first use of the encoder raises
    ModelUnavailable. ConfigError for an encoder of the catalogue that does not know the language.
    """
    section = settings.encoder
    name = section.of(language)
    if name is None:
        return ByCharacters(language, f"encoder.{language} is null")
    if name == WORDS:
        return WordEncoder()
    folder = section.folder(name)
    if folder is None:
        _check_knows(name, language)
        problem = missing(name)
    else:
        is_there = (folder / "config.json").is_file()
        problem = None if is_there else f"The encoder's folder {folder} holds no config.json."
    if problem and language != "en":
        return ByCharacters(language, problem)
    precision: Precision = section.precision
    return Encoder(name, cache, precision, threads=section.threads, folder=folder)


def can_read(similarity: Similarity, text: str, language: Language) -> bool:
    """Whether a text, said to be in a language, may be held against others in this way: by an encoder only if it is
    in it. Vectors of texts that an encoder cannot read are alike, whatever they say."""
    return isinstance(similarity, ByCharacters) or language_of(text) == language


def describe(similarity: Similarity) -> dict[str, str]:
    """What a commit says of it."""
    if isinstance(similarity, ByCharacters):
        return {"method": BY_CHARACTERS, "why": similarity.why}
    fingerprint = similarity.fingerprint[:16]
    return {"encoder": similarity.name, "precision": similarity.precision, "fingerprint": fingerprint}


def _check_knows(name: str, language: Language) -> None:
    weights = weights_of(name)
    if weights.kind != "encoder" or language not in weights.languages:
        known = " and ".join(LANGUAGES[each] for each in LANGUAGES if each in weights.languages)
        raise ConfigError(
            f"Expected an encoder that knows {LANGUAGES[language]} in encoder.{language}, found {name!r}, which "
            f"{f'knows {known} only' if known else 'is no sentence encoder'}. `colloquy models list` shows what there "
            "is; null compares texts by their characters."
        )


MOST_PAIRS = 20_000
"""Pairs compared by their characters."""


def measure_likeness(
    table: str, texts: Sequence[str], language: Language, similarity: Similarity, seed: int
) -> Diversity:
    """How alike the texts of a table's rows are on average over pairs, a number to watch, not to decide on.

    0: nothing in common, 1: all the same; None for fewer than two.

    Cosines where an encoder knows the language, over all pairs of texts that it can read; else the share of character
    sequences in common, over all pairs or a seeded sample of them.
    """
    texts = [text for text in texts if can_read(similarity, text, language)]
    if isinstance(similarity, Encoder):
        n_pairs = math.comb(len(texts), 2)
        mean = mean_cosine(similarity.encode(texts)) if n_pairs else None
    else:
        pairs = sampled_pairs(len(texts), seed)
        n_pairs = len(pairs)
        mean = mean_jaccard(texts, pairs, language) if pairs else None
    return Diversity(
        table_name=table,
        language=language,
        statistic="mean_cosine" if isinstance(similarity, Encoder) else "mean_jaccard",
        value=mean,
        n=len(texts),
        n_of=n_pairs,
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
    """The mean over some pairs of rows of what two texts have in common, case, width and spaces aside."""
    rows = {row for pair in pairs for row in pair}
    sets = {row: sequences(fold(texts[row], joint=""), language) for row in rows}
    return math.fsum(in_common(sets[a], sets[b]) for a, b in pairs) / len(pairs)


def sampled_pairs(n: int, seed: int, most: int = MOST_PAIRS) -> list[tuple[int, int]]:
    """All pairs of `n` rows, or `most` different ones of them where there are more."""
    whole = math.comb(n, 2)
    numbers: Sequence[int] = range(whole)
    if whole > most:
        numbers = random.Random(seed_of(seed, "diversity.pairs", n)).sample(numbers, most)
    return [_pair(number) for number in numbers]


def _pair(number: int) -> tuple[int, int]:
    """The pairs counted through: (0, 1), (0, 2), (1, 2), (0, 3) …"""
    second = (1 + math.isqrt(1 + 8 * number)) // 2
    return number - math.comb(second, 2), second
