"""`colloquy diff`: what is different between two builds, from their settings to their metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any, Literal

import polars as pl
import typer
from rich.table import Table as Grid

from flows.cli.console import make_table, terminal
from tasks.foundation.errors import StoreError
from tasks.foundation.ids import seed_of
from tasks.foundation.run.context import makers, read_rows
from tasks.foundation.settings import Settings, load_settings
from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.store.commits import Commit, builds, commits_of
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import explain_reading_errors, open_views
from tasks.foundation.tables import TABLES
from tasks.foundation.tables.evaluation import Comparison
from tasks.metrics.catalogue import METRICS
from tasks.report import differences, numbers

LONGEST = 60
"""Characters of a setting's value on the screen."""


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that is different between two builds."""

    stages: list[differences.StageDifference]
    settings: list[differences.SettingDifference]
    prompts: list[differences.PromptDifference]
    rows: list[differences.RowDifference]
    metrics: list[Comparison]


def diff(
    a: Annotated[str, typer.Argument(metavar="BUILD_A", help="The first build.")],
    b: Annotated[str, typer.Argument(metavar="BUILD_B", help="The second.")],
    form: Annotated[Literal["table", "json"], typer.Option("--format", help="How it is written.")] = "table",
    metrics: Annotated[bool, typer.Option(help="Also the metrics, paired over what both builds have.")] = True,
) -> None:
    """Show what is different between two builds: what their stages were made with, settings, prompts, rows, metrics.

    Metrics are those of BUILD_A less those of BUILD_B, of the targets that both have, over the same items, episodes and
    seeds, with 95 % intervals.
    """
    layout = Layout.default()
    there = builds(layout)
    for name in (a, b):
        if name not in there:
            known = ", ".join(there) or "none is there yet"
            raise StoreError(f"build {name!r} does not exist; expected one of: {known}")
    found = find_differences(layout, (a, b), with_metrics=metrics)
    if form == "json":
        typer.echo(json.dumps(_plain(found), ensure_ascii=False, indent=1, default=str))
        return
    screen = terminal()
    for grid in _grids(found, (a, b)):
        screen.print(grid)


def find_differences(layout: Layout, names: tuple[str, str], *, with_metrics: bool) -> Found:
    """Reads both builds; metrics are computed by the settings of the first one's newest commit."""
    a, b = (commits_of(layout, name) for name in names)
    with open_views(layout) as connection, explain_reading_errors():
        prompts = list(differences.compare_prompts(connection, names))
        rows = list(differences.compare_rows(connection, names))
    found: list[Comparison] = []
    if with_metrics:
        settings = _settings_of(a)
        read_a, read_b = (partial(_read, layout, commits) for commits in (a, b))
        bootstrap = Bootstrap(settings.metrics.resamples, seed_of(settings.run.seed, "metrics"))
        panel = settings.judging.panel
        found = differences.compare_metrics(read_a, read_b, names, panel, settings.metrics, bootstrap)
    return Found(
        list(differences.compare_stages(a, b, names)),
        list(differences.compare_settings(a, b)),
        prompts,
        rows,
        [one for one in found if one.difference is not None],
    )


def _read(
    layout: Layout, commits: Mapping[str, Commit], table: str, where: pl.Expr | None = None, columns: Any = None
) -> pl.DataFrame:
    paths = [part.path for commit in makers(commits, table) for part in commit.tables[table]]
    return read_rows(layout, TABLES[table], paths, where, columns)


def _settings_of(commits: Mapping[str, Commit]) -> Settings:
    """The settings with which a build's metrics are computed, as its commits have them."""
    newest = max(commits.values(), key=lambda commit: commit.ended_at)
    return load_settings(newest.record.get("profile"), newest.record.get("overrides", ()))


def _grids(found: Found, names: tuple[str, str]) -> Iterator[Grid | str]:
    a, b = names
    stages = make_table("run", "what differs", title=f"Stages of {a} and {b}")
    for one in found.stages:
        stages.add_row(one.run, f"only in {one.only_in}" if one.only_in else ", ".join(one.components))
    yield stages if found.stages else "The stages were made with the same."
    settings = make_table("setting", a, b, title="Settings")
    for setting in found.settings:
        settings.add_row(setting.setting, *(_short(value) for value in (setting.a, setting.b)))
    yield settings if found.settings else "The settings are the same."
    prompts = make_table("stage", "request", a, b, title="Prompts, by their fingerprints")
    for each in found.prompts:
        told = (", ".join(print_[:12] for print_ in of) or "not asked" for of in (each.a, each.b))
        prompts.add_row(each.stage, each.purpose, *told)
    yield prompts if found.prompts else "The prompts are the same."
    rows = make_table(
        "table", f"only {a}", f"only {b}", "changed", "same", "columns that changed", title="Rows, by key"
    )
    for of in found.rows:
        counts = (numbers.count(n) for n in (of.only_a, of.only_b, of.changed, of.same))
        rows.add_row(of.table, *counts, ", ".join(of.columns))
    yield rows if found.rows else "The rows are the same."
    moved = [one for one in found.metrics if one.difference]
    if moved:
        yield _grid_of_metrics(moved, names)
    if found.metrics:
        yield f"{numbers.plural(len(found.metrics) - len(moved), 'metric')} of {len(found.metrics)} came out the same."
    else:
        yield "No target has done the same items, episodes or seeds in both: no metrics can be paired."


def _grid_of_metrics(found: list[Comparison], names: tuple[str, str]) -> Grid:
    title = f"Metrics: {names[0]} less {names[1]}, on what both have"
    right = ("difference", "95 % interval", "p (Holm)", "n")
    grid = make_table("benchmark", "target", "metric", *right, right=right, title=title)
    for one in found:
        unit = METRICS[one.metric].unit
        grid.add_row(
            one.benchmark,
            one.target_a.rpartition(" @ ")[0],
            one.metric,
            numbers.number(one.difference, unit),
            numbers.interval(one.ci_low, one.ci_high, unit),
            numbers.p_value(one.p_holm),
            numbers.count(one.n),
        )
    return grid


def _short(value: Any) -> str:
    text = "–" if value is None else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _plain(found: Found) -> dict[str, Any]:
    plain = {name: [asdict(one) for one in getattr(found, name)] for name in ("stages", "settings", "prompts", "rows")}
    return plain | {"metrics": [one.model_dump() for one in found.metrics]}
