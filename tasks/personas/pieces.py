"""How many word pieces texts have, counted word by word.

The tokenizer of the encoder splits a text at its spaces before anything else, so a text has as many pieces as
its words together; and words recur. Each is given to the tokenizer once, which makes the count of a million
personas a matter of seconds instead of many minutes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.foundation.encoder import Encoder

MOST_WORDS = 1_000_000
"""Words remembered; beyond that all are forgotten, and counted again as they come."""


class PieceCounter:
    """Counts of `Encoder.count_pieces` for texts on one line with single spaces."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._pieces: dict[str, int] = {}

    def count(self, texts: Sequence[str]) -> list[int]:
        """Word pieces of each text, untruncated."""
        if not texts:
            return []
        words_of_texts = pc.split_pattern(pa.array(texts, pa.large_utf8()), " ")
        words = words_of_texts.flatten().dictionary_encode()
        pieces = self._of_words(words.dictionary.to_pylist())[words.indices.to_numpy()]
        counts: list[int] = np.add.reduceat(pieces, words_of_texts.offsets.to_numpy()[:-1]).tolist()
        return counts

    def _of_words(self, words: Sequence[str]) -> np.ndarray:
        if len(self._pieces) > MOST_WORDS:
            self._pieces.clear()
        new = [word for word in words if word not in self._pieces]
        self._pieces.update(zip(new, self._encoder.count_pieces(new), strict=True))
        return np.array([self._pieces[word] for word in words], np.int64)
