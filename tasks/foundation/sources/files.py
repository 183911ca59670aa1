"""Which local files a source is, and their rows.

Lines are decoded one by one, so that a fault is told with its line or byte.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import itertools
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import yaml

from tasks.foundation.errors import SourceError
from tasks.foundation.settings.strict_yaml import load_yaml
from tasks.foundation.sources.formats import parse_json, read_json_rows
from tasks.foundation.sources.rows import Problem, SourceRow
from tasks.foundation.sources.tabular import BOOKS, DATABASES, read_table, refuse_twice
from tasks.foundation.sources.tabular import FILES as TABLE_FILES

SHOWN_TEXT = 200
"""Characters shown of a line that cannot be parsed."""
CSV_FIELD_LIMIT = 16 * 2**20
PACKED = (".gz", ".zst")
NO_DATA = ("dataset_infos.json", "dataset_info.json", "dataset_dict.json", "state.json")
"""Files that tools put beside data."""
_BY_NAME = frozenset((*DATABASES, *BOOKS))
"""Kinds that a folder may hold beside data: they are read where they are named themselves."""

Opener = Callable[[], IO[bytes]]


def read_file(path: Path, label: str, columns: Sequence[str] = (), table: str | None = None) -> Iterator[SourceRow]:
    """Rows of one file in order, named "<label>:<line>"; SourceError when it is empty, cut short or not UTF-8.

    `columns` names what is needed; a parquet file that has them all is read no further than that. `table` names the
    table of a database, or the sheet of a workbook.
    """
    if path.stat().st_size == 0:
        raise SourceError(f"source file {path} is empty: expected rows, found 0 bytes. Fetch or write it again.")
    if kind_of(path) in TABLE_FILES:
        return read_table(path, label, columns, table)
    return TEXT_READERS[kind_of(path)](_read_lines(lambda: path.open("rb"), str(path)), str(path), label)


def read_jsonl(open_file: Opener, name: str, label: str) -> Iterator[SourceRow]:
    """Rows of a file of JSON lines, wherever it is opened from; unpacked where its name ends in .gz or .zst."""
    return _read_jsonl(_read_lines(open_file, name), name, label)


def kind_of(path: Path, *, strict: bool = True) -> str:
    """What a file's name says it is; for a kind that cannot be read SourceError, or "" unless `strict`."""
    name = path.with_suffix("") if path.suffix in PACKED else path
    kind = name.suffix.lower()
    if kind in TEXT_READERS or (kind in TABLE_FILES and path.suffix not in PACKED):
        return kind
    if not strict:
        return ""
    raise SourceError(
        f"source file {path} is of no kind that can be read: expected {list_kinds()}, found {path.name!r}. "
        "Rename it if its content is one of these."
    )


def list_kinds() -> str:
    return ", ".join([*TEXT_READERS, *TABLE_FILES]) + f" (text files also with {' or '.join(PACKED)})"


Lines = Iterator[tuple[int, str]]


def _read_jsonl(lines: Lines, name: str, label: str) -> Iterator[SourceRow]:
    index = 0
    for number, line in lines:
        if line.strip():
            yield _json_row(line, index, f"{label}:{number}")
            index += 1


def _json_row(line: str, index: int, where: str) -> SourceRow:
    try:
        return SourceRow(index, where, value=parse_json(line))
    except (ValueError, RecursionError) as error:
        what: object = error
        if isinstance(error, json.JSONDecodeError):
            what = f"{error.msg.removesuffix(' at')} at column {error.colno}"
        reason = f"expected one JSON value on the line, found {line.strip()[:60]!r}: {what}"
        return SourceRow(index, where, problem=Problem("parse", reason), text=line.strip()[:SHOWN_TEXT])


def _read_json(lines: Lines, name: str, label: str) -> Iterator[SourceRow]:
    """A file that is one JSON array of rows, or one object: a single row."""
    text = "".join(line for _, line in lines)
    try:
        yield from read_json_rows(text, label)
    except (ValueError, RecursionError) as error:
        raise SourceError(
            f"source file {name} is not JSON: expected an array of rows or one object, found {error}. "
            "A file with one JSON value a line is named .jsonl."
        ) from None


