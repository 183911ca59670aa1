"""Where the rows of a pool or corpus came from: its source by the commit, and how many rows it gave by the SQL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from tasks.foundation.store.commits import Commit
from tasks.report import numbers
from tasks.report.blocks import Table, filled
from tasks.report.questions import Answer, Record

HEADS = ("source", "from", "split", "licence", "rows", "by_language")
COMMIT_SHOWN = 12
"""Digits of a hub dataset's commit on the page; the commit record of the build has all."""


def origins(commits: Mapping[str, Commit], stage: str, given: Answer, caption: str) -> Table | None:
    """A row for each source of the stage, also for one that gave nothing, and for rows whose source no commit says."""
    said: dict[str, Record] = {}
    for commit in commits.values():
        if commit.stage == stage:
            said |= {source["name"]: source for source in commit.record.get("sources", ())}
    names = dict.fromkeys([*said, *given.values("source_name")])
    rows = tuple(_row(name, said.get(name, {}), given.where(source_name=name).records) for name in names)
    return filled(Answer(given.name, given.sql, HEADS, rows), caption)


def _row(name: str, source: Mapping[str, Any], given: list[Record]) -> tuple[Any, ...]:
    licence = source.get("licence") or (given[0]["licence"] if given else None)
    by_language = ", ".join(f"{one['language']} {numbers.count(one['how_many'])}" for one in given)
    how_many = sum(one["how_many"] for one in given)
    return name, place_of(source), source.get("split"), licence, how_many, by_language or None


def place_of(source: Mapping[str, Any]) -> str | None:
    """The file's name without its folders, or the dataset at its commit; None where nothing says.

    >>> place_of({"path": "data/mine/people.jsonl"}), place_of({"hub": "a/b", "revision": "v1", "commit": "c0de" * 10})
    ('people.jsonl', 'a/b at c0dec0dec0de')
    """
    if source.get("hub"):
        return f"{source['hub']} at {(source.get('commit') or source['revision'])[:COMMIT_SHOWN]}"
    return PurePath(source["path"]).name if source.get("path") else None
