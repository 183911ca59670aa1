"""Pools checked by brute force, on rows as `prepare` of the personas stage hands them over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tasks.foundation.texts.encoder import Encoder

BATCHES_APART = 1e-5
"""How far cosines of stored vectors may be from those that decided."""


def check_pools(rows: Mapping[str, Sequence[Any]], encoder: Encoder, size: int, threshold: float) -> dict[str, int]:
    """AssertionError unless every pool has `size` personas (or all there are), no two kept ones are near each other,
    and every stratum has its share of the kept ones, rounded. Returns the number of near-duplicates by pool."""
    dropped = {row.row_id for row in rows["duplicates"] if row.table_name == "persona_candidates"}
    found = {}
    for pool in sorted({row.pool for row in rows["persona_candidates"]}):
        candidates = [row for row in rows["persona_candidates"] if row.pool == pool]
        kept = [row for row in candidates if row.persona_id not in dropped]
        drawn = [row for row in rows["persona_pool"] if row.pool == pool]
        total = min(size, len(kept))
        assert sorted(row.rank for row in drawn) == list(range(total)), f"pool {pool} has {len(drawn)} personas"
        assert {row.persona_id for row in drawn} <= {row.persona_id for row in kept}
        highest = highest_cosine(encoder.encode([row.description for row in kept]))
        assert highest < threshold + BATCHES_APART, f"two kept personas of pool {pool} have the cosine {highest}"
        check_quotas(Counter(row.stratum for row in kept), drawn, total)
        found[pool] = len(candidates) - len(kept)
    return found


def highest_cosine(vectors: np.ndarray, block: int = 1024) -> float:
    """Of any two of the vectors, each with each."""
    highest = -1.0
    for start in range(0, len(vectors), block):
        cosines = vectors[start : start + block].astype(np.float64) @ vectors.T
        cosines[np.arange(len(cosines)), np.arange(start, start + len(cosines))] = -1
        highest = max(highest, float(cosines.max()))
    return highest


def check_quotas(sizes: Counter[str], drawn: Sequence[Any], total: int) -> None:
    """Every quota is the stratum's share of `total`, rounded up or down, and every stratum has its quota."""
    by_stratum = Counter(row.stratum for row in drawn)
    assert all(by_stratum[row.stratum] == row.quota for row in drawn)
    for name, count in sizes.items():
        share = total * count / sizes.total()
        assert abs(by_stratum[name] - share) < 1, f"stratum {name}: {by_stratum[name]} drawn of a share of {share:.2f}"
