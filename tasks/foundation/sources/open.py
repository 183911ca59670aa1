"""Opens a source of the settings: rows with the columns that are needed, filtered, up to the limit."""

from __future__ import annotations

import difflib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.foundation.errors import SourceError
from tasks.foundation.settings.sections import Source
from tasks.foundation.sources.files import find_files, label_of, read_file
from tasks.foundation.sources.hub import read_dataset, read_hub_file
from tasks.foundation.sources.paths import find, has, list_paths
from tasks.foundation.sources.rows import Problem, SourceRow

PEEKED_ROWS = 100
"""A column that none of the first rows has is missing from the source, not from a row."""
SHOWN_VALUES = 8
SHOWN_COLUMNS = 60


def open_source(
    source: Source,
    required: Sequence[str | tuple[str, ...]] = (),
    where: Mapping[str, Sequence[str]] | None = None,
    hub_file: str | None = None,
    columns: Sequence[str] = (),
    optional: Sequence[str] = (),
    inside: str | None = None,
) -> Iterator[SourceRow]:
    """Rows of `source` in order, at most `source.limit`, numbered over all its files; no more are read.

    `required` names columns (a tuple: any one of them) that rows must have; empty for rows that are no
    objects. A row that lacks one is yielded with a `schema` problem. `where` keeps rows whose column holds
    one of the values; rows that are left out are still yielded, with a `filter` problem, so that they can be
    counted. `hub_file` names the file of a hub dataset to read instead of the dataset's split. `columns` names all
    that is needed of a row, where that is not everything: rows may come without the rest. `optional` names columns that
    the source must have, though a row may lack them. All of these may be paths (see `paths`). `inside` is the path of
    the rows within those of the file: "*" for an object of objects by id, "data[]" for a list under a key.
    Raises SourceError for a problem of the whole source, at the row where it is met.
    """
    name = source.hub or str(source.path)
    found = _rows(source, hub_file, columns)
    found = found if inside is None else _rows_within(found, inside)
    rows = _not_empty(itertools.islice(_numbered(found), source.limit), name)
    if required or where:
        rows = _with_columns(rows, [*required, *(where or ())], optional, name, sparse=_may_be_sparse(source))
    return _filtered(rows, where, name) if where else rows


def _rows(source: Source, hub_file: str | None, columns: Sequence[str]) -> Iterator[SourceRow]:
    folder = source.file
    if folder is not None:
        for file in find_files(folder, source.split):
            yield from read_file(file, label_of(folder, file), columns, source.table)
    elif hub_file is not None:
        yield from read_hub_file(source, hub_file)
    else:
        yield from read_dataset(source, columns)


def _rows_within(rows: Iterator[SourceRow], path: str) -> Iterator[SourceRow]:
    for row in rows:
        within = None if row.problem else find(row.value, path)
        if row.problem is None and not isinstance(within, list):
            problem = Problem(
                "schema", f"expected rows at {path}, found {', '.join(list_paths(row.value)[:12]) or 'none'}"
            )
            row = SourceRow(row.index, row.where, problem=problem, text=str(row.value)[:200])
        if row.problem is not None:
            yield row
        for number, value in enumerate(within or (), start=1):
            yield SourceRow(row.index, f"{row.where}.{number}", value)


def _numbered(rows: Iterator[SourceRow]) -> Iterator[SourceRow]:
    for index, row in enumerate(rows):
        yield row if row.index == index else SourceRow(index, row.where, row.value, row.problem, row.text, row.written)


def _not_empty(rows: Iterator[SourceRow], name: str) -> Iterator[SourceRow]:
    first = next(rows, None)
    if first is None:
        raise SourceError(f"source {name} is empty: expected rows, found none. Fetch or write it again.")
    yield first
    yield from rows


def _with_columns(
    rows: Iterator[SourceRow],
    required: Sequence[str | tuple[str, ...]],
    optional: Sequence[str],
    name: str,
    *,
    sparse: bool,
) -> Iterator[SourceRow]:
    peeked = list(itertools.islice(rows, PEEKED_ROWS))
    _require_columns(peeked, required, name)
    missing = [column for column in optional if not any(has(row.value, column) for row in peeked)]
    if not sparse or len(peeked) < PEEKED_ROWS or _did_you_mean(missing, _shown(peeked, missing)):
        _require_columns(peeked, missing, name)
    for row in itertools.chain(peeked, rows):
        yield row if row.problem else _checked(row, required)