def _read_csv(lines: Lines, name: str, label: str, separator: str = ",") -> Iterator[SourceRow]:
    csv.field_size_limit(CSV_FIELD_LIMIT)
    reader = csv.reader((line for _, line in lines), strict=True, delimiter=separator)
    try:
        header = next(reader)
    except (StopIteration, csv.Error) as error:
        raise SourceError(
            f"source file {name} has no header line: expected column names, found {error or 'nothing'}."
        ) from None
    refuse_twice(header, name)
    _refuse_other_separators(header, name, separator)
    index = 0
    while True:
        first = reader.line_num + 1
        where = f"{label}:{first}"
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            taken = reader.line_num - first + 1
            more = f" (it takes in {taken} lines: a quote is not closed)" if taken > 1 else ""
            yield SourceRow(index, where, problem=Problem("parse", f"expected a CSV record, found {error}{more}"))
        else:
            if not fields:
                continue
            yield _csv_row(header, fields, index, where)
        index += 1


def _refuse_other_separators(header: Sequence[str], name: str, separator: str) -> None:
    others = [other for other in ";\t," if other != separator]
    found = [other for other in others if other in header[0]] if len(header) == 1 else []
    if found:
        right = "commas" if separator == "," else "tabs"
        raise SourceError(
            f"source file {name}: expected columns separated by {right}, found the one column {header[0][:60]!r}. "
            f"Write it with {right} instead of {found[0]!r}, or as jsonl or parquet."
        )


def _csv_row(header: list[str], fields: list[str], index: int, where: str) -> SourceRow:
    if len(fields) == len(header):
        return SourceRow(index, where, value=dict(zip(header, fields, strict=True)))
    reason = f"expected {len(header)} fields as in the header, found {len(fields)}"
    return SourceRow(index, where, problem=Problem("schema", reason), text=",".join(fields)[:SHOWN_TEXT])


def _read_lines(open_file: Opener, name: str) -> Lines:
    """(line number from 1, line with its end) of a UTF-8 text file.

    Raises SourceError with the byte offset of the first byte that is not UTF-8, and for a gzip file that
    is cut short.
    """
    offset = 0
    try:
        with open_file() as raw_file, _unpacked(raw_file, name) as file:
            for number, raw in enumerate(file, start=1):
                yield number, _decoded(raw, offset, name).removeprefix("\ufeff" if number == 1 else "")
                offset += len(raw)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise SourceError(
            f"source file {name} is not a whole gzip file: {error} (after {offset} bytes of text). "
            "It is probably cut short: fetch it again."
        ) from None
    except OSError as error:
        if not name.endswith(".zst"):
            raise
        raise SourceError(
            f"source file {name} is not a whole zst file: {error} (after {offset} bytes of text). "
            "It is probably cut short: fetch it again."
        ) from None


def _unpacked(file: IO[bytes], name: str) -> IO[bytes]:
    if name.endswith(".gz"):
        return cast("IO[bytes]", gzip.open(file))
    if name.endswith(".zst"):
        return io.BufferedReader(cast(Any, pa.CompressedInputStream(file, "zstd")))
    return file


