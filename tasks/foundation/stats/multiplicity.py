"""Holm's correction over a family of tests, some of which may not be computable.

statsmodels has it too, but ends every call with a full garbage collection, which costs seconds for the
hundreds of families of a build; tests hold this one against it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm-adjusted p in the order given; None stays None and does not count as a test. Empty → empty."""
    tested = [place for place, p in enumerate(p_values) if p is not None]
    p = np.array([p_values[place] for place in tested], dtype=float)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1.0)
    adjusted: list[float | None] = [None] * len(p_values)
    for place, value in zip(order, stepped, strict=True):
        adjusted[tested[place]] = float(value)
    return adjusted
