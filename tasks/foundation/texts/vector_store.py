"""Vectors by text hash in one SQLite file; several processes may use it at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tasks.foundation.errors import StoreError

ASKED_AT_ONCE = 4096
"""Keys of one query."""
PAGE_BYTES = 8192
"""Holds five vectors of 384; the usual 4096 holds two and wastes a quarter."""


class VectorStore:
    """Open until `close`; without a path it keeps nothing. StoreError from any call for a file that cannot be used."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        if path is not None:
            with self._explain_errors():
                self._connection = _open(path)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def read(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, np.ndarray]]:
        """Those of the keys that are there, with their vectors (float32, not to be written to)."""
        if self._connection is None:
            return
        for start in range(0, len(keys), ASKED_AT_ONCE):
            some = keys[start : start + ASKED_AT_ONCE]
            query = f"select key, vector from vectors where key in ({','.join('?' * len(some))})"
            with self._explain_errors():
                found = self._connection.execute(query, some).fetchall()
            for key, vector in found:
                yield key, np.frombuffer(vector, np.float32)

    def write(self, keys: Iterable[bytes], vectors: np.ndarray) -> None:
        """Adds vectors [n, d] under their keys; one that is there stays."""
        if self._connection is None:
            return
        rows = ((key, vector.tobytes()) for key, vector in zip(keys, vectors, strict=True))
        with self._explain_errors(), self._connection:
            self._connection.executemany("insert or ignore into vectors values (?, ?)", rows)

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """StoreError where the file cannot be used."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(
                f"the embeddings in {self._path} cannot be read or written: {error}. Nothing is lost but time: "
                "where the file is damaged, delete it, and the same command makes them again."
            ) from None


def _open(path: Path) -> sqlite3.Connection:
    """The file, made if need be; a damaged one is put aside, since everything in it can be made again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _connect(path)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        path.replace(path.with_suffix(".damaged"))
        return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=60, check_same_thread=False)
    try:
        connection.execute(f"pragma page_size={PAGE_BYTES}")
        connection.execute("pragma journal_mode=wal")
        connection.execute("pragma synchronous=normal")
        connection.execute("create table if not exists vectors (key blob primary key, vector blob)")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
