"""What a persona reader hands over: personas one at a time, and where every other source row ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.foundation.ids import content_id
from tasks.foundation.sources import BadRow, Problem, SourceRejects, SourceRow, Unwanted
from tasks.foundation.tables.operations import Reject
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
class Reading:
    """Rows of one source as they have ended so far. `n_in` counts rows as they come; every row becomes exactly one
    of a persona, a repeat, filtered and failed.

    Repeats and rejects wait here until they are taken, so that a source full of them is never held.
    """

    pool: str
    rejecting: SourceRejects = field(default_factory=lambda: SourceRejects(STAGE_NAME))
    n_in: int = 0
    n_repeats: int = 0
    filtered: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    first_failure: str = ""
    repeats: list[Duplicate] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    _times: Counter[str] = field(default_factory=Counter)

    def persona_id(self, source_key: str) -> str:
        return content_id("persona", self.pool, source_key)

    def leave_out(self, row: SourceRow, problem: Problem) -> None:
        """Ends a row as a reject, or only counts it where a filter left it out."""
        if problem.kind == "filter":
            self.filtered["where"] += 1
            return
        self.failed[problem.kind] += 1
        self.first_failure = self.first_failure or f"{row.where}: {problem.reason}"
        self.rejects.append(self.rejecting.make(self.pool, row, problem))

    def pass_over(self, row: SourceRow, unwanted: Unwanted) -> None:
        """Ends a row that is fine but not wanted as a reject that says why."""
        self.filtered[unwanted.why] += 1
        self.first_failure = self.first_failure or f"{row.where}: {unwanted.problem.reason}"
        self.rejects.append(self.rejecting.make(self.pool, row, unwanted.problem))

    def repeat(self, source_key: str) -> None:
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


def checked_description(text: str) -> str:
    """The description; BadRow for one that is longer than any persona is."""
    if len(text) > LONGEST_DESCRIPTION:
        raise BadRow(f"expected a description of at most {LONGEST_DESCRIPTION} characters, found {len(text)}")
    return text


def first_of(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The first value that is given under one of several spellings of a column; None when none is."""
    return next((row[name] for name in names if row.get(name) not in (None, "", [], {})), None)
