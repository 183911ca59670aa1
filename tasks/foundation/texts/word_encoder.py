"""An encoder without weights: vectors of word counts. It knows no word's meaning; what is measured by it proves the
pipeline and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tasks.foundation.texts.encoder import Encoder, LongTexts

WORDS = "words"
"""What `encoder.en` says for it."""


class WordEncoder(Encoder):
    """Texts that share most words are close; needs no weights."""

    fingerprint = WORDS
    dimensions = 384

    def __init__(self) -> None:
        super().__init__(WORDS)

    @property
    def weights_folder(self) -> Path:
        """Where it is made: there are no weights."""
        return Path(__file__).parent

    def with_long_texts(self, long_texts: LongTexts) -> Encoder:
        return self

    def encode_alone(self, text: str) -> np.ndarray:
        vector = np.zeros(self.dimensions)
        for word in text.lower().split():
            vector[int(hashlib.sha256(word.encode("utf-8", "surrogatepass")).hexdigest(), 16) % self.dimensions] += 1.0
        return vector / max(float(np.linalg.norm(vector)), 1e-9)

    def count_pieces(self, texts: Sequence[str]) -> list[int]:
        """Words of each text."""
        return [len(text.split()) for text in texts]

    def _encode_new(self, texts: Sequence[str]) -> Iterator[tuple[Sequence[int], np.ndarray]]:
        if texts:
            yield range(len(texts)), np.stack([self.encode_alone(text).astype(np.float32) for text in texts])
