"""What a number rests on: a row of `metrics`, the units of its cell worked out anew, and the metric's other cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

import polars as pl

from tasks.foundation.run.context import members_with, select_rows
from tasks.foundation.settings.sections import JudgingSection, MetricsSection, SubsampleSection
from tasks.foundation.tables import TABLES
from tasks.metrics.catalogue import METRICS, Metric
from tasks.metrics.contributions import RANKINGS, Contribution, Rested, find_contributions
from tasks.metrics.demo_study import Read, Tried
from tasks.report.questions import Record
from tasks.viewer.reading import BadAsk, NotThere, Reading

KEY = TABLES["metrics"].key
PAGE_UNITS = 50

OF_A_TARGET = ("awareness_predictions", "awareness_scores", "interactions", "conversations")
"""Tables of which a cell needs the rows of its targets only."""


@dataclass(frozen=True, slots=True)
class CellPage:
    """`row`: the row of `metrics`; `about`: what the metric is. `units`: a page of those it rests on, worst first, of
    `total`; None where it rests on none. `agrees`: they come to the row's value and counts. `lacking`: why there are no
    units, or what is to be said of them. `others`: the same metric, cut otherwise."""

    row: Record
    about: Metric
    units: tuple[Contribution, ...] | None
    first: int
    total: int
    value: float | None
    panel: tuple[str, ...]
    agrees: bool
    lacking: str | None
    others: tuple[Record, ...]


def read_cell(reading: Reading, key: Mapping[str, str], page: int = 1) -> CellPage:
    """The cell with a key; parts that are not named are null: all of them together. The benchmark may be left out where
    one has the metric. BadAsk for a part that is none, NotThere for a cell that there is none of."""
    unknown = set(key) - set(KEY)
    if unknown or "metric" not in key:
        raise BadAsk(f"a cell is told by {', '.join(KEY)} (metric is needed); found {', '.join(key) or 'nothing'}")
    row = _find_cell(reading, key)
    found = _rest(reading, row)
    first = (page - 1) * PAGE_UNITS
    lacking = None
    if row["metric"].endswith(RANKINGS):
        lacking = "It rests on the order of the targets under two weights, not on units: on the scores listed below."
    elif found is None:
        lacking = "The rows that it was made from are not in the build any more: `colloquy status` says what to run."
    elif not found.says(row):
        lacking = (
            "The units that are there now come to another value or other counts than the row says: rows have changed "
            "since metrics ran, or the panel of judges is not the one that the build has settings of. `colloquy "
            "status` says whether metrics is behind."
        )
    return CellPage(
        row=row,
        about=METRICS[row["metric"]],
        units=None if found is None else tuple(found.units(first, PAGE_UNITS)),
        first=first + 1,
        total=0 if found is None else len(found),
        value=None if found is None else found.value,
        panel=() if found is None else found.panel,
        agrees=found is not None and found.says(row),
        lacking=lacking,
        others=tuple(_others(reading, row)),
    )


def _find_cell(reading: Reading, key: Mapping[str, str]) -> Record:
    columns = [name for name in KEY if name != "benchmark" or "benchmark" in key]
    tests = " and ".join(f"{name} is not distinct from ?" for name in columns)
    sql = f"select {', '.join(TABLES['metrics'].columns)} from metrics where {tests}"
    found = reading.rows(sql, [key.get(name) for name in columns])
    if len(found) == 1 and found[0]["metric"] in METRICS:
        return found[0]
    told = ", ".join(f"{name}={value}" for name, value in key.items())
    raise NotThere(f"metrics of build {reading.build!r} has no cell with {told[:300]}. {_nearest(reading, key)}")


def _nearest(reading: Reading, key: Mapping[str, str]) -> str:
    """What there is instead."""
    names = [record["metric"] for record in reading.rows("select distinct metric from metrics order by metric")]
    if not names:
        return f"It has no metrics yet: `colloquy run --build {reading.build} --only metrics` measures them"
    if key["metric"] not in names:
        near = get_close_matches(key["metric"], names, 5, 0.5)
        return f"{'The nearest' if near else 'Its metrics'}: {', '.join(near or names)}"
    targets = reading.rows(
        "select distinct target from metrics where metric = ? and target is not null order by target", [key["metric"]]
    )
    of = ", ".join(record["target"] for record in targets)
    return (
        f"It has {key['metric']} of {f'these targets: {of}' if of else 'no single target'}; every cell is a row of the "
        "table metrics, and what its key does not name is null there"
    )


def _others(reading: Reading, row: Record) -> Iterator[Record]:
    """The same metric of the same target, or of all where it has none, under every other cut; wholes first."""
    nulls = " + ".join(f"({name} is null)::integer" for name in KEY if name not in ("benchmark", "metric"))
    sql = (
        f"select {', '.join(TABLES['metrics'].columns)} from metrics where benchmark = ? and metric = ? "
        f"and (target is not distinct from ? or {_is_whole()}) order by {nulls} desc, {', '.join(KEY)} limit 200"
    )
    metric = row["metric"]
    for ending in RANKINGS:
        metric = f"{metric.removesuffix(ending)}_weighted" if metric.endswith(ending) else metric
    for other in reading.rows(sql, [row["benchmark"], metric, row["target"]]):
        if other != row:
            yield other


def _is_whole() -> str:
    return " and ".join(f"{name} is null" for name in KEY if name not in ("benchmark", "metric", "target"))


def _rest(reading: Reading, row: Record) -> Rested | None:
    panels, section = find_panels(reading), find_settings(reading)
    return find_contributions(row, _reader(reading, row), panels, section, _members(reading, row))


def _reader(reading: Reading, row: Record) -> Read:
    """Reads each table once, and of those with targets only what the cell can have."""

    @cache
    def whole(table: str) -> pl.DataFrame:
        if row["target"] is None:
            return reading.frame(table)
        if table in OF_A_TARGET:
            found = reading.frame(table, {"target": [row["target"]]})
            return reading.frame(table) if found.is_empty() else found  # how often it was tried, the others tell
        for column, owner in {"conversation_id": "conversations", "interaction_id": "interactions"}.items():
            if column in TABLES[table].columns and table != owner:
                return reading.frame(table, {column: whole(owner)[column].to_list()})
        return reading.frame(table)

    def read(table: str, where: pl.Expr | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        return select_rows(whole(table), where, columns)

    return read


def _members(reading: Reading, row: Record) -> Tried:
    """The targets that a table's stage has run for, of those that the cell is of."""

    def members(table: str) -> Sequence[str]:
        return [one for one in members_with(reading.commits, table) if row["target"] in (None, one)]

    return members


def find_panels(reading: Reading) -> list[list[str]]:
    """The panels of judges that the build has settings of, the newest first."""
    judging = [commit for commit in reading.commits.values() if commit.stage == "judging"]
    found: list[list[str]] = []
    for commit in sorted(judging, key=lambda commit: commit.ended_at, reverse=True):
        settings = commit.record.get("settings", {}).get("judging", {})
        sample = SubsampleSection.model_construct(**settings["subsample"]) if settings.get("subsample") else None
        panel = JudgingSection.model_construct(judges=settings.get("judges", []), subsample=sample).panel
        if panel and panel not in found:
            found.append(panel)
    everybody = sorted({commit.member for commit in judging if commit.member})
    return [*found, *([everybody] if everybody and everybody not in found else [])]


def find_settings(reading: Reading) -> MetricsSection:
    """What metrics ran with."""
    commit = reading.commits.get("metrics")
    values = commit.record.get("settings", {}).get("metrics", {}) if commit else {}
    usual = {"alpha": 0.1, "alpha_sweep": [], "panel_rule": "majority", "mattr_window": 50}
    return MetricsSection.model_construct(**{**usual, **values})
