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

from tasks.foundation.texts.encoder import Encoder

MOST_CHARACTERS = 16_000_000
"""Of the words remembered; beyond that all are forgotten, and counted again as they come."""
LONGEST_WORD = 40
"""Characters of a word that may recur; a Chinese text, which has no spaces, is one word and does not."""


class PieceCounter:
    """Counts of `Encoder.count_pieces` for texts on one line with single spaces."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._pieces: dict[str, int] = {}
        self._characters = 0

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
        if self._characters > MOST_CHARACTERS:
            self._pieces.clear()
            self._characters = 0
        new = [word for word in words if word not in self._pieces]
        counts = dict(zip(new, self._encoder.count_pieces(new), strict=True))
        known = self._pieces
        found = np.array([counts[word] if word in counts else known[word] for word in words], np.int64)
        lasting = {word: count for word, count in counts.items() if len(word) <= LONGEST_WORD}
        known.update(lasting)
        self._characters += sum(map(len, lasting))
        return found
