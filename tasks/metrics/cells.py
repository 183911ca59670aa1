"""Which cells there are: for each breakdown, every combination of its columns' values that occurs.

Columns that a breakdown does not name are null in the row's key: all of them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tasks.foundation.ids import canonical_json
from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.tables.evaluation import Metric
from tasks.metrics.catalogue import METRICS
from tasks.metrics.observed import Measure, Observed, Sample, measure

Breakdown = tuple[str, ...]
Key = Mapping[str, str | None]


@dataclass(frozen=True)
class Units:
    """The units of a benchmark: their key columns (None: the unit has no such value), their clusters, and what each
    of them is a try at: two targets' units with the same `task_ids` are compared with one another. `condition_ids`:
    the conditions a unit was made under, where they may differ; a task is of one condition. `answered`: whether the
    target has given anything at all, right or wrong. `character_ids` [units, 2]: who takes part in its cluster (None:
    not known). Units with a key column `pool` are of several pools, which weigh alike."""

    keys: Mapping[str, np.ndarray]
    cluster_ids: np.ndarray
    task_ids: np.ndarray
    condition_ids: np.ndarray | None = None
    answered: np.ndarray | None = None
    character_ids: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.cluster_ids)

    @cached_property
    def clusters(self) -> np.ndarray:
        """Codes of the clusters [units], in the order of their ids: the same dialogues, the same codes."""
        codes: np.ndarray = np.unique(self.cluster_ids.astype(str), return_inverse=True)[1]
        return codes

    @cached_property
    def tasks(self) -> np.ndarray:
        """Codes of the tasks [units]."""
        codes: np.ndarray = np.unique(self.task_ids.astype(str), return_inverse=True)[1]
        return codes

    @cached_property
    def n_tasks(self) -> int:
        """How many tasks there are."""
        return int(self.tasks.max(initial=-1)) + 1

    @cached_property
    def pools(self) -> np.ndarray:
        """Codes of the pools [units]; all of one where there are none."""
        if "pool" not in self.keys:
            return np.zeros(len(self), dtype=int)
        codes: np.ndarray = np.unique(self.keys["pool"].astype(str), return_inverse=True)[1]
        return codes

    @cached_property
    def characters(self) -> np.ndarray | None:
        """Codes of the characters [units, 2], -1: not known; None: no two clusters are known to share one."""
        if self.character_ids is None or not len(self):
            return None
        known = self.character_ids.astype(bool)
        codes = np.unique(self.character_ids.astype(str), return_inverse=True)[1].reshape(known.shape)
        found = np.where(known, codes, -1)
        once = found[np.unique(self.clusters, return_index=True)[1]]
        shared = np.unique(once[once >= 0], return_counts=True)[1]
        return found if (shared > 1).any() else None

    def first_of(self, clusters: np.ndarray) -> np.ndarray:
        """The place of a unit of each cluster (codes)."""
        return np.unique(self.clusters, return_index=True)[1][clusters]

    def sample(self, places: np.ndarray) -> Sample:
        """Some units as a sample of dialogues."""
        characters = None if self.characters is None else self.characters[places]
        return Sample(self.clusters[places], self.pools[places], characters)

    def failed(self, members: Mapping[str, np.ndarray]) -> set[str]:
        """Those targets of `members` (places by target) that have given nothing at all."""
        if self.answered is None:
            return set()
        return {target for target, places in members.items() if not self.answered[places].any()}

    def conditions(self, places: np.ndarray) -> set[str]:
        """The conditions of some units."""
        return {""} if self.condition_ids is None else set(self.condition_ids[places])

    def values(self, column: str) -> list[str]:
        """The values of a key column that occur, sorted."""
        return sorted({value for value in self.keys[column] if value is not None})

    def where(self, key: Mapping[str, str]) -> np.ndarray:
        """Mask [units] of those with all the given key values."""
        mask = np.ones(len(self), dtype=bool)
        for column, value in key.items():
            mask &= self.keys[column] == value
        return mask

    def cells(self, breakdowns: Sequence[Breakdown]) -> Iterator[tuple[dict[str, str], np.ndarray]]:
        """Key and mask of every cell of the breakdowns, in order; combinations that do not occur are left out."""
        for breakdown in breakdowns:
            columns = [self.keys[column] for column in breakdown]
            rows = zip(*columns, strict=True) if columns else [()] * len(self)
            for combination in sorted({row for row in rows if None not in row}):
                key = dict(zip(breakdown, combination, strict=True))
                yield key, self.where(key)


@dataclass(frozen=True)
class CellMeasurer:
    """Cuts metrics into cells. A cell that holds the same units as another is computed once."""

    units: Units
    bootstrap: Bootstrap
    _known: dict[tuple[int, bytes], tuple[Observed, Measure]] = field(default_factory=dict)

    def measure(self, observed: Sequence[Observed], mask: np.ndarray) -> list[Measure]:
        """The metrics' values over the units of a mask."""
        cell = np.packbits(mask).tobytes()
        fresh = [each for each in observed if (id(each), cell) not in self._known]
        if fresh:
            places = np.nonzero(mask)[0]
            sample = self.units.sample(places)
            found = measure([each.only(places) for each in fresh], sample.clusters, self.bootstrap, sample)
            self._known.update(((id(each), cell), (each, one)) for each, one in zip(fresh, found, strict=True))
        return [self._known[id(each), cell][1] for each in observed]

    def rows(
        self, benchmark: str, observed: Sequence[Observed], breakdowns: Sequence[Breakdown], judge: str | None = None
    ) -> Iterator[Metric]:
        """One row a metric and cell."""
        for key, mask in self.units.cells(breakdowns):
            for each, found in zip(observed, self.measure(observed, mask), strict=True):
                yield make_metric_row(benchmark, {**key, "judge": judge}, each, found)

    def family_rows(
        self, benchmark: str, observed: Sequence[Observed], groups: Sequence[Breakdown], families: Mapping[str, str]
    ) -> Iterator[Metric]:
        """One row a metric, cell of the groups and model family: over all units of the family's targets together.
        `families`: family by target."""
        for key, mask in self.units.cells(groups):
            for family in sorted(set(families.values())):
                targets = [target for target, its in families.items() if its == family]
                of_family = mask & np.isin(self.units.keys["target"].astype(str), targets)
                if of_family.any():
                    for each, found in zip(observed, self.measure(observed, of_family), strict=True):
                        yield make_metric_row(benchmark, {**key, "family": family}, each, found)


def make_metric_row(benchmark: str, key: Key, observed: Observed, found: Measure) -> Metric:
    """What the key names beside the columns of `metrics` becomes part of the row's slice."""
    columns = {name: key.get(name) for name in KEY_COLUMNS}
    cut = observed.slice | {name: value for name, value in key.items() if name not in KEY_COLUMNS}
    return Metric.model_validate(
        {
            "benchmark": benchmark,
            **columns,
            "slice": canonical_json(cut) if cut else None,
            "metric": observed.metric,
            "value": found.value,
            "n": found.n,
            "n_unit": found.n_unit,
            "n_unscored": found.n_unscored,
            "n_fault": found.n_fault,
            "ci_low": found.ci_low,
            "ci_high": found.ci_high,
            "units": found.units,
            "units_void": found.units_void,
            "worst_low": found.worst_low,
            "worst_high": found.worst_high,
            "absent_judges": list(found.absent),
            "widened": found.widened,
            "unit": METRICS[observed.metric].unit,
        }
    )


KEY_COLUMNS = ("pool", "language", "target", "simulator", "judge", "partner", "goal_type")
