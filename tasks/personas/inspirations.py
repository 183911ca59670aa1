"""Texts that inspire characters: personas of the pools, and the lines or paragraphs of local text files.

DEMO prompts its designer with "diverse web texts"; a file of any texts may stand beside the pools or, without a
source, in their place. Which of its texts are used depends on what they say, not on where they stand.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.foundation.errors import SourceError
from tasks.foundation.ids import digest
from tasks.foundation.settings.sections import InspirationSource
from tasks.foundation.sources.texts import one_line
from tasks.foundation.tables.types import Language

LONGEST_TEXT = 2000
"""Characters of a text that are looked at; a prompt shows some hundred."""


@dataclass(frozen=True, slots=True)
class Inspiration:
    """One text; `where` is its pool, or its file and line (of a paragraph the first). `persona_id` is None for a
    text of a file."""

    text: str
    where: str
    persona_id: str | None = None


def of_pools(pools: Mapping[str, Sequence[tuple[str, str]]]) -> list[list[Inspiration]]:
    """Of each pool with a persona its inspirations in rank order, pools by name; from (persona id, description)."""
    return [
        [Inspiration(text, pool, persona_id) for persona_id, text in pools[pool]]
        for pool in sorted(pools)
        if pools[pool]
    ]


def of_files(
    sources: Sequence[InspirationSource], language: Language, wanted: int, seed: int
) -> list[list[Inspiration]]:
    """Of each file of a language the texts that are used: `wanted` different ones, or all there are."""
    return [drawn(texts_of(source), wanted, seed) for source in sources if source.language == language]


def drawn(texts: Iterable[Inspiration], wanted: int, seed: int) -> list[Inspiration]:
    """The first `wanted` different texts of a seeded order; asking for more changes none of the first."""
    return heapq.nsmallest(wanted, _different(texts), key=lambda each: digest(seed, "personas.inspiration", each.text))


def _different(texts: Iterable[Inspiration]) -> Iterator[Inspiration]:
    seen: set[str] = set()
    for each in texts:
        key = digest(each.text)[:16]
        if key not in seen:
            seen.add(key)
            yield each


def texts_of(source: InspirationSource) -> Iterator[Inspiration]:
    """The texts of a file, each on one line. SourceError for a file that is not there, not UTF-8 or has none."""
    found = False
    for number, text in _texts(source.file, source.one_text_per == "paragraph"):
        found = True
        yield Inspiration(text, f"{source.file.name}:{number}")
    if not found:
        raise SourceError(
            f"personas.inspirations: expected a text a {source.one_text_per} in {source.file}, found none. "
            "Fill the file or take it out of the settings."
        )


def _texts(file: Path, by_paragraph: bool) -> Iterator[tuple[int, str]]:
    """(line number, text); a blank line ends a paragraph."""
    begun, parts = 0, list[str]()
    try:
        with file.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                text = one_line(line)[:LONGEST_TEXT]
                if text:
                    begun = begun or number
                    parts.append(text)
                if parts and not (by_paragraph and text):
                    yield begun, " ".join(parts)[:LONGEST_TEXT]
                    begun, parts = 0, []
    except UnicodeDecodeError as error:
        raise SourceError(
            f"personas.inspirations: expected UTF-8 text in {file}, found byte {error.object[error.start]:#04x} that "
            "is none. Convert the file."
        ) from None
    except OSError as error:
        raise SourceError(f"personas.inspirations: {file} cannot be read: {error.strerror or error}") from None
    if parts:
        yield begun, " ".join(parts)[:LONGEST_TEXT]
