"""The sentence encoder (all-MiniLM-L6-v2): texts to unit vectors, and how many word pieces a text has.

Weights are read from the models folder and never from the network. Vectors are kept by text hash, so a
text is encoded once however often the pipeline is run. A text's vector can differ in its last digits with
the batch it was encoded in (up to about 1e-6); `encode_alone` gives the one that depends on the text only.

torch and sentence-transformers take seconds to import and are imported only when a text must be encoded.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.foundation.ids import digest
from tasks.foundation.weights import path_of

if TYPE_CHECKING:
    import tokenizers
    from sentence_transformers import SentenceTransformer

DIMENSIONS = 384
MAX_PIECES = 256
"""Word pieces the encoder reads, [CLS] and [SEP] among them; what comes after is not seen."""
SPECIAL_PIECES = 2
CHUNK = 512
"""Texts encoded between two commits of the cache."""
WEIGHT_FILES = ("model.safetensors", "tokenizer.json", "config.json")

Progress = Callable[[int, int], None]
"""Called with texts done and texts in all."""


class Encoder:
    """Texts → unit vectors, on CPU, with a fixed batch size.

    `cache` is a folder that holds one SQLite file for each set of weights; None keeps nothing.
    Raises ModelUnavailable on first use when the weights are not there.
    """

    def __init__(
        self,
        name: str,
        cache: Path | None = None,
        *,
        batch_size: int = 32,
        threads: int = 1,
        folder: Path | None = None,
    ) -> None:
        self.name = name
        self.batch_size = batch_size
        self.threads = threads
        self._cache = cache
        self._folder = folder
        self._alone: dict[str, np.ndarray] = {}

    @property
    def folder(self) -> Path:
        """Where the weights lie; ModelUnavailable, saying how to get them, when they are not there."""
        return self._folder or path_of(self.name)

    @cached_property
    def fingerprint(self) -> str:
        """Hash over weights, tokenizer and how many word pieces are read: what decides a vector."""
        return digest(MAX_PIECES, *(_file_digest(self.folder / file) for file in WEIGHT_FILES))

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """L2-normalised float32 [n, 384], row i for texts[i]; only texts not seen before are encoded."""
        keys = [_text_key(text) for text in texts]
        by_key = dict(zip(keys, texts, strict=True))
        with self._vectors() as store:
            vectors = store.read(list(by_key))
            todo = [key for key in by_key if key not in vectors]
            _report(progress, len(by_key) - len(todo), len(by_key))
            for start in range(0, len(todo), CHUNK):
                chunk = todo[start : start + CHUNK]
                fresh = dict(zip(chunk, self._run([by_key[key] for key in chunk]), strict=True))
                store.write(fresh)
                vectors.update(fresh)
                _report(progress, len(by_key) - len(todo) + start + len(chunk), len(by_key))
        if not keys:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        return np.stack([vectors[key] for key in keys])

    def encode_alone(self, text: str) -> np.ndarray:
        """Unit vector float64 [384] of a text encoded in a batch of its own."""
        key = f"alone {_text_key(text)}"
        if key not in self._alone:
            with self._vectors() as store:
                found = store.read([key])
                if not found:
                    found = {key: self._run([text])[0]}
                    store.write(found)
            vector = found[key].astype(np.float64)
            self._alone[key] = vector / np.linalg.norm(vector)
        return self._alone[key]

    def stored(self, texts: Sequence[str], *, alone: bool = False) -> dict[int, np.ndarray]:
        """The vectors of those texts that have one already (float32, by position); nothing is encoded.

        `alone` asks for those that were made in a batch of their own.
        """
        keys = [f"alone {_text_key(text)}" if alone else _text_key(text) for text in texts]
        with self._vectors() as store:
            vectors = store.read(keys)
        return {position: vectors[key] for position, key in enumerate(keys) if key in vectors}

    def count_pieces(self, texts: Sequence[str]) -> list[int]:
        """Word pieces of each text, untruncated, without [CLS] and [SEP]."""
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(encoding) for encoding in encodings]

    def _run(self, texts: Sequence[str]) -> np.ndarray:
        vectors: np.ndarray = self._model.encode(
            list(texts),
            batch_size=self.batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
            normalize_embeddings=True,
        )
        return vectors.astype(np.float32)

    @cached_property
    def _model(self) -> SentenceTransformer:
        folder = self.folder
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()
        torch.set_num_threads(self.threads)
        # local_files_only and not HF_HUB_OFFLINE: the hub library reads that variable once for the whole process,
        # which would shut the readers of hub datasets out as well.
        model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        model.max_seq_length = MAX_PIECES
        return model

    @cached_property
    def _tokenizer(self) -> tokenizers.Tokenizer:
        import tokenizers

        tokenizer = tokenizers.Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @contextlib.contextmanager
    def _vectors(self) -> Iterator[_Vectors]:
        if self._cache is None:
            yield _Vectors(sqlite3.connect(":memory:"))
            return
        self._cache.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(_open(self._cache / f"vectors-{self.fingerprint[:16]}.sqlite")) as connection:
            yield _Vectors(connection)


class _Vectors:
    """Vectors by text hash in one SQLite file; several processes may use it at once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.execute("create table if not exists vectors (key text primary key, vector blob) without rowid")

    def read(self, keys: Sequence[str]) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = {}
        for start in range(0, len(keys), CHUNK):
            chunk = keys[start : start + CHUNK]
            marks = ",".join("?" * len(chunk))
            query = f"select key, vector from vectors where key in ({marks})"
            found.update((key, np.frombuffer(blob, np.float32)) for key, blob in self._connection.execute(query, chunk))
        return found

    def write(self, vectors: dict[str, np.ndarray]) -> None:
        rows = [(key, vector.tobytes()) for key, vector in vectors.items()]
        with self._connection:
            self._connection.executemany("insert or ignore into vectors values (?, ?)", rows)


def _open(path: Path) -> sqlite3.Connection:
    """The vector cache; a damaged file is put aside, since everything in it can be made again."""
    try:
        return _connect(path)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        path.replace(path.with_suffix(".damaged"))
        return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=60)
    try:
        connection.execute("pragma journal_mode=wal")
        connection.execute("pragma synchronous=normal")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _text_key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _report(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)