def _decoded(raw: bytes, offset: int, name: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if offset == 0 and raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise SourceError(
                f"source file {name} is not UTF-8 but UTF-16. Convert it: iconv -f UTF-16 -t UTF-8."
            ) from None
        raise SourceError(
            f"source file {name} is not UTF-8: expected UTF-8 text, found the byte 0x{raw[error.start]:02x} at byte "
            f"offset {offset + error.start}. Convert it: iconv -f LATIN1 -t UTF-8, or from whatever it is written in "
            "(GB18030 for Chinese)."
        ) from None


TEXT_READERS: dict[str, Callable[[Lines, str, str], Iterator[SourceRow]]] = {
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": partial(_read_csv, separator="\t"),
}


def find_files(path: Path, split: str | None = None) -> list[Path]:
    """The files of `path`: itself, those of a folder that can be read, or those that it is a pattern for; by name.

    A folder is read as deep as it must be: its own files, or, where it has none, those of its folders. With a
    `split` they are those which the folder's README.md declares for it, as datasets of the hub do, else those
    with the split in their names (data/train-00000-of-00011.parquet). Raises SourceError when there is none,
    naming what lies near.
    """
    if path.is_file():
        kind_of(path)
        return [path]
    if not path.is_dir():
        if found := matching(path):
            return found
        raise SourceError(
            f"source file {path} does not exist{_near_names(path)}. Give an existing file in `path`, "
            "or download the data first; relative paths start at the checkout."
        )
    below = sorted(_readable_files(path, set()))
    if split is not None:
        return _files_of_split(path, split, below)
    files = [file for file in below if file.parent == path] or below
    if not files:
        raise SourceError(
            f"source folder {path} holds no file that can be read: expected {list_kinds()}, found "
            f"{_list_names(path)}. Put the data there or give the file itself in `path`."
        )
    return files


def label_of(path: Path, file: Path) -> str:
    """What rows of one file of `path` are called after: its name, within a folder or a pattern the way to it."""
    folder = path if path.is_dir() else path.parent if path.is_file() else _fixed_part(path)
    return file.relative_to(folder).as_posix()


def matching(pattern: Path) -> list[Path]:
    """The files that a path with `*`, `?` or `[…]` stands for, by name; none for any other path."""
    folder = _fixed_part(pattern)
    if folder == pattern or not folder.is_dir():
        return []
    found = sorted(file for file in folder.glob(pattern.relative_to(folder).as_posix()) if file.is_file())
    for file in found:
        kind_of(file)
    return found


def _fixed_part(pattern: Path) -> Path:
    """The path up to its first part with a `*`, `?` or `[`."""
    parts = itertools.takewhile(lambda part: not set("*?[").intersection(part), pattern.parts)
    return Path(*parts)


def _readable_files(folder: Path, entered: set[Path]) -> Iterator[Path]:
    """Each folder is entered once, whatever links lead to it."""
    real = folder.resolve()
    if real in entered:
        return
    entered.add(real)
    for item in folder.iterdir():
        if item.name.startswith("."):
            continue
        if item.is_dir():
            yield from _readable_files(item, entered)
        elif item.name not in NO_DATA and kind_of(item, strict=False) not in ("", *_BY_NAME) and not _is_cached(item):
            yield item


def _is_cached(file: Path) -> bool:
    """Whether `datasets` keeps in it what it once worked out from the data beside."""
    return file.suffix == ".arrow" and file.name.startswith(("cache-", "tmp"))


def _files_of_split(folder: Path, split: str, files: Sequence[Path]) -> list[Path]:
    patterns = _declared_patterns(folder / "README.md").get(split, [])
    named = {file for pattern in patterns for file in (folder / pattern, *folder.glob(pattern))}
    found = sorted(named.intersection(files))
    if not found:
        name = re.compile(rf"(?:^|[^a-zA-Z0-9]){re.escape(split)}(?:[^a-zA-Z0-9]|$)")
        found = [file for file in files if name.search(file.relative_to(folder).as_posix())]
    if not found:
        shown = ", ".join(file.relative_to(folder).as_posix() for file in files[:8]) or _list_names(folder)
        raise SourceError(
            f"source folder {folder} holds no file of the split {split!r}: expected it declared in README.md or in a "
            f"file's name, found {shown}. Change `split`, or leave it out to read every file."
        )
    return found


def _declared_patterns(readme: Path) -> dict[str, list[str]]:
    """Patterns of files by split, as the first lines of a dataset's README.md declare them; empty without any."""
    text = readme.read_text(encoding="utf-8", errors="replace") if readme.is_file() else ""
    head = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    try:
        configs = load_yaml(head[1])["configs"] if head else []
        named = [each for each in configs if each.get("config_name") == "default"]
        entries = (named or configs)[0]["data_files"]
        pairs = entries.items() if isinstance(entries, dict) else [(each["split"], each["path"]) for each in entries]
        return {str(split): _patterns(paths) for split, paths in pairs}
    except (yaml.YAMLError, LookupError, TypeError, AttributeError):
        return {}


def _patterns(paths: Any) -> list[str]:
    return [str(path).removeprefix("./") for path in (paths if isinstance(paths, list) else [paths])]


def _near_names(path: Path) -> str:
    """What lies where the file was expected, near names first."""
    folder = path.parent
    if not folder.is_dir():
        return f" (nor does its folder {folder})"
    names = sorted(item.name for item in folder.iterdir() if not item.name.startswith("."))
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5)
    if near:
        return f" (did you mean {' or '.join(repr(name) for name in near)}?)"
    return f"; {folder} holds {_list_names(folder)}"


def _list_names(folder: Path, most: int = 8) -> str:
    names = sorted(item.name for item in folder.iterdir() if not item.name.startswith("."))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) + more) or "nothing"
