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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from tasks.foundation.ids import digest
from tasks.foundation.texts.encoder_folder import (
    PIECES_AT_ONCE,
    Network,
    Precision,
    Tokenizer,
    hash_files,
    read_dimensions,
    read_piece_limit,
)
from tasks.foundation.texts.vector_store import VectorStore
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

LongTexts = Literal["truncate", "windows"]
OVERLAP = 0.25
"""The share of a window that the next one reads again: of 254 pieces 64, a stride of 190."""
MOST_ALONE = 16_384
"""Exact vectors held (50 MB); older ones are read again from the file."""


@dataclass
class _Loaded:
    """What encoders over the same weights share."""

    folder: Path
    threads: int

    @cached_property
    def identity(self) -> str:
        return hash_files(self.folder)

    @cached_property
    def pieces_read(self) -> int:
        return read_piece_limit(self.folder)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer(self.folder)

    @cached_property
    def network(self) -> Network:
        return Network(self.folder, self.pieces_read, self.threads, self.tokenizer.padding)


@dataclass(eq=False)
class Encoder:
    """Texts → unit vectors, on CPU.

    Raises ModelUnavailable on first use when the weights are not there.
    """

    name: str
    """In the catalogue, unless there is a `folder`."""
    cache: Path | None = None
    """A folder that holds one SQLite file for each set of weights and way of encoding; None keeps nothing."""
    precision: Precision = "float32"
    long_texts: LongTexts = "truncate"
    """Whether the beginning of a long text is read, or all of it in windows."""
    threads: int = 1
    folder: Path | None = None
    """The user's own weights."""
    _shared: dict[str, _Loaded] = field(default_factory=dict, repr=False)
    _alone: dict[bytes, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def with_long_texts(self, long_texts: LongTexts) -> Encoder:
        """The encoder over the same weights, loaded once, that reads long texts in this way."""
        if long_texts == self.long_texts:
            return self
        return type(self)(self.name, self.cache, self.precision, long_texts, self.threads, self.folder, self._shared)

    @property
    def weights_folder(self) -> Path:
        """Where the weights lie; ModelUnavailable, saying how to get them, when they are not there."""
        return self.folder or path_of(self.name)

    @cached_property
    def dimensions(self) -> int:
        """The length of a vector."""
        return read_dimensions(self.weights_folder)

    @cached_property
    def fingerprint(self) -> str:
        """Hash over what decides a vector: weights, tokenizer, pieces read, precision, what is read of a long text."""
        return digest(self._loaded.identity, self.precision, self.long_texts)

    @property
    def slack(self) -> float:
        """How far the cosine of two vectors of `encode` may be from that of `encode_alone`."""
        return SLACK[self.precision]

    def encode(self, texts: Sequence[str], out: np.ndarray | None = None) -> np.ndarray:
        """L2-normalised float32 [n, d], row i for texts[i]; only texts not seen before are encoded.

        They are written to `out` (float32 [n, d], may be memory-mapped) where it is given: of a million texts,
        nothing else is then held but their hashes.
        """
        found = np.empty((len(texts), self.dimensions), np.float32) if out is None else out
        if found.shape != (len(texts), self.dimensions) or found.dtype != np.float32:
            expected = f"float32 {(len(texts), self.dimensions)}"
            raise ValueError(f"expected an array {expected} to encode into, found {found.dtype} {found.shape}")
        first: dict[bytes, int] = {}
        with self._open_store() as store:
            for some in _spans(texts):
                keys = [_text_key(texts[row]) for row in some]
                new = {key: row for key, row in zip(keys, some, strict=True) if first.setdefault(key, row) == row}
                for key, vector in store.read(list(new)):
                    found[new.pop(key)] = vector
                self._encode_rows(list(new.items()), texts, found, store)
                for row, key in zip(some, keys, strict=True):
                    if first[key] != row:
                        found[row] = found[first[key]]
        return found

    def encode_alone(self, text: str) -> np.ndarray:
        """Unit vector float64 [d] of a text encoded in a batch of its own (of a long one, each window in its own)."""
        key = _text_key(text, alone=True)
        if key not in self._alone:
            with self._open_store() as store:
                vector = next((vector for _, vector in store.read([key])), None)
                if vector is None:
                    made = self._make_alone(text)
                    store.write([key], made[None])
                    vector = made
            if len(self._alone) >= MOST_ALONE:
                del self._alone[next(iter(self._alone))]
            exact = vector.astype(np.float64)
            self._alone[key] = exact / np.linalg.norm(exact)
        return self._alone[key]

    def read_stored(self, texts: Sequence[str], *, alone: bool = False) -> dict[int, np.ndarray]:
        """The vectors of those texts that have one already (float32, by row); nothing is encoded.

        `alone` asks for those that were made in a batch of their own.
        """
        rows: dict[bytes, list[int]] = {}
        for row, text in enumerate(texts):
            rows.setdefault(_text_key(text, alone=alone), []).append(row)
        with self._open_store() as store:
            return {row: vector for key, vector in store.read(list(rows)) for row in rows[key]}

    def count_pieces(self, texts: Sequence[str]) -> list[int]:
        """Word pieces of each text, untruncated, without [CLS] and [SEP]."""
        return self._loaded.tokenizer.count(texts)

    def _encode_rows(
        self, new: list[tuple[bytes, int]], texts: Sequence[str], found: np.ndarray, store: VectorStore
    ) -> None:
        """Encodes and keeps the texts of some rows, given with their keys."""
        for some, vectors in self._encode_new([texts[row] for _, row in new]):
            found[[new[each][1] for each in some]] = vectors
            store.write([new[each][0] for each in some], vectors)

    def _encode_new(self, texts: Sequence[str]) -> Iterator[tuple[Sequence[int], np.ndarray]]:
        """Vectors of all texts, some hundred at once, with the rows of these; long texts come first."""
        pieces = self._loaded.tokenizer.split(texts)
        by_length = sorted(range(len(texts)), key=lambda row: -len(pieces[row]))
        for start in range(0, len(by_length), KEPT_AT_ONCE):
            rows = by_length[start : start + KEPT_AT_ONCE]
            yield rows, self._run([pieces[row] for row in rows], self.precision, PIECES_AT_ONCE)

    def _make_alone(self, text: str) -> np.ndarray:
        """float32 [d]."""
        found: np.ndarray = self._run(self._loaded.tokenizer.split([text]), "float32", ONE_ROW)[0]
        return found

    def _run(self, texts: Sequence[np.ndarray], precision: Precision, budget: int) -> np.ndarray:
        """Unit vectors of texts that are given as word pieces."""
        loaded = self._loaded
        room = loaded.pieces_read - loaded.tokenizer.n_special
        read = [
            (owner, pieces[span.start : span.stop])
            for owner, pieces in enumerate(texts)
            for span in spans_read(len(pieces), room, self.long_texts)
        ]
        vectors = loaded.network.vectors([loaded.tokenizer.frame(window) for _, window in read], precision, budget)
        return join_windows(vectors, [len(window) for _, window in read], [owner for owner, _ in read], len(texts))

    @property
    def _loaded(self) -> _Loaded:
        if "loaded" not in self._shared:
            self._shared["loaded"] = _Loaded(self.weights_folder, self.threads)
        return self._shared["loaded"]

    @contextlib.contextmanager
    def _open_store(self) -> Iterator[VectorStore]:
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


def windows(pieces: int, room: int) -> list[range]:
    """The windows of a text of so many pieces, `room` pieces each but for the last; one for a text that fits.

    >>> [(window.start, window.stop) for window in windows(500, room=254)]
    [(0, 254), (190, 444), (380, 500)]
    """
    stride = room - round(room * OVERLAP)
    starts = range(0, max(pieces - room, 0) + stride, stride) if pieces > room else range(1)
    return [range(start, min(start + room, pieces)) for start in starts]


def spans_read(pieces: int, room: int, long_texts: LongTexts) -> list[range]:
    """Which pieces of a text are read together; nothing but the first `room` under `truncate`."""
    return windows(pieces, room) if long_texts == "windows" else [range(min(pieces, room))]


def join_windows(vectors: np.ndarray, weights: Sequence[int], owners: Sequence[int], texts: int) -> np.ndarray:
    """Unit float32 [texts, d]: of each text the mean of its windows' unit vectors, weighted by their pieces.

    `owners` says whose each window is, in ascending order. The vector of a text with one window is that window's.
    """
    owner = np.asarray(owners)
    first = np.searchsorted(owner, np.arange(texts))
    found = vectors[first]
    for text in np.flatnonzero(np.bincount(owner, minlength=texts) > 1).tolist():
        own = slice(first[text], int(np.searchsorted(owner, text + 1)))
        total = np.asarray(weights[own], np.float64) @ vectors[own].astype(np.float64)
        found[text] = total / np.linalg.norm(total)
    return found
