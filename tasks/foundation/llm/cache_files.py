"""Replies in a Parquet file, so that a build can be replayed where no provider is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.foundation.errors import SourceError
from tasks.foundation.llm.cache import COLUMNS, ReplyCache
from tasks.foundation.llm.request import KEY_VERSION

BATCH_ROWS = 2000
_FORMAT = "colloquy_reply_key_version"
"""Metadata of a file: the version of the key that its rows are found under."""
_NUMBERS = {"seed_sent": pa.int64(), "latency_seconds": pa.float64(), "batched": pa.int64()}
_SCHEMA = pa.schema([(name, _NUMBERS.get(name, pa.string())) for name in COLUMNS], {_FORMAT: str(KEY_VERSION)})
_LATER = {"batched": 0}
"""What files of an earlier version lack, and what they meant."""


def export_replies(cache: ReplyCache, path: Path | str, *, runs: str = "", batch: int = BATCH_ROWS) -> int:
    """Writes replies to one Parquet file, ordered by key; returns the number of rows.

    `runs`: only those paid for by runs whose id begins so (`"first/"`: by build `first`); empty: all. The file
    appears whole or not at all.
    """
    unfinished = Path(f"{path}.unfinished")
    written = 0
    try:
        with pq.ParquetWriter(unfinished, _SCHEMA, compression="zstd") as writer:
            for rows in cache.rows(runs, batch):
                columns = [list(column) for column in zip(*rows, strict=True)]
                writer.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True)), schema=_SCHEMA))
                written += len(rows)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return written


def import_replies(cache: ReplyCache, path: Path | str, *, batch: int = BATCH_ROWS) -> tuple[int, int]:
    """Takes in the replies of an exported file; returns how many were new and how many were known already.

    All of them or, when something is wrong with the file, none. Raises SourceError for a file that is no
    export of this version.
    """
    try:
        file = pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise SourceError(f"{path} cannot be read as a Parquet file of replies: {error}") from None
    _check(path, file.schema_arrow)
    try:
        new = cache.take_in(_rows(file, batch))
    except (OSError, pa.ArrowInvalid) as error:
        raise SourceError(f"{path} cannot be read to its end, so nothing of it was taken in: {error}") from None
    return new, file.metadata.num_rows - new


def _rows(file: pq.ParquetFile, batch: int) -> Iterator[Iterable[tuple[Any, ...]]]:
    for part in file.iter_batches(batch_size=batch):
        names = part.schema.names
        columns = (
            part.column(name).to_pylist() if name in names else [_LATER[name]] * part.num_rows for name in COLUMNS
        )
        yield zip(*columns, strict=True)


def _check(path: Path | str, schema: pa.Schema) -> None:
    """SourceError unless the file was written by `export_replies` under the same version of the key."""
    version = (schema.metadata or {}).get(_FORMAT.encode())
    missing = [name for name in COLUMNS if name not in (*schema.names, *_LATER)]
    if version is None or missing:
        lacks = f" (it lacks {', '.join(missing)})" if missing else ""
        raise SourceError(f"expected {path} to be a file of `colloquy cache export`, and it is none{lacks}")
    if version.decode() != str(KEY_VERSION):
        raise SourceError(
            f"{path} holds replies under key version {version.decode()}, where {KEY_VERSION} was expected: export them "
            "again with the version of Colloquy that runs here"
        )
