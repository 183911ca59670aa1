"""Holm's correction over a family of tests, some of which may not be computable."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm-adjusted p in the order given; None stays None and does not count as a test. Empty → empty."""
    from statsmodels.stats.multitest import multipletests

    places = [place for place, p in enumerate(p_values) if p is not None]
    adjusted: list[float | None] = [None] * len(p_values)
    if places:
        found = multipletests([p_values[place] for place in places], method="holm")[1]
        for place, p in zip(places, found, strict=True):
            adjusted[place] = float(p)
    return adjusted
