"""What a query may do: read, keep temporary things, and write an answer to one file outside the artifacts folder.

Decided on DuckDB's own statement types and tokens, so that neither comments nor quoting hide anything. Its settings
are locked besides, which stops what a function called within a query would change.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import duckdb

from tasks.foundation.errors import ConfigError

HARMLESS = ("SELECT", "SET", "TRANSACTION", "EXECUTE", "DETACH", "INSERT", "UPDATE", "DELETE", "MERGE_INTO", "DROP")
"""Statement types that change nothing in files: the views are opened read-only, settings are locked, and what was
prepared was looked at then."""
BEGIN_READING = ("select", "with", "from", "pivot", "unpivot", "pivot_wider", "pivot_longer", "values", "table", "(")
TEMPORARY = ("table", "view", "macro", "function")
TELLING = (
    *("collations", "database_list", "database_size", "functions", "metadata_info", "platform", "show"),
    *("show_databases", "show_tables", "show_tables_expanded", "storage_info", "table_info", "user_agent", "version"),
)
"""Pragmas that only tell."""
COPY_OPTIONS = (
    *("array", "codec", "compression", "compression_level", "dateformat", "delim", "delimiter", "encoding", "escape"),
    *("force_quote", "format", "header", "null", "nullstr", "parquet_version", "quote", "row_group_size", "sep"),
    *("row_group_size_bytes", "timestampformat"),
)
"""Those of one file; with others `copy` makes a folder, or names files as it likes."""
OPEN_SETTINGS = ("threads", "memory_limit", "timezone")
LOCKS = (
    "set allow_community_extensions = false",
    "set autoinstall_known_extensions = false",
    "set autoload_known_extensions = false",
    "set allow_persistent_secrets = false",
    "set allowed_directories = ['/']",
    f"set allowed_configs = {list(OPEN_SETTINGS)}",
    "set enable_external_access = false",
    "set lock_configuration = true",
)
"""Files of this machine may be read, nothing of the network; no setting changes any more but those above."""


def only_reading(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """The connection, locked for good."""
    for lock in LOCKS:
        connection.execute(lock)
    return connection


def refuse_writing(statement: duckdb.Statement, root: Path) -> None:
    """ConfigError for a statement that could write a file, other than an answer outside `root`."""
    _refuse(_type_of(statement), _words(statement.query), statement.query, root)


def _refuse(kind: str, words: Sequence[str], text: str, root: Path) -> None:
    first = words[0].lower() if words else ""
    if kind in HARMLESS or (kind == "MULTI" and first in BEGIN_READING):
        return
    if first == "copy" and kind in ("COPY", "MULTI"):
        _refuse_copy(words, root)
    elif first in ("explain", "prepare"):
        _refuse_within(words, text, root)
    elif not (
        (first == "create" and _is_temporary(words))
        or (kind == "ATTACH" and _only_reads(words))
        or (kind in ("PRAGMA", "CALL") and _tells(words))
    ):
        raise ConfigError(
            f"`colloquy sql` is read-only: expected a query, temporary tables, views and macros (create temp …), or "
            f"`copy (…) to 'FILE'` outside {root}; found {text.strip()[:80]!r}"
        )


def _type_of(statement: duckdb.Statement) -> str:
    """The type's name; empty for one that DuckDB's Python does not know yet."""
    try:
        return statement.type.name
    except ValueError:
        return ""


def _words(text: str) -> list[str]:
    """The tokens of a statement without comments and semicolons, as they are written."""
    return [word for word, _ in _placed(text)]


def _placed(text: str) -> list[tuple[str, int]]:
    """Tokens, each with its place in the text's UTF-8."""
    raw = text.encode()
    tokens = [*duckdb.tokenize(text), (len(raw), duckdb.token_type.comment)]
    words = [
        (raw[start:end].decode().strip(), start)
        for (start, kind), (end, _) in pairwise(tokens)
        if kind != duckdb.token_type.comment
    ]
    return [(word, start) for word, start in words if word != ";"]


def _refuse_within(words: Sequence[str], text: str, root: Path) -> None:
    """As for the statement that an `explain` or `prepare` holds."""
    placed = _placed(text)
    if words[0].lower() == "prepare":
        begins = [word.lower() for word in words].index("as") + 1
    else:
        begins = 2 if words[1].lower() == "analyze" else 1
        begins = words.index(")") + 1 if words[1] == "(" and words[2].lower() in ("analyze", "format") else begins
    inner = text.encode()[placed[begins][1] :].decode()
    for statement in duckdb.extract_statements(inner):
        refuse_writing(statement, root)


def _refuse_copy(words: Sequence[str], root: Path) -> None:
    """ConfigError unless a `copy` reads a file, or writes one that is plainly outside `root`."""
    place = _behind_source(words)
    if words[place].lower() == "from":
        return
    file, options = words[place + 1], words[place + 2 :]
    if options and options[0].lower() == "with":
        options = options[1:]
    plain = file.startswith("'") and _is_outside(file[1:-1].replace("''", "'"), root)
    if not plain or not _options_of(options) <= set(COPY_OPTIONS):
        raise ConfigError(
            f"a query may write its answer with `copy (…) to 'FILE'` to one file, a plain path outside {root}, which "
            f"only runs may change, with options in parentheses of: {', '.join(COPY_OPTIONS)}; found "
            f"{' '.join([file, *options])!r}"
        )


def _behind_source(words: Sequence[str]) -> int:
    """Where a `copy` says `to` or `from`: behind its query, or its table with the columns. A part of a table's name may
    be either word."""
    place = 1
    if words[place] != "(":
        place += 1
        while words[place] == ".":
            place += 2
    if words[place] == "(":
        place = next(number for number in range(place + 1, len(words)) if not _depth(words, number))
    return place


def _depth(words: Sequence[str], place: int) -> int:
    """How many parentheses are open there."""
    return words[:place].count("(") - words[:place].count(")")


def _options_of(words: Sequence[str]) -> set[str]:
    """The names in `(name value, name value)`, lower case; what is not in parentheses counts as names."""
    if not words or words[0] != "(" or words[-1] != ")":
        return {word.lower() for word in words}
    starts = [n + 1 for n, word in enumerate(words) if word in "(," and _depth(words, n + (word == "(")) == 1]
    return {words[start].lower() for start in starts}


def _is_outside(place: str, root: Path) -> bool:
    """Whether DuckDB takes `place` for a path of this machine, and it leads out of `root`."""
    if not place or place.startswith(("~", "file:")) or "://" in place or "\0" in place:
        return False
    try:
        return not Path(place).resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False


def _is_temporary(words: Sequence[str]) -> bool:
    said = [word.lower() for word in words[1:6]]
    said = said[2:] if said[:2] == ["or", "replace"] else said
    return said[0] in ("temp", "temporary") and said[1] in TEMPORARY


def _only_reads(words: Sequence[str]) -> bool:
    """Whether an `attach` asks for nothing: the file is then opened read-only, as the views are."""
    options = words[words.index("(") :] if "(" in words else ()
    return {word.lower() for word in options} <= {"(", ")", "read_only"}


def _tells(words: Sequence[str]) -> bool:
    name = words[1].lower() if len(words) > 1 else ""
    return name in TELLING or name.startswith(("duckdb_", "pragma_"))
