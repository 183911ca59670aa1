"""Two builds side by side: what their stages were made with, whose rows differ, and what that does to the metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import duckdb
import polars as pl

from tasks.foundation.settings.sections import MetricsSection
from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.store.commits import Commit
from tasks.foundation.tables import TABLES, Table
from tasks.foundation.tables.evaluation import Comparison
from tasks.metrics.comparison_rows import Comparer
from tasks.metrics.contributions import stored_trajectory
from tasks.metrics.demo_benchmark import DemoBench
from tasks.metrics.eyt_benchmark import EytBench
from tasks.metrics.eyt_metrics import compute_objective_metrics
from tasks.metrics.eyt_study import CONDITIONS

OF_ONE_RUN = ("created_at", "latency_seconds")
"""Columns that differ between any two runs."""
OF_TARGETS = ("interaction_id", "conversation_id")
"""Ids of what a target did: of the same name in both builds, and not the same thing."""
NOT_COMPARED = ("metrics", "comparisons", "ranks", "agreement", "user_likeness", "llm_calls", "replies")
"""Tables whose rows are numbers, or are told elsewhere."""


@dataclass(frozen=True, slots=True)
class StageDifference:
    """A run of a stage that differs: `only_in` names the build that alone has it; `components`: what it was made with
    that is not the same (settings, prompts, models, code …)."""

    run: str
    only_in: str | None
    components: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettingDifference:
    setting: str
    a: Any
    b: Any


@dataclass(frozen=True, slots=True)
class PromptDifference:
    """A kind of request whose prompt is not the same: the fingerprints of each build, none where it was not asked."""

    stage: str
    purpose: str
    a: tuple[str, ...]
    b: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowDifference:
    """Rows of a table by key: how many only one build has, how many differ in another column, which columns, and how
    many are the same."""

    table: str
    only_a: int
    only_b: int
    changed: int
    same: int
    columns: tuple[str, ...]


class Read(Protocol):
    def __call__(
        self, table: str, where: pl.Expr | None = None, columns: Sequence[str] | None = None, /
    ) -> pl.DataFrame: ...


def compare_stages(
    a: Mapping[str, Commit], b: Mapping[str, Commit], names: tuple[str, str]
) -> Iterator[StageDifference]:
    """The runs that are not the same in both, in the order of the chain."""
    for run in dict.fromkeys([*a, *b]):
        if run not in a or run not in b:
            yield StageDifference(run, names[run in b], ())
            continue
        one, other = a[run].components, b[run].components
        differing = tuple(name for name in dict.fromkeys([*one, *other]) if one.get(name) != other.get(name))
        if differing:
            yield StageDifference(run, None, differing)


def compare_settings(a: Mapping[str, Commit], b: Mapping[str, Commit]) -> Iterator[SettingDifference]:
    """Settings with which the builds' newest commits were made, where they are not the same."""
    one, other = (_settings(commits) for commits in (a, b))
    for name in sorted(one.keys() | other.keys()):
        if one.get(name) != other.get(name):
            yield SettingDifference(name, one.get(name), other.get(name))


