"""Terciles of a number over a pool: short, medium and long histories."""

from __future__ import annotations

from collections.abc import Sequence

NAMES = ("short", "medium", "long")


def tercile_names(values: Sequence[int | None]) -> list[str | None]:
    """The tercile of each value among all that are given; equal values share one, None stays None.

    The bounds are the values at a third and two thirds of the sorted ones.

    >>> tercile_names([10, 30, 20, None])
    ['short', 'long', 'medium', None]
    """
    known = sorted(value for value in values if value is not None)
    if not known:
        return [None for _ in values]
    lower, upper = (known[-(-len(known) * part // 3) - 1] for part in (1, 2))
    return [None if value is None else NAMES[(value > lower) + (value > upper)] for value in values]
