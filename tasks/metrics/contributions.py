"""From a row of `metrics` back to what it rests on: every unit of its cell, with what it adds.

The cell is worked out again by the code that made it, from the rows that are there now; no interval is. Drifts are
taken from `turn_drifts`, so no text is encoded. A unit is a conversation (EYT-Bench), or a prediction or interaction
(DEMO); those that a fault took stand with the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tasks.foundation.settings.sections import MetricsSection
from tasks.foundation.stats.bootstrap import Bootstrap, Design, Part
from tasks.foundation.stats.sums import quotient
from tasks.metrics.catalogue import METRICS
from tasks.metrics.cells import KEY_COLUMNS, Units
from tasks.metrics.demo_benchmark import DemoBench
from tasks.metrics.demo_study import Read, Tried
from tasks.metrics.eyt_benchmark import EytBench
from tasks.metrics.eyt_metrics import (
    Trajectory,
    compute_objective_metrics,
    compute_simulator_metrics,
    compute_sliced_metrics,
    compute_sweep_metrics,
)
from tasks.metrics.eyt_study import Study
from tasks.metrics.observed import Observed

_UNUSED = Bootstrap(1, 0)

RANKINGS = ("_rank_tau", "_rank_flips")
"""How the metrics end that rest on scores of targets, not on units."""

EYT_UNIT = ("conversation_id", "chat_seed_id", "pool", "language", "target", "simulator", "sample", "fault")
DEMO_UNIT = (
    *("item_id", "task", "interaction_id", "episode_id", "dialogue_id", "goal_type", "language", "target", "partner"),
    *("sample", "fault"),
)


@dataclass(frozen=True, slots=True)
class Contribution:
    """One unit of a cell. `unit` are the columns that say which, None where it has none; `value` is the metric of it
    alone, `pull` how much the cell's value would be lower without it (0 where it would be none); None where there is
    nothing to compute them from. `n`, `n_unscored` and `n_fault` count the metric's n_unit."""

    unit: Mapping[str, Any]
    value: float | None
    pull: float | None
    n: int
    n_unscored: int
    n_fault: int


@dataclass(frozen=True, eq=False)
class Rested:
    """What a cell rests on: its value, worked out anew, with its counts, and its units, the worst first. `panel` are
    the judges whose scores count, where it is judged."""

    value: float | None
    n: int
    n_unscored: int
    n_fault: int
    panel: tuple[str, ...]
    _observed: Observed
    _pulls: np.ndarray
    _described: pl.DataFrame
    _order: np.ndarray

    def __len__(self) -> int:
        return len(self._order)

    def units(self, first: int = 0, most: int | None = None) -> list[Contribution]:
        """Those at some places of the order: worst value first; without a better end, the one that pulls most; what is
        unscored or void last."""
        chosen = self._order[first : None if most is None else first + most]
        own, pull = _alone(self._observed)[chosen], self._pulls[chosen]
        counts = (self._observed.n, self._observed.unscored, self._observed.fault)
        return [
            Contribution(
                unit,
                _or_none(own[place]),
                _or_none(pull[place]) if self._observed.n[at] else None,
                *(int(count[at]) for count in counts),
            )
            for place, (at, unit) in enumerate(zip(chosen, self._described[chosen].to_dicts(), strict=True))
        ]

    def says(self, row: Mapping[str, Any]) -> bool:
        """Whether it comes to what a row of `metrics` says."""
        same_n = (self.n, self.n_unscored, self.n_fault) == (row["n"], row["n_unscored"], row["n_fault"])
        if self.value is None or row["value"] is None:
            return same_n and self.value == row["value"]
        return same_n and bool(np.isclose(self.value, row["value"], rtol=1e-9, atol=1e-9))


def find_contributions(
    row: Mapping[str, Any],
    read: Read,
    panels: Sequence[Sequence[str]],
    settings: MetricsSection,
    tried: Tried = lambda table: (),
) -> Rested | None:
    """What a row of `metrics` rests on. None for a metric that rests on rankings, and for one that the rows that are
    there have no cell of.

    `panels`: the panels of judges that the row may be of; the first that comes to what it says counts, else the first.
    `tried`: the targets that a table's stage has run for.
    """
    if row["metric"].endswith(RANKINGS):
        return None
    first = None
    for panel in panels or [()]:
        found = _with_panel(row, read, panel, settings, tried)
        if found is not None and found.says(row):
            return found
        first = first or found
    return first


def _with_panel(
    row: Mapping[str, Any], read: Read, panel: Sequence[str], settings: MetricsSection, tried: Tried
) -> Rested | None:
    cut = json.loads(row["slice"]) if row["slice"] else {}
    targets = _targets_of(cut.pop("family", None), read)
    judges = [row["judge"]] if row["judge"] else list(panel)
    if row["benchmark"] == "demo":
        demo = DemoBench.of(read, judges, (), _UNUSED, tried)
        units, described, observed = demo.study.units, _describe_demo(demo), _demo_metrics(demo)
    else:
        eyt = EytBench.of(read, judges, settings, _UNUSED, tried("conversations"))
        units, described = eyt.study.units, eyt.study.conversations.select(EYT_UNIT)
        observed = _eyt_metrics(eyt, read("turn_drifts"), cut, row["metric"])
    alike = [each for each in observed if each.metric == row["metric"] and each.slice == cut]
    return _rest(alike[0], units, described, row, targets, tuple(judges)) if alike else None