def _require_columns(peeked: Sequence[SourceRow], required: Sequence[str | tuple[str, ...]], name: str) -> None:
    missing = [column for column in required if not any(_any_of(column, row.value) for row in peeked)]
    found = _shown(peeked, missing)
    if found and missing:
        raise SourceError(
            f"source {name} lacks {_listed(missing)}; found the columns {', '.join(map(str, found[:SHOWN_COLUMNS]))}"
            f"{_did_you_mean(missing, found)}. Is it the right file, and the right reader for it?"
        )


def _shown(rows: Sequence[SourceRow], missing: Sequence[str | tuple[str, ...]]) -> list[str]:
    """The columns of some rows, or their paths, where one of what is missing is a path."""
    if not any(isinstance(column, str) and set(".[*").intersection(column) for column in missing):
        return _columns(rows)
    return list(dict.fromkeys(path for row in rows if row.problem is None for path in list_paths(row.value)))


def _columns(rows: Sequence[SourceRow]) -> list[str]:
    return list(dict.fromkeys(column for row in rows if isinstance(row.value, dict) for column in row.value))


def _may_be_sparse(source: Source) -> bool:
    """Whether a column may come up for the first time late in the source: in JSON, not in tables."""
    if source.file is None:
        return False
    return any(".json" in file.name or ".ndjson" in file.name for file in find_files(source.file, source.split))


def _checked(row: SourceRow, required: Sequence[str | tuple[str, ...]]) -> SourceRow:
    if not isinstance(row.value, dict):
        reason = f"expected an object with columns, found {type(row.value).__name__} {str(row.value)[:60]!r}"
    else:
        missing = [column for column in required if not _any_of(column, row.value)]
        if not missing:
            return row
        reason = f"expected {_listed(missing)}, found {', '.join(map(str, row.value)) or 'an empty object'}"
    return SourceRow(row.index, row.where, problem=Problem("schema", reason), text=str(row.value)[:200])


def _filtered(rows: Iterator[SourceRow], where: Mapping[str, Sequence[str]], name: str) -> Iterator[SourceRow]:
    seen: dict[str, Counter[str]] = {column: Counter() for column in where}
    kept = read = 0
    for row in rows:
        read += 1
        if row.problem is None:
            for column in where:
                seen[column][str(find(row.value, column))] += 1
            if not all(str(find(row.value, column)) in allowed for column, allowed in where.items()):
                yield SourceRow(row.index, row.where, problem=Problem("filter", "left out by `where`"))
                continue
            kept += 1
        yield row
    if not kept and any(seen.values()):
        raise SourceError(f"the filter of source {name} selects none of its {read} rows: {_values(where, seen)}")


def _values(where: Mapping[str, Sequence[str]], seen: Mapping[str, Counter[str]]) -> str:
    parts = []
    for column, allowed in where.items():
        common = seen[column].most_common(SHOWN_VALUES)
        shown = ", ".join(f"{value!r} ({count})" for value, count in common)
        more = f" and {len(seen[column]) - len(common)} others" if len(seen[column]) > len(common) else ""
        parts.append(f"{column} is expected to be one of {list(allowed)}, found {shown}{more}")
    return "; ".join(parts) + ". Change `where` to values that occur."


def _any_of(column: str | tuple[str, ...], row: Any) -> bool:
    """Whether a row has a column, or any one of several."""
    return has(row, column) if isinstance(column, str) else any(has(row, name) for name in column)


def _listed(columns: Sequence[str | tuple[str, ...]]) -> str:
    names = [repr(column) if isinstance(column, str) else " or ".join(map(repr, column)) for column in columns]
    return f"the column{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _did_you_mean(missing: Sequence[str | tuple[str, ...]], found: Sequence[str]) -> str:
    wanted = [column if isinstance(column, str) else column[0] for column in missing]
    near = [match for name in wanted for match in difflib.get_close_matches(name, found, n=1, cutoff=0.6)]
    return f" (did you mean {', '.join(map(repr, near))}?)" if near else ""
