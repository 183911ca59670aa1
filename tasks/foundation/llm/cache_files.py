"""Replies in a Parquet file, so that a build can be replayed where no provider is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.foundation.errors import SourceError
from tasks.foundation.llm.cache import COLUMNS, ReplyCache, format_time, parse_usage
from tasks.foundation.llm.request import KEY_VERSION, MOST_TOKENS, key_of
from tasks.foundation.store.files import private_file

BATCH_ROWS = 2000
_FORMAT = "colloquy_reply_key_version"
"""Metadata of a file: the version of the key that its rows are found under."""
_NUMBERS = {"seed_sent": pa.int64(), "latency_seconds": pa.float64(), "batched": pa.int64()}
_SCHEMA = pa.schema([(name, _NUMBERS.get(name, pa.string())) for name in COLUMNS], {_FORMAT: str(KEY_VERSION)})
_FINISHES = ("stop", "length", "content_filter", "refusal")
_RUN = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}/[\w.@%~+-]{1,200}(?:/[\w.@%~+-]{1,200}){0,3}")
"""Build, stage and whatever tells its runs apart."""


def export_replies(cache: ReplyCache, path: Path | str, *, runs: str = "", batch: int = BATCH_ROWS) -> int:
    """Writes replies to one Parquet file, ordered by key; returns the number of rows.

    `runs`: only those paid for by runs whose id begins so (`"first/"`: by build `first`); empty: all. The file
    appears whole or not at all.
    """
    unfinished = Path(f"{path}.unfinished")
    written = 0
    try:
        private_file(unfinished)
        with pq.ParquetWriter(unfinished, _SCHEMA, compression="zstd") as writer:
            for rows in cache.read_rows(runs, batch):
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
    export of this version, and for a row that the cache could not have written.
    """
    try:
        file = pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise SourceError(f"{path} cannot be read as a Parquet file of replies: {error}") from None
    _check(path, file.schema_arrow)
    try:
        new = cache.add_rows(_rows(path, file, batch))
    except (OSError, pa.ArrowInvalid) as error:
        raise SourceError(f"{path} cannot be read to its end, so nothing of it was taken in: {error}") from None
    return new, file.metadata.num_rows - new


def _rows(path: Path | str, file: pq.ParquetFile, batch: int) -> Iterator[list[tuple[Any, ...]]]:
    number = 0
    for part in file.iter_batches(batch_size=batch, columns=list(COLUMNS)):
        rows = [tuple(row[name] for name in COLUMNS) for row in part.to_pylist()]
        for row in rows:
            number += 1
            if trouble := _trouble_in(dict(zip(COLUMNS, row, strict=True))):
                raise SourceError(f"{path}, row {number}: {trouble}; nothing of the file was taken in")
        yield rows


def _trouble_in(row: dict[str, Any]) -> str | None:
    """What of a row cannot be as the cache would have written it: expected and found; None: nothing."""
    expected = {
        "request": (isinstance(row["request"], str), "the request as JSON"),
        "key": (row["key"] == key_of(str(row["request"])), "the key of the row's request"),
        "reply": (isinstance(row["reply"], str), "a text"),
        "finish_reason": (row["finish_reason"] in _FINISHES, f"one of {', '.join(_FINISHES)}"),
        "usage": (_is_usage(row["usage"]), f"a list of the call's tokens, each null or from 0 to {MOST_TOKENS}"),
        "seed_sent": (row["seed_sent"] is None or row["seed_sent"] >= 0, "null or a seed from 0 on"),
        "latency_seconds": (_is_seconds(row["latency_seconds"]), "seconds from 0 on"),
        "run_id": (_RUN.fullmatch(str(row["run_id"])) is not None, "build/stage/run"),
        "request_id": (_is_word(row["request_id"]), "an id"),
        "stage": (_is_word(row["stage"]), "the name of a stage"),
        "alias": (_is_word(row["alias"]), "a model's alias"),
        "created_at": (_is_moment(row["created_at"]), "a UTC time like 2026-11-30T12:00:00.000000+00:00"),
        "batched": (row["batched"] in (0, 1), "0 or 1"),
    }
    wrong = next((name for name, (holds, _) in expected.items() if not holds), None)
    return None if wrong is None else f"{wrong}: expected {expected[wrong][1]}, found {str(row[wrong])[:80]!r}"


def _is_usage(text: Any) -> bool:
    try:
        parse_usage(text)
    except (ValueError, TypeError):
        return False
    return True


def _is_seconds(value: Any) -> bool:
    return isinstance(value, float) and 0 <= value < math.inf


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable()


def _is_moment(text: Any) -> bool:
    try:
        return format_time(datetime.fromisoformat(text)) == text
    except (ValueError, TypeError, OverflowError):
        return False


def _check(path: Path | str, schema: pa.Schema) -> None:
    """SourceError unless the file was written by `export_replies` under the same version of the key."""
    version = (schema.metadata or {}).get(_FORMAT.encode())
    missing = [name for name in COLUMNS if name not in schema.names]
    if version is None or missing:
        lacks = f" (it lacks {', '.join(missing)})" if missing else ""
        raise SourceError(f"expected {path} to be a file of `colloquy cache export`, and it is none{lacks}")
    if version.decode() != str(KEY_VERSION):
        raise SourceError(
            f"{path} holds replies under key version {version.decode()}, where {KEY_VERSION} was expected: export them "
            "again with the version of Colloquy that runs here"
        )
