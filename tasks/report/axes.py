"""Which part of a unit's scale an axis shows: never so little that hardly any difference looks large.

>>> shown("0-10", [6.25, 6.5], [6.25, 6.5]), shown("0-10", [10], [10]), shown("turns", [2], [2])
((5.125, 7.625), (0.0, 10.0), None)
"""

from __future__ import annotations

from collections.abc import Collection

SCALES: dict[str, tuple[float, float]] = {
    "0-10": (0.0, 10.0),
    "0-20": (0.0, 20.0),
    "0-100": (0.0, 100.0),
    "share": (0.0, 1.0),
    "cosine": (0.0, 1.0),
    "rho": (-1.0, 1.0),
    "tau": (-1.0, 1.0),
}
"""By unit, from where to where its values go; distances over 1 widen it."""

LEAST_PART = 0.25
"""Of a unit's scale, the share that an axis shows at least."""


def choose_axis(unit: str, values: Collection[float], ends: Collection[float]) -> tuple[float, float] | None:
    """From where to where an axis goes that holds `values` and the `ends` of their intervals; None for a unit without
    a scale.

    The whole scale where no two values differ, else at least a quarter of it around them.
    """
    if unit not in SCALES:
        return None
    low, high = SCALES[unit]
    if len(set(values)) < 2:
        return min(low, *values, *ends), max(high, *values, *ends)
    return _around([*values, *ends], low, high, (high - low) * LEAST_PART)


def choose_difference_axis(unit: str, values: Collection[float], ends: Collection[float]) -> tuple[float, float] | None:
    """The same for differences of two values: 0 is on the axis, and at least a quarter of the unit's scale."""
    if unit not in SCALES:
        return None
    low, high = SCALES[unit]
    return _around([0.0, *values, *ends], low - high, high - low, (high - low) * LEAST_PART)


def _around(values: Collection[float], low: float, high: float, width: float) -> tuple[float, float]:
    """`width` or more around the values, between `low` and `high` where the values are."""
    least, most = min(values), max(values)
    width = max(width, most - least)
    start = (least + most - width) / 2
    start = max(min(start, max(high, most) - width), min(low, least))
    return start, start + width
