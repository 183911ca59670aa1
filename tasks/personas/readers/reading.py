"""What a persona reader hands over: personas one at a time, and where every other source row ended.

One source key, one persona: exact repeats are duplicates, a second content under a key is a bad row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasks.foundation.ids import content_id
from tasks.foundation.settings.sections import PersonaSource
from tasks.foundation.sources import BadRow, SourceRejects, SourceRow, SourceTally
from tasks.foundation.sources.values import refuse_other
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.personas import BigFive, Duplicate
from tasks.foundation.tables.types import Language

STAGE_NAME = "personas"
LONGEST_DESCRIPTION = 20_000
"""Characters; the longest of the corpora have a third of it, and models pay for every one."""


@dataclass(frozen=True, slots=True)
class Persona:
    """One source persona, verbalised; the fields are those of `persona_candidates`."""

    source_key: str
    language: Language
    description: str
    raw: str
    name: str | None = None
    age: int | None = None
    age_bucket: str | None = None
    sex: str | None = None
    occupation: str | None = None
    occupation_group: str | None = None
    education_level: str | None = None
    marital_status: str | None = None
    race_ethnicity: str | None = None
    city: str | None = None
    state: str | None = None
    country: str | None = None
    big_five: BigFive | None = None
    topic_tags: tuple[str, ...] = ()
    interaction_length_bucket: str | None = None
    speaking_style: str | None = None
    hobbies: tuple[str, ...] = ()


@dataclass
class Reading(SourceTally):
    """The tally of the sources of one pool, by its name; a row may also end as a repeat.

    Repeats wait here like rejects until they are taken.
    """

    rejecting: SourceRejects = field(default_factory=lambda: SourceRejects(STAGE_NAME))
    languages: Sequence[Language] = tuple(LANGUAGES)
    """Personas in others are left out."""
    n_repeats: int = 0
    repeats: list[Duplicate] = field(default_factory=list)
    _times: Counter[str] = field(default_factory=Counter)

    def persona_id(self, source_key: str) -> str:
        return content_id("persona", self.source, source_key)

    def end_as_repeat(self, source_key: str) -> None:
        """Ends a row that repeats an earlier one word for word, its id included."""
        persona_id = self.persona_id(source_key)
        self.n_repeats += 1
        self._times[persona_id] += 1
        self.repeats.append(
            Duplicate(
                table_name="persona_candidates",
                row_id=f"{persona_id}#{self._times[persona_id]}",
                duplicate_of=persona_id,
                cosine=None,
                method="exact",
            )
        )


def check_length(text: str) -> str:
    """The description; BadRow for one that is longer than any persona is."""
    if len(text) > LONGEST_DESCRIPTION:
        raise BadRow(f"expected a description of at most {LONGEST_DESCRIPTION} characters, found {len(text)}")
    return text


def first_given(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The first value that is given under one of several spellings of a column; None when none is."""
    return next((row[name] for name in names if row.get(name) not in (None, "", [], {})), None)


def chain_rows(
    sources: Sequence[PersonaSource], read: Callable[[PersonaSource], Iterable[SourceRow]]
) -> Iterator[tuple[PersonaSource, SourceRow]]:
    """The rows of all sources of a pool, one source after another, each with its source."""
    return ((source, row) for source in sources for row in read(source))


def read_each(
    rows: Iterable[tuple[PersonaSource, SourceRow]],
    reading: Reading,
    parse: Callable[[SourceRow, PersonaSource], Persona],
) -> Iterator[Persona | None]:
    """Of sources that have one row a persona: for each row its persona, or None where `reading` says how it ended."""
    contents: dict[str, int] = {}

    def parse_once(row: SourceRow, source: PersonaSource) -> Persona | None:
        persona = parse(row, source)
        refuse_other(persona.language, reading.languages)
        content = hash(persona.raw)  # of 64 bits, compared within this process only
        if persona.source_key not in contents:
            contents[persona.source_key] = content
            return persona
        if contents[persona.source_key] != content:
            raise BadRow(f"expected each id once, found {persona.source_key[:80]!r} again with other content")
        reading.end_as_repeat(persona.source_key)
        return None

    for source, row in rows:
        yield reading.parse(row, lambda row, source=source: parse_once(row, source))  # type: ignore[misc]