def _targets_of(family: str | None, read: Read) -> list[str] | None:
    """The targets of a model family; None where the cell is of no family."""
    return None if family is None else read("models").filter(pl.col("family") == family)["alias"].to_list()


def _demo_metrics(demo: DemoBench) -> list[Observed]:
    if not len(demo.study.units):
        return []
    return [*demo.scores(demo.panel), *demo.faults()]


def _describe_demo(demo: DemoBench) -> pl.DataFrame:
    both = pl.concat([demo.study.predictions, demo.study.interactions], how="diagonal")
    lost = pl.when(pl.col("void") & pl.col("fault").is_null()).then(pl.lit("infra")).otherwise(pl.col("fault"))
    return both.with_columns(lost.alias("fault")).select(DEMO_UNIT)


def _eyt_metrics(eyt: EytBench, drifts: pl.DataFrame, cut: Mapping[str, Any], metric: str) -> list[Observed]:
    """The metrics that a cell with this cut is one of."""
    study = eyt.study
    if not len(study.units):
        return []
    if "alpha" in cut:
        return compute_sweep_metrics(study, eyt.panel_turns, eyt.settings.panel_rule, [cut["alpha"]])
    if metric.startswith("simulator_"):
        return compute_simulator_metrics(study, eyt.settings.mattr_window)
    trajectory = stored_trajectory(study, drifts)
    if cut:
        return list(compute_sliced_metrics(study, trajectory, eyt.panel_turns, eyt.settings.panel_rule))
    return [*compute_objective_metrics(study, trajectory), *eyt.judged(eyt.panel)]


def stored_trajectory(study: Study, drifts: pl.DataFrame) -> Trajectory:
    """The trajectory that rows of `turn_drifts` hold; NaN for turns that have none."""
    key = ["conversation_id", "turn_index"]
    rows = study.turns.select(key).join(drifts, on=key, how="left", maintain_order="left")

    def column(name: str) -> np.ndarray:
        return rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy()

    return Trajectory(
        {kind: column(f"drift_{kind}") for kind in ("latent", "explicit", "pair")}, column("final_intent_cosine")
    )


def _rest(
    observed: Observed,
    units: Units,
    described: pl.DataFrame,
    row: Mapping[str, Any],
    targets: Sequence[str] | None,
    panel: tuple[str, ...],
) -> Rested | None:
    key = {name: row[name] for name in KEY_COLUMNS if name != "judge" and row[name] is not None}
    if not set(key) <= set(units.keys):
        return None
    mask = units.where(key)
    if targets is not None:
        mask &= np.isin(units.keys["target"].astype(str), targets)
    if not mask.any():
        return None
    cell, part, design = _lay_out(observed, units, np.nonzero(mask)[0])
    there, pulls = cell.there, part.effects(design)
    listed = cell.only(there)
    return Rested(
        value=_or_none(part.value(design)),
        n=int(cell.n.sum()),
        n_unscored=int(cell.unscored.sum()),
        n_fault=int(cell.fault.sum()),
        panel=panel,
        _observed=listed,
        _pulls=pulls[there],
        _described=described.filter(mask).filter(there),
        _order=_order(listed, pulls[there]),
    )


def _lay_out(observed: Observed, units: Units, places: np.ndarray) -> tuple[Observed, Part, Design]:
    """The units at some places as what is summed up, each by itself, and the pools that they are of. As in
    `observed.measure`: a value is the mean of the pools' own, a slice only of those that have it."""
    cell = observed.only(places)
    pools = np.unique(units.sample(places).pools, return_inverse=True)[1].ravel()
    chosen = np.unique(pools[cell.n > 0]).tolist() if cell.slice else None
    return cell, Part(cell.columns, cell.formula, chosen), Design(pools)


def _alone(observed: Observed) -> np.ndarray:
    """The metric of each unit by itself [units]; of a unit that has one part of an overall score only, the mean of its
    numbers."""
    own = np.atleast_1d(observed.formula(observed.columns)).astype(float)
    if observed.metric.startswith("overall_"):
        sums, counts = observed.columns[:, ::2].sum(axis=1), observed.columns[:, 1::2].sum(axis=1)
        own = quotient(sums, counts)
    return np.where(observed.n > 0, own, np.nan)


def _order(observed: Observed, pulls: np.ndarray) -> np.ndarray:
    own, better = _alone(observed), METRICS[observed.metric].better
    rank = {"high": own, "low": -own, None: -np.abs(pulls)}[better]
    rank = np.where(np.isnan(own) | np.isnan(rank), np.inf, rank)
    last = np.where(observed.n > 0, 0, np.where(observed.unscored > 0, 1, 2))
    return np.lexsort((np.arange(len(rank)), rank, last))


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
