"""Which builds there are; and of one build its stages with their accounting, its boards, and what it holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import duckdb

from tasks.foundation.store.commits import behind
from tasks.foundation.tables.operations import BUILDS, STAGE_RUNS
from tasks.report.blocks import BoardBlock
from tasks.report.boards import DEMO_COLUMNS, EYT_COLUMNS, draw_board, read_board
from tasks.report.questions import Record, rows
from tasks.viewer.reading import Reading
from tasks.viewer.tables import count_tables

ALL = "all"


@dataclass(frozen=True, slots=True)
class StageLine:
    """A committed run of a stage. `filtered` and `failed`: rows by reason; `behind`: tables it was made from that have
    changed since."""

    run: Record
    filtered: Mapping[str, int]
    failed: Mapping[str, int]
    behind: tuple[str, ...]
    tables: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Board:
    """A leaderboard of one benchmark, pool and language, whose numbers are cells."""

    benchmark: str
    pool: str | None
    language: str | None
    board: BoardBlock


@dataclass(frozen=True, slots=True)
class BuildPage:
    build: Record
    stages: tuple[StageLine, ...]
    boards: tuple[Board, ...]
    tables: tuple[tuple[str, str, int], ...]
    """Name, grain, rows."""
    rejects: tuple[Record, ...]


def read_builds(connection: duckdb.DuckDBPyConnection) -> list[Record]:
    """Every build, the newest first."""
    order = "last_commit_at desc nulls last, build"
    return rows(connection, f"select {', '.join(BUILDS.columns)} from builds order by {order}")


def read_build(reading: Reading) -> BuildPage:
    """What there is of the build."""
    found = reading.one(f"select {', '.join(BUILDS.columns)} from builds where build = ?", [reading.build])
    assert found is not None, "a build that can be opened has a row"
    return BuildPage(
        build=found,
        stages=tuple(_stages(reading)),
        boards=tuple(_boards(reading)),
        tables=tuple((table.name, table.grain, n) for table, n in count_tables(reading)),
        rejects=tuple(reading.ask("losses").records),
    )


def _stages(reading: Reading) -> Iterator[StageLine]:
    late = behind(reading.commits)
    runs = reading.rows(f"select {', '.join(STAGE_RUNS.columns)} from stage_runs order by ended_at")
    by_run = {(commit.stage, commit.member): commit for commit in reading.commits.values()}
    for run in runs:
        commit = by_run.get((run["stage"], run["member"]))
        yield StageLine(
            run,
            json.loads(run["filtered_by"] or "{}"),
            json.loads(run["failed_by"] or "{}"),
            tuple(late.get(commit.run, ())) if commit else (),
            {table: commit.rows(table) for table in commit.tables} if commit else {},
        )


def _boards(reading: Reading) -> Iterator[Board]:
    """DEMO and EYT-Bench over everything, then by language and by pool."""
    demo, eyt = reading.ask("demo_leaderboard"), reading.ask("eyt_leaderboard")
    languages = sorted(demo.values("language"), key=lambda each: (each != ALL, each))
    for language in languages if len(languages) > 2 else languages[:1]:  # of one language alone, all is the same
        if (board := read_board(demo.where(language=language), DEMO_COLUMNS)) is not None:
            yield Board("demo", None, _or_all(language), draw_board(board, _caption("DEMO", None, language)))
    pools = sorted(eyt.values("pool"), key=lambda each: (each != ALL, each))
    for pool in pools if len(pools) > 2 else pools[:1]:
        if (board := read_board(eyt.where(pool=pool, language=ALL), EYT_COLUMNS)) is not None:
            drawn = draw_board(board, _caption("EYT-Bench", pool, ALL), folded=pool != ALL)
            yield Board("eyt", _or_all(pool), None, drawn)


def _caption(name: str, pool: str | None, language: str) -> str:
    cuts = [*([f"pool {pool}"] if pool not in (None, ALL) else []), *([language] if language != ALL else [])]
    return f"{name}{''.join(f', {cut}' for cut in cuts)}."


def _or_all(value: str) -> str | None:
    return None if value == ALL else value
