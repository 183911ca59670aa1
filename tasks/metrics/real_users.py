"""What real people write to a chat model, or to each other: messages that simulated users are held against.

Rows are read of `metrics.real_users`: a column with a conversation (a list of messages with role and content, as
WildChat, LMSYS-Chat and ShareGPT have it), with a list of texts, or with one text. Without sources, people's lines in
the seed dialogues of the build's scenes stand in: what each of the two says is a user's side.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tasks.foundation.errors import SourceError
from tasks.foundation.settings.sections import RealUsersSource
from tasks.foundation.sources import SourceRow, open_source
from tasks.foundation.sources.values import one_line
from tasks.foundation.tables.languages import LANGUAGES, language_named
from tasks.foundation.texts.languages import language_of

MOST_DIALOGUES = 2000
"""Of a language; more make no interval narrower that matters, and reading stops."""
MOST_ROWS = 50_000
"""Rows that are read of a source without a `limit`."""
USERS = ("user", "human", "prompter")
ROLE, CONTENT = ("role", "from", "speaker"), ("content", "value", "text")

Read = Callable[..., pl.DataFrame]


@dataclass(frozen=True, slots=True)
class RealUsers:
    """The users' sides of dialogues in one language, and where they come from."""

    name: str
    dialogues: Sequence[Sequence[str]]


def read_real_users(sources: Sequence[RealUsersSource]) -> dict[str, RealUsers]:
    """By language, of all sources together. SourceError for one that has no message."""
    found: dict[str, list[Sequence[str]]] = {language: [] for language in LANGUAGES}
    names: dict[str, list[str]] = {language: [] for language in LANGUAGES}
    for source in sources:
        before = sum(map(len, found.values()))
        for language, messages in _read_source(source):
            if language in found and len(found[language]) < MOST_DIALOGUES:
                found[language].append(messages)
                names[language].append(source.name)
            if all(len(each) >= MOST_DIALOGUES for each in found.values()):
                break
        if sum(map(len, found.values())) == before:
            raise SourceError(
                f"metrics.real_users: expected messages of users in column {source.column!r} of {source.name}, found "
                f"none in {' or '.join(LANGUAGES)}. The column holds a conversation (messages with role and content), "
                "a list of texts, or a text."
            )
    return {
        language: RealUsers(", ".join(dict.fromkeys(names[language])), dialogues)
        for language, dialogues in found.items()
        if dialogues
    }


def read_seed_users(read: Read) -> dict[str, RealUsers]:
    """The seed dialogues of the build's scenes, by language; empty where it has none."""
    seeds = read("scenes", columns=("seed_id",))["seed_id"].unique().to_list()
    if not seeds:
        return {}
    columns = ("seed_id", "corpus", "language", "turns")
    rows = read("seed_dialogues", pl.col("seed_id").is_in(seeds), columns)
    found: dict[str, RealUsers] = {}
    for (language,), of in rows.group_by(["language"], maintain_order=True):
        corpora = ", ".join(sorted(set(of["corpus"])))
        sides = [side for turns in of["turns"].to_list() for side in _split_sides(turns)]
        found[str(language)] = RealUsers(f"seed dialogues ({corpora})", sides[:MOST_DIALOGUES])
    return found


def _split_sides(turns: Sequence[Mapping[str, str]]) -> list[list[str]]:
    speakers = dict.fromkeys(turn["speaker"] for turn in turns)
    return [[turn["text"] for turn in turns if turn["speaker"] == speaker] for speaker in speakers]


def _read_source(source: RealUsersSource) -> Iterator[tuple[str | None, list[str]]]:
    """Language and messages of each row that has any."""
    rows = open_source(source, required=[source.column])
    for row in itertools.islice(rows, source.limit or MOST_ROWS):
        if messages := _read_row(row, source.column):
            yield _tell_language(source, row, messages), messages


def _read_row(row: SourceRow, column: str) -> list[str]:
    """A user's messages, each on one line; none of a row that cannot be read."""
    value: Any = None if row.problem else row.value[column]
    given = value if isinstance(value, list) else [value]
    texts = [one for each in given if (one := _find_text(each))]
    return [line for text in texts if (line := one_line(text))]


def _find_text(message: Any) -> str:
    if isinstance(message, str):
        return message
    if not isinstance(message, dict) or _first(message, ROLE).casefold() not in USERS:
        return ""
    return _first(message, CONTENT)


def _first(message: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((message[name] for name in names if isinstance(message.get(name), str)), "")


def _tell_language(source: RealUsersSource, row: SourceRow, messages: Sequence[str]) -> str | None:
    named = row.value.get("language")
    return source.language or (language_named(named) if named else language_of(" ".join(messages)))
