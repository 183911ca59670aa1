"""Rows of local files. Lines are decoded one by one, so that a fault is told with its line or byte."""

from __future__ import annotations

import csv
import difflib
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.foundation.errors import SourceError
from tasks.foundation.sources.rows import Problem, SourceRow, plain

PARQUET_BATCH = 1024
"""Rows of a parquet file held in memory at once."""
SHOWN_TEXT = 200
"""Characters shown of a line that cannot be parsed."""
CSV_FIELD_LIMIT = 16 * 2**20

Reader = Callable[[Path], Iterator[SourceRow]]


def find_files(path: Path) -> list[Path]:
    """The files of `path`: itself, or those of a folder that can be read, by name.

    Raises SourceError when there is none, naming what lies near.
    """
    if path.is_file():
        _reader_of(path)
        return [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file() and _suffix(file) in READERS)
        if files:
            return files
        raise SourceError(
            f"source folder {path} holds no file that can be read: expected {_known()}, found {_listing(path)}. "
            "Put the data there or give the file itself in `path`."
        )
    raise SourceError(
        f"source file {path} does not exist{_near(path)}. Give an existing file in `path`, "
        "or download the data first; relative paths start at the checkout."
    )


def read_file(path: Path) -> Iterator[SourceRow]:
    """Rows of one file in order; SourceError when it is empty, cut short or not UTF-8."""
    if path.stat().st_size == 0:
        raise SourceError(f"source file {path} is empty: expected rows, found 0 bytes. Fetch or write it again.")
    return _reader_of(path)(path)


def _read_jsonl(path: Path) -> Iterator[SourceRow]:
    index = 0
    for number, line in _lines(path):
        if line.strip():
            yield _json_row(line, index, f"{path.name}:{number}")
            index += 1


def _json_row(line: str, index: int, where: str) -> SourceRow:
    try:
        return SourceRow(index, where, value=parse_json(line))
    except (ValueError, RecursionError) as error:
        reason = f"expected one JSON value on the line, found {line.strip()[:60]!r}: {error}"
        return SourceRow(index, where, problem=Problem("parse", reason), text=line.strip()[:SHOWN_TEXT])


def parse_json(text: str) -> Any:
    """JSON as the standard has it; NaN, Infinity and half a surrogate pair (no table holds it) are ValueErrors."""
    value = json.loads(text, parse_constant=_refuse_constant)
    if "\\ud" in text.lower():
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _read_json(path: Path) -> Iterator[SourceRow]:
    """A file that is one JSON array of rows, or one object: a single row."""
    text = "".join(line for _, line in _lines(path))
    try:
        whole = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(
            f"source file {path} is not JSON: expected an array of rows or one object, found {error}. "
            "A file with one JSON value a line is named .jsonl."
        ) from None
    for index, value in enumerate(whole if isinstance(whole, list) else [whole]):
        yield SourceRow(index, f"{path.name}:{index + 1}", value=value)


def _read_csv(path: Path) -> Iterator[SourceRow]:
    csv.field_size_limit(CSV_FIELD_LIMIT)
    reader = csv.reader((line for _, line in _lines(path)), strict=True)
    try:
        header = next(reader)
    except (StopIteration, csv.Error) as error:
        raise SourceError(
            f"source file {path} has no header line: expected column names, found {error or 'nothing'}."
        ) from None
    index = 0
    while True:
        first = reader.line_num + 1
        where = f"{path.name}:{first}"
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield SourceRow(index, where, problem=Problem("parse", f"expected a CSV record, found {error}"))
        else:
            if not fields:
                continue
            yield _csv_row(header, fields, index, where)
        index += 1


def _csv_row(header: list[str], fields: list[str], index: int, where: str) -> SourceRow:
    if len(fields) == len(header):
        return SourceRow(index, where, value=dict(zip(header, fields, strict=True)))
    reason = f"expected {len(header)} fields as in the header, found {len(fields)}"
    return SourceRow(index, where, problem=Problem("schema", reason), text=",".join(fields)[:SHOWN_TEXT])


def _read_parquet(path: Path) -> Iterator[SourceRow]:
    try:
        with pq.ParquetFile(path) as file:
            index = 0
            for batch in file.iter_batches(batch_size=PARQUET_BATCH):
                for value in batch.to_pylist():
                    yield SourceRow(index, f"{path.name}:{index + 1}", value=plain(value))
                    index += 1
    except (pa.ArrowException, OSError) as error:
        raise SourceError(
            f"source file {path} cannot be read as parquet: expected a whole parquet file, found {error}. "
            "It is probably cut short: fetch it again."
        ) from None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """(line number from 1, line with its end) of a UTF-8 text file, gunzipped where its name ends in .gz.

    Raises SourceError with the byte offset of the first byte that is not UTF-8, and for a gzip file that
    is cut short.
    """
    offset = 0
    try:
        with _open(path) as file:
            for number, raw in enumerate(file, start=1):
                yield number, _decoded(raw, offset, path).removeprefix("\ufeff" if number == 1 else "")
                offset += len(raw)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise SourceError(
            f"source file {path} is not a whole gzip file: {error} (after {offset} bytes of text). "
            "It is probably cut short: fetch it again."
        ) from None


def _decoded(raw: bytes, offset: int, path: Path) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(
            f"source file {path} is not UTF-8: expected UTF-8 text, found the byte 0x{raw[error.start]:02x} at byte "
            f"offset {offset + error.start}. Convert it, for example: iconv -f GB18030 -t UTF-8."
        ) from None


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


READERS: dict[str, Reader] = {
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}


def _suffix(path: Path) -> str:
    name = path.with_suffix("") if path.suffix == ".gz" else path
    return name.suffix.lower()


def _reader_of(path: Path) -> Reader:
    suffix = _suffix(path)
    if suffix not in READERS or (suffix == ".parquet" and path.suffix == ".gz"):
        raise SourceError(
            f"source file {path} is of no kind that can be read: expected {_known()}, found {path.name!r}. "
            "Rename it if its content is one of these."
        )
    return READERS[suffix]


def _known() -> str:
    return ", ".join(READERS) + " (text files also with .gz)"


def _near(path: Path) -> str:
    """What lies where the file was expected, near names first."""
    folder = path.parent
    if not folder.is_dir():
        return f" (nor does its folder {folder})"
    names = sorted(item.name for item in folder.iterdir() if not item.name.startswith("."))
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5)
    if near:
        return f" (did you mean {' or '.join(repr(name) for name in near)}?)"
    return f"; {folder} holds {_listing(folder)}"


def _listing(folder: Path, most: int = 8) -> str:
    names = sorted(item.name for item in folder.iterdir() if not item.name.startswith("."))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) + more) or "nothing"
