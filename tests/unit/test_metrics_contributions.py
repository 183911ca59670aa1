"""What a cell rests on: for every row of metrics the units that come to its value, whatever the metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
import pytest

from tasks.foundation.tables import TABLES
from tasks.metrics.catalogue import METRICS
from tasks.metrics.contributions import Rested, find_contributions
from tasks.metrics.task import prepare
from tests.unit import test_metrics_demo as demo
from tests.unit import test_metrics_study as eyt
from tests.unit.metrics_study import Context, Rows

MADE = ("metrics", "turn_drifts", "models")


class Measured:
    """Rows as metrics has measured them."""

    def __init__(self, rows: Rows, *settings: str, encoder: Any = None) -> None:
        given = Context(rows, *settings, encoder=encoder)
        made = prepare(given).rows
        plain = {name: [row.model_dump() for row in made[name]] for name in MADE}  # type: ignore[attr-defined]
        self.metrics, self.section = plain["metrics"], given.settings.metrics
        self.panel = given.settings.judging.panel
        self.read: Callable[..., pl.DataFrame] = Context({**rows, **plain}).read

    def cell(self, metric: str, **key: Any) -> Mapping[str, Any]:
        columns = dict.fromkeys(set(TABLES["metrics"].key) - {"benchmark", "metric"}) | key
        (row,) = [
            row
            for row in self.metrics
            if row["metric"] == metric and all(row[name] == value for name, value in columns.items())
        ]
        return row

    def rest(self, row: Mapping[str, Any], panels: Sequence[Sequence[str]] | None = None) -> Rested | None:
        return find_contributions(row, self.read, panels or [self.panel], self.section)


@pytest.fixture(scope="module")
def measured() -> dict[str, Measured]:
    return {
        "demo": Measured(demo.planted(), f"judging.judges=[{demo.A},{demo.B}]"),
        "eyt": Measured(eyt.planted(), *eyt.SETTINGS, encoder=eyt.Encoder()),
    }


@pytest.mark.parametrize("benchmark", ["demo", "eyt"])
def test_every_row_of_metrics_is_what_its_units_come_to(measured: dict[str, Measured], benchmark: str) -> None:
    found = measured[benchmark]
    for row in found.metrics[::3]:
        rested = found.rest(row)
        if row["metric"].endswith(("_rank_tau", "_rank_flips")):
            assert rested is None
            continue
        assert rested is not None and rested.says(row), row
        units = rested.units()
        assert sum(unit.n for unit in units) == row["n"]
        assert sum(unit.n_unscored for unit in units) == row["n_unscored"]
        assert sum(unit.n_fault for unit in units) == row["n_fault"]


def test_the_units_of_a_mean_come_to_it_and_pull_it_to_their_side(measured: dict[str, Measured]) -> None:
    row = measured["eyt"].cell("satisfaction", target="ann")
    rested = measured["eyt"].rest(row)
    assert rested is not None
    counted = [unit for unit in rested.units() if unit.n]
    values = [unit.value for unit in counted if unit.value is not None]
    assert sum(values) / len(values) == pytest.approx(row["value"])
    for unit in counted:
        assert unit.value is not None and unit.pull is not None
        assert (unit.pull > 0) == (unit.value > row["value"]) or unit.value == pytest.approx(row["value"])


def test_the_worst_come_first_whichever_end_is_better(measured: dict[str, Measured]) -> None:
    for metric in ("satisfaction", "drift_latent"):
        rested = measured["eyt"].rest(measured["eyt"].cell(metric, target="bob"))
        assert rested is not None
        values = [unit.value for unit in rested.units() if unit.n and unit.value is not None]
        assert len(values) > 1
        assert values == sorted(values, reverse=METRICS[metric].better == "low")
        assert [unit.n > 0 for unit in rested.units()] == sorted((unit.n > 0 for unit in rested.units()), reverse=True)


def test_a_page_of_units_is_the_same_as_that_place_of_all(measured: dict[str, Measured]) -> None:
    rested = measured["demo"].rest(
        measured["demo"].cell("overall_pooled", target=measured["demo"].metrics[0]["target"])
    )
    assert rested is not None and len(rested) > 3
    assert rested.units(1, 2) == rested.units()[1:3]
    assert all(unit.value is not None for unit in rested.units() if unit.n)


def test_the_panel_that_comes_to_the_value_is_found(measured: dict[str, Measured]) -> None:
    found = measured["demo"]
    row = found.cell("awareness", target=found.metrics[0]["target"])
    rested = found.rest(row, [[demo.A], [demo.A, demo.B], [demo.B]])
    assert rested is not None and rested.panel == (demo.A, demo.B) and rested.says(row)


def test_rows_that_are_gone_leave_a_cell_that_says_so_or_none(measured: dict[str, Measured]) -> None:
    found = measured["eyt"]
    row = dict(found.cell("satisfaction", target="ann"))
    assert found.rest({**row, "target": "nobody"}) is None
    changed = found.rest({**row, "value": row["value"] + 1})
    assert changed is not None and not changed.says({**row, "value": row["value"] + 1})
    assert find_contributions(row, Context({}).read, [["a"]], found.section) is None