def _settings(commits: Mapping[str, Commit]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for commit in sorted(commits.values(), key=lambda each: each.ended_at):
        for section, values in commit.record.get("settings", {}).items():
            found.update({f"{section}.{name}": value for name, value in values.items()})
    return found


def compare_prompts(connection: duckdb.DuckDBPyConnection, names: tuple[str, str]) -> Iterator[PromptDifference]:
    """The kinds of requests that were asked with other prompts (`llm_calls.prompt_fingerprint`)."""
    sql = """
        select
            stage,
            purpose,
            list_sort(list(distinct prompt_fingerprint) filter (build = $1)) as a,
            list_sort(list(distinct prompt_fingerprint) filter (build = $2)) as b
        from history.llm_calls
        where build in ($1, $2)
        group by all
        having a is distinct from b
        order by all
    """
    for stage, purpose, a, b in connection.execute(sql, list(names)).fetchall():
        yield PromptDifference(stage, purpose, tuple(a or ()), tuple(b or ()))


def compare_rows(connection: duckdb.DuckDBPyConnection, names: tuple[str, str]) -> Iterator[RowDifference]:
    """Each table of which not all rows are the same in both builds, by key."""
    for table in TABLES.values():
        if table.name not in NOT_COMPARED:
            found = _compare_table(connection, table, names)
            if found.only_a or found.only_b or found.changed:
                yield found


def _compare_table(connection: duckdb.DuckDBPyConnection, table: Table, names: tuple[str, str]) -> RowDifference:
    others = [name for name in table.columns if name not in table.key and name not in OF_ONE_RUN]
    same_key = " and ".join(f"a.{name} is not distinct from b.{name}" for name in table.key)
    differs = [f"count(*) filter (both_there and a.{name} is distinct from b.{name})" for name in others]
    changed = " or ".join(f"a.{name} is distinct from b.{name}" for name in others) or "false"
    sql = f"""
        with a as (select *, true as there from history.{table.name} where build = $1),
        b as (select *, true as there from history.{table.name} where build = $2),
        joined as (select a, b, a.there and b.there as both_there from a full join b on {same_key})
        select
            count(*) filter (b.there is null), count(*) filter (a.there is null),
            count(*) filter (both_there and ({changed})), count(*) filter (both_there and not ({changed}))
            {"".join(f", {each}" for each in differs)}
        from joined
    """
    found = connection.execute(sql, list(names)).fetchone()
    assert found is not None, "counts are always there"
    only_a, only_b, changed_, same, *by_column = found
    columns = tuple(name for name, count in zip(others, by_column, strict=True) if count)
    return RowDifference(table.name, only_a, only_b, changed_, same, columns)


def compare_metrics(
    read_a: Read,
    read_b: Read,
    names: tuple[str, str],
    panel: Sequence[str],
    settings: MetricsSection,
    bootstrap: Bootstrap,
) -> list[Comparison]:
    """Each target's metrics in build a less those in build b, paired over the items, episodes and seeds of both.

    Rows of kind `pairs`, whose targets are `target @ build`; metrics by judges are those of the `panel`.
    """
    both = _Both(read_a, read_b, names)
    found: list[Comparison] = []
    demo = DemoBench.of(both, panel, settings.primary.demo, bootstrap)
    if len(demo.study.units):
        comparer = Comparer("demo", demo.measurer, settings.primary.demo)
        pairs = both.pairs(demo.study.units.values("target"))
        found += comparer.compare_pairs("pairs", demo.scores(demo.panel), [()], pairs)
    eyt = EytBench.of(both, panel, settings, bootstrap)
    if len(eyt.study.units):
        trajectory = stored_trajectory(eyt.study, both("turn_drifts"))
        observed = [*compute_objective_metrics(eyt.study, trajectory), *eyt.judged(eyt.panel)]
        comparer = Comparer("eyt", eyt.measurer, settings.primary.eyt)
        pairs = both.pairs(eyt.study.units.values("target"))
        found += comparer.compare_pairs("pairs", observed, [()], pairs)
    return found


@dataclass(frozen=True, eq=False)
class _Both:
    """Reads a table of two builds as if it were one: a target of each is a target of its own, and what both have
    (items, episodes, seeds) is there once. Under which conditions a conversation was held makes no difference."""

    read_a: Read
    read_b: Read
    names: tuple[str, str]

    def __call__(self, table: str, where: pl.Expr | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        declared = TABLES[table]
        frames = [
            self._renamed(read(table, where, columns), build)
            for read, build in zip((self.read_a, self.read_b), self.names, strict=True)
        ]
        key = [name for name in declared.key if name in frames[0].columns]
        return pl.concat(frames).unique(key or None, keep="first", maintain_order=True)

    def pairs(self, targets: Sequence[str]) -> list[tuple[str, str]]:
        """The same target in either build, for those that both have."""
        there = {*targets}
        plain = sorted({each.rpartition(" @ ")[0] for each in targets})
        both = [(f"{target} @ {self.names[0]}", f"{target} @ {self.names[1]}") for target in plain]
        return [pair for pair in both if there >= {*pair}]

    @staticmethod
    def _renamed(frame: pl.DataFrame, build: str) -> pl.DataFrame:
        changes = [(pl.col("target") + f" @ {build}").alias("target")] if "target" in frame.columns else []
        changes += [(pl.lit(f"{build}:") + pl.col(name)).alias(name) for name in OF_TARGETS if name in frame.columns]
        changes += [pl.lit("any").alias(name) for name in (*CONDITIONS, "partner") if name in frame.columns]
        return frame.with_columns(changes)
