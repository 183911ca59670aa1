"""The texts of calls, packed with what calls of a kind have in common; in the database of the reply cache.

Most of a request is what the last one of its kind said too: instructions, schema, the model and its parameters. The
first request of a kind is kept whole as the dictionary of all that follow (zstd, raw content), and a call's request
and reply are one frame after it. Dictionaries stay: rows of any age may need them, and there are as many as there are
prompts and models.
"""

from __future__ import annotations

import hashlib
import sqlite3
from functools import lru_cache

import zstandard

LEVEL = 3
"""Of zstd: higher ones take several times as long and save a twentieth."""
MOST_DICTIONARIES = 1024
"""Held in memory at once."""
_ID_DIGITS = 32

SCHEMA = """
create table if not exists dictionaries (
    id text primary key,
    kind text not null unique,
    content blob not null
) without rowid;
create table if not exists packed (
    id integer primary key,
    dictionary text not null,
    request_bytes integer not null,
    content blob not null
);
"""

_INSERT = "insert into packed (dictionary, request_bytes, content) values (?, ?, ?)"

Packed = tuple[str, int, bytes]
"""A row of `packed`: the id of its dictionary, the length of its request in bytes, and its frame."""


class PackingError(ValueError):
    """A packed text that cannot be read."""


class Packing:
    """Packs and unpacks over one connection; for one thread at a time. Nothing is remembered of a transaction that may
    still be rolled back: a dictionary's id is the hash of what it holds, and whether it is there is asked each time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._compressor = lru_cache(MOST_DICTIONARIES)(_make_compressor)
        self._decompressor = lru_cache(MOST_DICTIONARIES)(self._make_decompressor)

    def pack(self, stage: str, request: str, reply: str) -> int:
        """Puts the texts into `packed`, within the connection's transaction; returns the row's id.

        Raises UnicodeEncodeError (a ValueError) for texts that are no Unicode.
        """
        plain, answer = request.encode(), reply.encode()
        dictionary, content = self._dictionary(kind_of(stage, request), plain)
        frame = self._compressor(content).compress(plain + answer)
        added = self.connection.execute(_INSERT, (dictionary, len(plain), frame))
        assert added.lastrowid is not None
        return added.lastrowid

    def unpack(self, packed: Packed) -> tuple[str, str]:
        """Request and reply. PackingError for what cannot be read."""
        dictionary, request_bytes, content = packed
        try:
            plain = self._decompressor(dictionary).decompress(content)
            return plain[:request_bytes].decode(), plain[request_bytes:].decode()
        except (zstandard.ZstdError, UnicodeDecodeError) as error:
            raise PackingError(f"a packed reply is malformed: {error}") from None

    def _dictionary(self, kind: str, request: bytes) -> tuple[str, bytes]:
        """Id and content of the dictionary of a kind, which is this request where there is none yet."""
        found = self.connection.execute("select id, content from dictionaries where kind = ?", (kind,)).fetchone()
        if found is not None:
            return str(found[0]), bytes(found[1])
        made = hashlib.sha256(kind.encode() + request).hexdigest()[:_ID_DIGITS]
        self.connection.execute("insert into dictionaries (id, kind, content) values (?, ?, ?)", (made, kind, request))
        return made, request

    def _make_decompressor(self, dictionary: str) -> zstandard.ZstdDecompressor:
        found = self.connection.execute("select content from dictionaries where id = ?", (dictionary,)).fetchone()
        if found is None:
            raise PackingError(f"a packed reply is malformed: its dictionary {dictionary} is not there")
        return zstandard.ZstdDecompressor(dict_data=_as_dictionary(found[0]))


def kind_of(stage: str, request: str) -> str:
    """What requests have in common that differ in their messages only: a hash of the stage and of what the canonical
    JSON of a call says after its messages."""
    _, told, rest = request.rpartition(',"to":')
    return hashlib.sha256(f"{stage} {rest if told else ''}".encode()).hexdigest()[:_ID_DIGITS]


def _make_compressor(dictionary: bytes) -> zstandard.ZstdCompressor:
    return zstandard.ZstdCompressor(level=LEVEL, dict_data=_as_dictionary(dictionary), write_checksum=True)


def _as_dictionary(content: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
