"""Texts to word pieces, by the encoder's own tokenizer; torch is not needed for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import tokenizers

AT_ONCE = 1024
"""Texts given to the tokenizer at once: what it makes of them takes many times their memory."""


class Tokens:
    """The tokenizer of an encoder's folder."""

    def __init__(self, folder: Path) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        import tokenizers

        self._tokenizer: tokenizers.Tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._before, self._after = self._special()

    @property
    def special(self) -> int:
        """Pieces put around every text, [CLS] and [SEP] for example."""
        return len(self._before) + len(self._after)

    @property
    def padding(self) -> int:
        """The id of the piece that fills up; masked, so that any would do."""
        for name in ("[PAD]", "<pad>"):
            if (found := self._tokenizer.token_to_id(name)) is not None:
                return int(found)
        return 0

    def count(self, texts: Sequence[str]) -> list[int]:
        """Pieces of each text, untruncated, without special ones."""
        return [len(encoding) for encoding in self._encodings(texts)]

    def pieces(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The ids (int32) of each text, untruncated, without special ones."""
        return [np.array(encoding.ids, np.int32) for encoding in self._encodings(texts)]

    def framed(self, pieces: np.ndarray) -> np.ndarray:
        """The ids with the special ones around them, as the network reads them."""
        return np.concatenate([self._before, pieces, self._after])

    def _encodings(self, texts: Sequence[str]) -> Iterator[tokenizers.Encoding]:
        for start in range(0, len(texts), AT_ONCE):
            some = [readable(text) for text in texts[start : start + AT_ONCE]]
            yield from self._tokenizer.encode_batch_fast(some, add_special_tokens=False)

    def _special(self) -> tuple[np.ndarray, np.ndarray]:
        bare = self._tokenizer.encode("a", add_special_tokens=False).ids
        framed = self._tokenizer.encode("a", add_special_tokens=True).ids
        start = next((at for at in range(len(framed)) if framed[at : at + len(bare)] == bare), 0)
        return np.array(framed[:start], np.int32), np.array(framed[start + len(bare) :], np.int32)


def readable(text: str) -> str:
    """The text with U+FFFD for every lone surrogate, which no tokenizer takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
