"""Targets in groups: whether two judges order them alike, and what model families do together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.stats.ranks import kendall_rows, spearman_rows
from tasks.metrics.cells import CellMeasurer, Units
from tasks.metrics.comparison_rows import JudgePair, measure_rank_agreement
from tasks.metrics.observed import mean_over_units

TARGETS = ("ann", "ben", "cid", "dot")
SEEDS = 30


def measurer() -> CellMeasurer:
    """Thirty conversations of each of four targets, on the same seeds."""
    targets = np.repeat(np.array(TARGETS, dtype=object), SEEDS)
    seeds = np.tile(np.array([f"s{n}" for n in range(SEEDS)], dtype=object), len(TARGETS))
    pools = np.where(np.tile(np.arange(SEEDS), len(TARGETS)) < SEEDS // 2, "a", "b").astype(object)
    return CellMeasurer(Units({"target": targets, "pool": pools}, seeds, seeds), Bootstrap(200, 1))


def observed(levels: dict[str, float], noise: float, seed: int) -> list[object]:
    rng = np.random.default_rng(seed)
    values = np.repeat([levels[target] for target in TARGETS], SEEDS) + rng.normal(0, noise, len(TARGETS) * SEEDS)
    return [mean_over_units("satisfaction", values, void=np.zeros(len(values), bool))]


def ranked(one: dict[str, float], other: dict[str, float], noise: float = 0.01) -> dict[tuple[str, str], object]:
    pair = JudgePair("x", "y", observed(one, noise, 1), observed(other, noise, 2))  # type: ignore[arg-type]
    found = measure_rank_agreement(measurer(), [pair], ((), ("pool",)))
    return {(each.category, each.agreed.statistic): each.agreed for each in found}


ORDER = {"ann": 1.0, "ben": 2.0, "cid": 3.0, "dot": 4.0}
SWAPPED = {"ann": 1.0, "ben": 3.0, "cid": 2.0, "dot": 4.0}


def test_judges_that_order_alike_have_one_and_a_swap_costs() -> None:
    alike, swapped = ranked(ORDER, ORDER), ranked(ORDER, SWAPPED)
    whole = ("order of targets, satisfaction", "kendall")
    assert alike[whole].value == 1.0  # type: ignore[attr-defined]
    assert swapped[whole].value == pytest.approx(4 / 6)  # type: ignore[attr-defined]
    assert swapped["order of targets, satisfaction", "spearman"].value == pytest.approx(0.8)  # type: ignore[attr-defined]
    assert {key[0].rpartition(", ")[2] for key in alike} == {"satisfaction", "a", "b"}
    assert all(each.n == 4 for each in alike.values())  # type: ignore[attr-defined]


def test_an_order_that_rests_on_noise_has_a_wide_interval() -> None:
    level = dict.fromkeys(TARGETS, 2.0)
    agreed = ranked(level, level, noise=1.0)["order of targets, satisfaction", "kendall"]
    assert agreed.ci_high - agreed.ci_low > 0.8  # type: ignore[attr-defined]


def test_two_targets_have_no_order_to_agree_on() -> None:
    bench = measurer()
    two = bench.units.keys["target"] < "cid"
    units = Units({name: column[two] for name, column in bench.units.keys.items()}, *[bench.units.task_ids[two]] * 2)
    values = mean_over_units("satisfaction", np.arange(two.sum(), dtype=float), void=np.zeros(two.sum(), bool))
    pair = JudgePair("x", "y", [values], [values])
    assert not list(measure_rank_agreement(CellMeasurer(units, Bootstrap(50, 1)), [pair], ((),)))


@given(arrays.arrays(float, (2, 3, 7), elements=st.integers(0, 4).map(float)))
def test_correlations_by_row_are_those_of_scipy(both: np.ndarray) -> None:
    x, y = both
    for ours, theirs in ((spearman_rows, stats.spearmanr), (kendall_rows, stats.kendalltau)):
        for found, a, b in zip(ours(x, y), x, y, strict=True):
            if np.ptp(a) == 0 or np.ptp(b) == 0:
                assert np.isnan(found)
            else:
                assert found == pytest.approx(float(theirs(a, b).statistic))


def test_a_family_is_all_its_targets_together() -> None:
    bench = measurer()
    rows = list(
        bench.family_rows(
            "eyt",
            observed(ORDER, 0.0, 3),  # type: ignore[arg-type]
            ((), ("pool",)),
            {"ann": "f", "ben": "f", "cid": "g", "elsewhere": "h"},
        )
    )
    found = {(row.pool, row.slice): (row.value, row.n) for row in rows}
    assert found[None, '{"family":"f"}'] == (pytest.approx(1.5), 2 * SEEDS)
    assert found["a", '{"family":"g"}'] == (pytest.approx(3.0), SEEDS // 2)
    assert {row.slice for row in rows} == {'{"family":"f"}', '{"family":"g"}'} and all(
        row.target is None for row in rows
    )
