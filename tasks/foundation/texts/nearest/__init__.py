"""Which of many unit vectors are close to which: every pair above a cosine, none missed, no pair table kept.

Rows are visited in a *walk* and searched against those *kept* before them. `open_search` gives the way that
is asked for; both find the same pairs but for some within 1e-5 of the floor, and the caller decides.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from tasks.foundation.texts.nearest.blocked import RIVAL, BlockedSearch, KeptSearch
from tasks.foundation.texts.nearest.bound import choose_bound
from tasks.foundation.texts.nearest.bounded import BoundedSearch
from tasks.foundation.texts.nearest.flat import FlatSearch
from tasks.foundation.texts.nearest.pairs import Pairs

__all__ = ["BlockedSearch", "BoundedSearch", "FlatSearch", "KeptSearch", "Pairs", "SearchName", "open_search"]

SearchName = Literal["exact", "faiss"]


def open_search(
    name: SearchName, vectors: np.ndarray, walk: np.ndarray, floor: float, rival: float = RIVAL
) -> KeptSearch:
    """A search over `vectors` (unit or zero, float32 [n, d]; may be memory-mapped) in the order of `walk`.

    `rival`: how far below a row's highest cosine with a kept one the caller still needs every pair.
    `exact` bounds every cosine by a short product first, or multiplies in full where that would not pay.
    """
    if name == "faiss":
        return FlatSearch(vectors, walk, floor, rival)
    bound = choose_bound(vectors, walk, floor)
    if bound is None:
        return BlockedSearch(vectors, walk, floor, rival)
    return BoundedSearch(vectors, walk, floor, bound, rival)
