"""A sentence encoder: texts to unit vectors, and how many word pieces a text has.

Weights are read from a folder and never from the network. Vectors are kept by text hash, so a text is encoded
once however often the pipeline is run. A text's vector can differ in its last digits with the batch it was encoded
in (up to about 1e-6), and under `bfloat16` by more; `encode_alone` gives the one that depends on the text only, in
float32 always.

torch and sentence-transformers take seconds to import and are imported only when a text must be encoded.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from tasks.foundation.ids import digest
from tasks.foundation.texts.encoding import files
from tasks.foundation.texts.encoding.network import PIECES_AT_ONCE, Network, Precision
from tasks.foundation.texts.encoding.tokens import Tokens
from tasks.foundation.texts.encoding.vector_store import VectorStore
from tasks.foundation.texts.encoding.windows import LongTexts, joined, parts_read
from tasks.foundation.weights import path_of

SORTED_AT_ONCE, CHARACTERS_AT_ONCE = 16_384, 64 * 2**20
"""Texts that are read into word pieces and sorted together: so many, or fewer where they are very long."""
KEPT_AT_ONCE = 512
"""Texts encoded between two commits of the cache."""
ONE_ROW = 1
"""A budget of word pieces that puts every row into a batch of its own."""
SLACK: dict[Precision, float] = {"float32": 1e-4, "bfloat16": 0.02}
"""How far the cosine of two stored vectors may be from that of the texts encoded alone: much more than was ever seen
(docs/benchmarks.md)."""

Progress = Callable[[int, int], None]
"""Called with texts done and texts in all."""


@dataclass
class _Loaded:
    """What encoders over the same weights share."""

    folder: Path
    threads: int

    @cached_property
    def identity(self) -> str:
        return files.identity(self.folder)

    @cached_property
    def pieces_read(self) -> int:
        return files.pieces_read(self.folder)

    @cached_property
    def tokens(self) -> Tokens:
        return Tokens(self.folder)

    @cached_property
    def network(self) -> Network:
        return Network(self.folder, self.pieces_read, self.threads, self.tokens.padding)


MOST_ALONE = 16_384
"""Exact vectors held (50 MB); older ones are read again from the file."""


@dataclass(eq=False)
class Encoder:
    """Texts → unit vectors, on CPU.

    `cache` is a folder that holds one SQLite file for each set of weights and way of encoding; None keeps nothing.
    `folder` holds the weights, unless they are those of the catalogue under `name`. Of a long text the beginning is
    read, or windows (`long_texts`). Raises ModelUnavailable on first use when the weights are not there.
    """

    name: str
    cache: Path | None = None
    precision: Precision = "float32"
    long_texts: LongTexts = "truncate"
    threads: int = 1
    folder: Path | None = None
    _shared: dict[str, _Loaded] = field(default_factory=dict, repr=False)
    _alone: dict[bytes, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def reading(self, long_texts: LongTexts) -> Encoder:
        """The encoder over the same weights, loaded once, that reads long texts in this way."""
        if long_texts == self.long_texts:
            return self
        return type(self)(self.name, self.cache, self.precision, long_texts, self.threads, self.folder, self._shared)

    @property
    def place(self) -> Path:
        """Where the weights lie; ModelUnavailable, saying how to get them, when they are not there."""
        return self.folder or path_of(self.name)

    @cached_property
    def dimensions(self) -> int:
        """The length of a vector."""
        return files.dimensions(self.place)

    @cached_property
    def fingerprint(self) -> str:
        """Hash over what decides a vector: weights, tokenizer, pieces read, precision, what is read of a long text."""
        return digest(self._loaded.identity, self.precision, self.long_texts)

    @property
    def slack(self) -> float:
        """How far the cosine of two vectors of `encode` may be from that of `encode_alone`."""
        return SLACK[self.precision]

    def encode(
        self, texts: Sequence[str], progress: Progress | None = None, out: np.ndarray | None = None
    ) -> np.ndarray:
        """L2-normalised float32 [n, d], row i for texts[i]; only texts not seen before are encoded.

        They are written to `out` (float32 [n, d], may be memory-mapped) where it is given: of a million texts,
        nothing else is then held but their hashes.
        """
        found = np.empty((len(texts), self.dimensions), np.float32) if out is None else out
        if found.shape != (len(texts), self.dimensions) or found.dtype != np.float32:
            expected = f"float32 {(len(texts), self.dimensions)}"
            raise ValueError(f"expected an array {expected} to encode into, found {found.dtype} {found.shape}")
        first: dict[bytes, int] = {}
        done = 0
        with self._vectors() as store:
            for some in _spans(texts):
                keys = [_text_key(texts[row]) for row in some]
                new = {key: row for key, row in zip(keys, some, strict=True) if first.setdefault(key, row) == row}
                for key, vector in store.read(list(new)):
                    found[new.pop(key)] = vector
                done = some.stop - len(new)
                _report(progress, done, len(texts))
                for rows in self._encode_rows(list(new.items()), texts, found, store):
                    done += rows
                    _report(progress, done, len(texts))
                for row, key in zip(some, keys, strict=True):
                    if first[key] != row:
                        found[row] = found[first[key]]
        return found

    def encode_alone(self, text: str) -> np.ndarray:
        """Unit vector float64 [d] of a text encoded in a batch of its own (of a long one, each window in its own)."""
        key = _text_key(text, alone=True)
        if key not in self._alone:
            with self._vectors() as store:
                vector = next((vector for _, vector in store.read([key])), None)
                if vector is None:
                    made = self._alone_vector(text)
                    store.write([key], made[None])
                    vector = made
            if len(self._alone) >= MOST_ALONE:
                del self._alone[next(iter(self._alone))]
            exact = vector.astype(np.float64)
            self._alone[key] = exact / np.linalg.norm(exact)
        return self._alone[key]

    def stored(self, texts: Sequence[str], *, alone: bool = False) -> dict[int, np.ndarray]:
        """The vectors of those texts that have one already (float32, by position); nothing is encoded.

        `alone` asks for those that were made in a batch of their own.
        """
        positions: dict[bytes, list[int]] = {}
        for position, text in enumerate(texts):
            positions.setdefault(_text_key(text, alone=alone), []).append(position)
        with self._vectors() as store:
            return {position: vector for key, vector in store.read(list(positions)) for position in positions[key]}

    def count_pieces(self, texts: Sequence[str]) -> list[int]:
        """Word pieces of each text, untruncated, without [CLS] and [SEP]."""
        return self._loaded.tokens.count(texts)

    def _encode_rows(
        self, new: list[tuple[bytes, int]], texts: Sequence[str], found: np.ndarray, store: VectorStore
    ) -> Iterator[int]:
        """Encodes and keeps the texts of some rows; after each commit, how many it were."""
        for positions, vectors in self._fresh([texts[row] for _, row in new]):
            found[[new[position][1] for position in positions]] = vectors
            store.write([new[position][0] for position in positions], vectors)
            yield len(positions)

    def _fresh(self, texts: Sequence[str]) -> Iterator[tuple[Sequence[int], np.ndarray]]:
        """Vectors of all texts, some hundred at once, with the positions of these; long texts come first."""
        pieces = self._loaded.tokens.pieces(texts)
        order = sorted(range(len(texts)), key=lambda position: -len(pieces[position]))
        for start in range(0, len(order), KEPT_AT_ONCE):
            positions = order[start : start + KEPT_AT_ONCE]
            yield positions, self._run([pieces[position] for position in positions], self.precision, PIECES_AT_ONCE)

    def _alone_vector(self, text: str) -> np.ndarray:
        """float32 [d]."""
        found: np.ndarray = self._run(self._loaded.tokens.pieces([text]), "float32", ONE_ROW)[0]
        return found

    def _run(self, texts: Sequence[np.ndarray], precision: Precision, budget: int) -> np.ndarray:
        """Unit vectors of texts that are given as word pieces."""
        loaded = self._loaded
        room = loaded.pieces_read - loaded.tokens.special
        parts = [
            (owner, pieces[part.start : part.stop])
            for owner, pieces in enumerate(texts)
            for part in parts_read(len(pieces), room, self.long_texts)
        ]
        vectors = loaded.network.vectors([loaded.tokens.framed(part) for _, part in parts], precision, budget)
        return joined(vectors, [len(part) for _, part in parts], [owner for owner, _ in parts], len(texts))

    @property
    def _loaded(self) -> _Loaded:
        if "loaded" not in self._shared:
            self._shared["loaded"] = _Loaded(self.place, self.threads)
        return self._shared["loaded"]

    @contextlib.contextmanager
    def _vectors(self) -> Iterator[VectorStore]:
        path = None if self.cache is None else self.cache / f"vectors-{self.fingerprint[:16]}.sqlite"
        with contextlib.closing(VectorStore(path)) as store:
            yield store


def _spans(texts: Sequence[str]) -> Iterator[range]:
    """All rows in ranges of so many texts and characters as are worked on together."""
    start = characters = 0
    for row, text in enumerate(texts):
        characters += len(text)
        if row + 1 - start == SORTED_AT_ONCE or characters >= CHARACTERS_AT_ONCE:
            yield range(start, row + 1)
            start, characters = row + 1, 0
    if start < len(texts):
        yield range(start, len(texts))


def _text_key(text: str, *, alone: bool = False) -> bytes:
    """16 bytes that stand for a text; others for its vector alone."""
    return hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=16, person=b"alone" if alone else b""
    ).digest()


def _report(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)
