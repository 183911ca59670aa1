"""Where the rows of a build came from, and how many were asked for: asked in the commits, got from the tables.

A stage that cannot make as many as it is asked for makes fewer; only its log says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, get_args

from tasks.foundation.store.commits import Commit
from tasks.foundation.tables.dialogues import AwarenessTask
from tasks.report import numbers
from tasks.report.blocks import Table, make_filled_table
from tasks.report.questions import QueryResult, Record

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

ASKED_HEADS = ("what", "of", "setting", "asked_for", "got", "enough")


@dataclass(frozen=True, slots=True)
class Asked:
    """One number; `of_it` None: not of a pool or task. `language` None: of all."""

    part: str
    of_it: str | None
    language: str | None
    setting: str
    count: int


def list_asked_for(commits: Mapping[str, Commit], there: QueryResult) -> Table | None:
    """A row for each number that the settings of a committed stage ask for; None where they ask for none."""
    found = {(one["part"], one["of_it"], one["language"]): one["there"] for one in there.records}
    rows = tuple(
        _asked_row(asked, found.get((asked.part, asked.of_it, asked.language), 0)) for asked in list_numbers(commits)
    )
    caption = "What the settings ask for (as each stage's commit has them) and how many there are (from the SQL)."
    return make_filled_table(QueryResult(there.name, there.sql, ASKED_HEADS, rows), caption)


def _asked_row(asked: Asked, got: int) -> tuple[Any, ...]:
    of = ", ".join(name for name in (asked.of_it, asked.language) if name)
    enough = "yes" if got >= asked.count else f"fewer by {numbers.count(asked.count - got)}"
    return numbers.words(asked.part), of or None, asked.setting, asked.count, got, enough


def list_numbers(commits: Mapping[str, Commit]) -> Iterator[Asked]:
    """In the order of the stages; 0 and null ask for nothing. Where pairings are to be selected, how many may be drawn
    is a cap."""
    sections = {commit.stage: commit.record.get("settings", {}).get(commit.stage, {}) for commit in commits.values()}
    pools = list(dict.fromkeys(source["pool"] for source in sections.get("personas", {}).get("sources", ())))
    each: Mapping[str, Sequence[str | None]] = {"pool": pools, "task": get_args(AwarenessTask), "": [None]}
    for stage, name, part, of in NUMBERS:
        asked = sections.get(stage, {}).get(name)
        if part == "pairings" and sections.get(stage, {}).get("select"):
            continue
        by_language = asked if isinstance(asked, Mapping) else {None: asked}
        for of_it in each[of]:
            for language, count in by_language.items():
                if count:
                    setting = f"{stage}.{name}" + (f".{language}" if language else "")
                    yield Asked(part, of_it, language, setting, count)


ORIGIN_HEADS = ("source", "from", "split", "licence", "rows", "by_language")
COMMIT_SHOWN = 12
"""Digits of a hub dataset's commit on the page; the commit record of the build has all."""


def list_origins(commits: Mapping[str, Commit], stage: str, given: QueryResult, caption: str) -> Table | None:
    """A row for each source of the stage, also for one that gave nothing, and for rows whose source no commit says."""
    said: dict[str, list[Record]] = {}
    for commit in commits.values():
        for source in commit.record.get("sources", ()) if commit.stage == stage else ():
            said.setdefault(source["name"], []).append(source)
    names = dict.fromkeys([*said, *given.values("source_name")])
    rows = tuple(_origin_row(name, said.get(name, []), given.where(source_name=name).records) for name in names)
    return make_filled_table(QueryResult(given.name, given.sql, ORIGIN_HEADS, rows), caption)


def _origin_row(name: str, sources: Sequence[Record], given: list[Record]) -> tuple[Any, ...]:
    """Of a pool with several sources their places and splits, one after another."""
    licences = [source["licence"] for source in sources] or [one["licence"] for one in given[:1]]
    places, splits = (_joined(map(get, sources)) for get in (name_place, lambda source: source.get("split")))
    by_language = ", ".join(f"{one['language']} {numbers.count(one['how_many'])}" for one in given)
    how_many = sum(one["how_many"] for one in given)
    return name, places, splits, _joined(licences), how_many, by_language or None


def _joined(texts: Iterable[str | None]) -> str | None:
    """Different texts as one; None for none."""
    return ", ".join(dict.fromkeys(filter(None, texts))) or None


def name_place(source: Mapping[str, Any]) -> str | None:
    """The file's name without its folders, or the dataset at its commit; None where nothing says.

    >>> place_of({"path": "data/mine/people.jsonl"}), place_of({"hub": "a/b", "revision": "v1", "commit": "c0de" * 10})
    ('people.jsonl', 'a/b at c0dec0dec0de')
    """
    if source.get("hub"):
        return f"{source['hub']} at {(source.get('commit') or source['revision'])[:COMMIT_SHOWN]}"
    return PurePath(source["path"]).name if source.get("path") else None
