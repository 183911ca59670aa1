"""Does the ranking depend on the warm-up weight? (EYT-Bench section 4.8, Table 8)

The paper says that no rank flips; its own Table 8 holds five. So nothing is claimed here: τ and every strict
flip are reported for each two weights of the sweep.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from tasks.foundation.stats.ranks import kendall_tau, rank_flips


@dataclass(frozen=True, slots=True)
class RankChange:
    """Rankings under two weights. `flips`: pairs of targets, the one ahead under the smaller weight first."""

    alphas: tuple[float, float]
    tau: float | None
    flips: tuple[tuple[str, str], ...]


def compare_ranks(values: Mapping[float, Mapping[str, float]]) -> list[RankChange]:
    """Every two weights of a sweep compared; `values` are scores by weight and target. τ is None for fewer than
    two targets and where a ranking is all ties."""
    return [
        RankChange((low, high), kendall_tau(values[low], values[high]), tuple(rank_flips(values[low], values[high])))
        for low, high in combinations(sorted(values), 2)
    ]
