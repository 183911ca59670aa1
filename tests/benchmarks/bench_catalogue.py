"""What a commit and an opening of the views cost, by how many builds there are.

    COLLOQUY_BENCH_BUILDS=100 python -m pytest -s -q tests/benchmarks/bench_catalogue.py -o python_files='bench_*.py'

Every build has twelve stages, each with 256 parts of a table of its own and of the three that every stage writes. The
parts are hard links of a few real ones, so the tree is made in minutes and takes no space.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tasks.foundation.store.commits import Commit, write_commit
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.parts import PartFile, write_part
from tasks.foundation.store.views import open_views, rebuild_views, shown_build
from tasks.foundation.tables import EVERY_STAGE, TABLES
from tests.unit.bare_commits import bare_commit

BUILDS = int(os.environ.get("COLLOQUY_BENCH_BUILDS", "10"))
PARTS = 256
LINKS = 60_000
"""A file of ext4 has at most 65,000 names."""

MADE = {
    "personas": "persona_candidates",
    "scenes": "scenes",
    "conflicts": "conflicts",
    "dialogues": "dialogues",
    "voting": "votes",
    "curation": "awareness_items",
    "chatseeds": "chat_seeds",
    "awareness": "awareness_predictions",
    "interaction": "interactions",
    "conversation": "conversations",
    "judging": "turn_judgements",
    "metrics": "metrics",
}
"""Stages, each with the table of its own."""


class Tree:
    """An artifacts folder with as many builds as are asked for."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._names = {table: self._originals(table) for table in {*MADE.values(), *EVERY_STAGE}}

    def _originals(self, table: str) -> Iterator[Path]:
        for number in itertools.count():
            path = self.layout.root / "originals" / f"{table}-{number}.parquet"
            write_part(self.layout, path, TABLES[table], TABLES[table].schema.empty_table(), {})
            yield from itertools.repeat(path, LINKS)

    def commit(self, build: str, stage: str, day: int) -> Commit:
        """The commit of a stage, with its files in their places."""
        tables = {table: self._parts(build, table, stage) for table in (MADE[stage], *EVERY_STAGE)}
        return bare_commit(
            build,
            stage,
            tables=tables,
            fingerprint=stage,
            ends_chain=stage == "metrics",
            ended_at=f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}T12:00:00+00:00",
            columns={table: TABLES[table].shape for table in tables},
        )

    def _parts(self, build: str, table: str, stage: str) -> tuple[PartFile, ...]:
        places = [self.layout.part(table, build, stage, f"{number:05d}", 0) for number in range(PARTS)]
        places[0].parent.mkdir(parents=True)
        for place in places:
            os.link(next(self._names[table]), place)
        return tuple(PartFile(self.layout.relative(place), 0, "0" * 64, place.stem[5:]) for place in places)


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def ask(layout: Layout, query: str) -> None:
    with open_views(layout) as connection:
        connection.execute(query).fetchall()


def test_a_commit_and_an_opening_cost_the_same_however_many_builds_there_are(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "artifacts")
    tree = Tree(layout)
    for day in range(BUILDS):
        for stage in MADE:
            commit = tree.commit(f"build-{day}", stage, day)
            path = layout.commit(commit.build, commit.run)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(commit.to_json(), indent=1), encoding="utf-8")
    anew = seconds(lambda: rebuild_views(layout))

    def committed(stage: str) -> float:
        write_commit(layout, tree.commit("another", stage, 300))
        return seconds(lambda: rebuild_views(layout))

    commits = [committed(stage) for stage in MADE]
    opened = min(seconds(lambda: ask(layout, "select 1")) for _ in range(3))
    figures = {
        "all views anew (after a move, or deleted)": anew,
        "a commit's views, the longest of twelve": max(commits),
        "opened": opened,
        "the build that is shown, asked": seconds(lambda: shown_build(layout)),
        "select count(*) from votes": seconds(lambda: ask(layout, "select count(*) from votes")),
        "the same of one build of history": seconds(
            lambda: ask(layout, "select count(*) from history.votes where build = 'build-0'")
        ),
        "the same of all": seconds(lambda: ask(layout, "select count(*) from history.votes")),
    }
    print(f"\n{BUILDS} builds × {len(MADE)} stages × {PARTS} parts of {1 + len(EVERY_STAGE)} tables")
    for what, took in figures.items():
        print(f"{what:<45}{took:>8.2f} s")
    print(f"{'peak memory':<45}{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:>8.2f} GiB")
    print(f"{'colloquy.duckdb':<45}{layout.database.stat().st_size / 1e6:>8.1f} MB")
    assert shown_build(layout) == "another"
    if os.environ.get("COLLOQUY_BENCH_GOAL"):
        assert max(commits) <= 1 and opened <= 1


if __name__ == "__main__":
    pytest.main([__file__, "-s", "-q", "-o", "python_files=bench_*.py"])
