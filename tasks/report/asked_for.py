"""What the settings ask for by number beside what is there: asked in the commits, got from the tables.

A stage that cannot make as many as it is asked for makes fewer; only its log says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from tasks.foundation.store.commits import Commit
from tasks.foundation.tables.dialogues import AwarenessTask
from tasks.report import numbers
from tasks.report.blocks import Table, filled
from tasks.report.questions import Answer

NUMBERS = (
    ("personas", "pool_size", "persona_pool", "pool"),
    ("personas", "characters", "characters", ""),
    ("scenes", "sample", "scenes", ""),
    ("conflicts", "pairings", "pairings", ""),
    ("conflicts", "select", "selected_pairings", ""),
    ("curation", "items_per_task", "awareness_items", "task"),
    ("curation", "episodes", "interaction_episodes", ""),
    ("chatseeds", "per_pool", "chat_seeds", "pool"),
)
"""Stage and setting, the part that it asks for, and of what there is to be that many each."""

HEADS = ("what", "of", "setting", "asked_for", "got", "enough")


@dataclass(frozen=True, slots=True)
class Asked:
    """One number; `of_it` None: not of a pool or task. `language` None: of all."""

    part: str
    of_it: str | None
    language: str | None
    setting: str
    count: int


def asked_for(commits: Mapping[str, Commit], there: Answer) -> Table | None:
    """A row for each number that the settings of a committed stage ask for; None where they ask for none."""
    found = {(one["part"], one["of_it"], one["language"]): one["there"] for one in there.records}
    rows = tuple(_row(asked, found.get((asked.part, asked.of_it, asked.language), 0)) for asked in numbers_of(commits))
    caption = "What the settings ask for (as each stage's commit has them) and how many there are (from the SQL)."
    return filled(Answer(there.name, there.sql, HEADS, rows), caption)


def _row(asked: Asked, got: int) -> tuple[Any, ...]:
    of = ", ".join(name for name in (asked.of_it, asked.language) if name)
    enough = "yes" if got >= asked.count else f"fewer by {numbers.count(asked.count - got)}"
    return numbers.words(asked.part), of or None, asked.setting, asked.count, got, enough


def numbers_of(commits: Mapping[str, Commit]) -> Iterator[Asked]:
    """In the order of the stages; 0 and null ask for nothing."""
    sections = {commit.stage: commit.record.get("settings", {}).get(commit.stage, {}) for commit in commits.values()}
    pools = [source["pool"] for source in sections.get("personas", {}).get("sources", ())]
    each: Mapping[str, Sequence[str | None]] = {"pool": pools, "task": get_args(AwarenessTask), "": [None]}
    for stage, name, part, of in NUMBERS:
        asked = sections.get(stage, {}).get(name)
        by_language = asked if isinstance(asked, Mapping) else {None: asked}
        for of_it in each[of]:
            for language, count in by_language.items():
                if count:
                    setting = f"{stage}.{name}" + (f".{language}" if language else "")
                    yield Asked(part, of_it, language, setting, count)
