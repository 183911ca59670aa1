"""The texts that inspire characters: personas of the pools and texts of corpora, as many different ones as there are.

DEMO (section 3.2) prompts its designer with "diverse web texts". Here every candidate of a pool that is no duplicate
inspires, and so does each line or paragraph of a file or of a column of a dataset. Which are used, and by whom, depends
on what they say and on the seed, not on where they stand; asking for more characters changes none of the first.

What is held of a corpus are the texts that will be used, of a pool the places of the personas that will be.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tasks.foundation.errors import SourceError
from tasks.foundation.ids import digest
from tasks.foundation.settings.sections import InspirationSource
from tasks.foundation.sources import SourceRow, open_source
from tasks.foundation.sources.values import one_line

LONGEST_TEXT = 2000
"""Characters of an inspiring text that are looked at."""


@dataclass(frozen=True, slots=True)
class Inspiration:
    """One text; `where` is its pool, or its file or dataset and line (of a paragraph the first), or
    row. `persona_id` is None for a text of a corpus."""

    text: str
    where: str
    persona_id: str | None = None


def draw_of_pool(ids: Sequence[str], first: int, last: int, seed: int) -> tuple[list[int], list[int]]:
    """Places in `ids` of the first of a seeded order, and of the last: English takes the personas of a pool from one
    end and Chinese from the other, so that no persona inspires both while there are others."""

    def key(place: int) -> str:
        return digest(seed, "personas.inspiration", ids[place])

    return heapq.nsmallest(first, range(len(ids)), key), heapq.nlargest(last, range(len(ids)), key)


def draw_texts(texts: Iterable[Inspiration], wanted: int, seed: int) -> list[Inspiration]:
    """The first `wanted` different texts of a seeded order, or all there are. No more are held meanwhile."""
    held: list[tuple[int, Inspiration]] = []  # a heap, the last of the order at its top
    keys = set[int]()
    for each in texts:
        key = -int(digest(seed, "personas.inspiration", each.text)[:16], 16)
        if key in keys or not wanted:
            continue
        if len(held) < wanted:
            heapq.heappush(held, (key, each))
        elif key > held[0][0]:
            keys.remove(heapq.heapreplace(held, (key, each))[0])
        else:
            continue
        keys.add(key)
    return [each for _, each in sorted(held, key=lambda entry: -entry[0])]


def take_turns(there: Sequence[int], count: int) -> list[tuple[int, int]]:
    """For each of `count` characters the source that inspires it and which of its texts, from how many each source has:
    by turns, those that are used up left out; once all are, from the beginning. Nothing without any text."""
    turns: list[tuple[int, int]] = []
    while any(there) and len(turns) < count:
        for place in range(max(there)):
            turns += [(source, place) for source, n in enumerate(there) if place < n]
            if len(turns) >= count:
                break
    return turns[:count]


def read_inspirations(source: InspirationSource) -> Iterator[Inspiration]:
    """The texts of a file or dataset, each on one line. SourceError for one that cannot be read, or has none."""
    found = False
    for where, lines in _read_documents(source):
        for number, text in _split(lines, by_paragraph=source.one_text_per == "paragraph"):
            found = True
            yield Inspiration(text, where if source.column else f"{where}:{number}")
    if not found:
        raise SourceError(
            f"personas.inspirations: expected a text a {source.one_text_per} in {source.name}, found none. "
            "Fill it or take it out of the settings."
        )


def _read_documents(source: InspirationSource) -> Iterator[tuple[str, Iterable[str]]]:
    """Lines of the whole file, or of the column of each row; with where they stand."""
    if source.column is None:
        yield _read_file(source)
        return
    for row in open_source(source, required=[source.column], columns=[source.column]):
        yield row.where, _lines_of(row, source.column)


def _lines_of(row: SourceRow, column: str) -> list[str]:
    """Of a row that cannot be read, or has no text, none: there are others to be inspired by."""
    value = row.value.get(column) if isinstance(row.value, dict) and row.problem is None else None
    return value.splitlines() if isinstance(value, str) else []


def _read_file(source: InspirationSource) -> tuple[str, Iterator[str]]:
    file = source.file
    assert file is not None, "the settings refuse a dataset without a column"

    def lines() -> Iterator[str]:
        try:
            with file.open(encoding="utf-8-sig") as opened:
                yield from opened
        except UnicodeDecodeError as error:
            raise SourceError(
                f"personas.inspirations: expected UTF-8 text in {file}, found byte {error.object[error.start]:#04x} "
                "that is none. Convert the file."
            ) from None
        except OSError as error:
            raise SourceError(f"personas.inspirations: {file} cannot be read: {error.strerror or error}") from None

    return file.name, lines()


def _split(lines: Iterable[str], *, by_paragraph: bool) -> Iterator[tuple[int, str]]:
    """(line number, text); a blank line ends a paragraph."""
    begun, parts = 0, list[str]()
    for number, line in enumerate(lines, start=1):
        text = one_line(line)[:LONGEST_TEXT]
        if text:
            begun = begun or number
            parts.append(text)
        if parts and not (by_paragraph and text):
            yield begun, " ".join(parts)[:LONGEST_TEXT]
            begun, parts = 0, []
    if parts:
        yield begun, " ".join(parts)[:LONGEST_TEXT]


def corpora_of(sources: Sequence[InspirationSource], wanted: int, seed: int) -> list[list[Inspiration]]:
    """Of each corpus the texts that are used: `wanted` different ones, or all there are."""
    return [draw_texts(read_inspirations(each), wanted, seed) for each in sources] if wanted else []
