"""A number of which only the least and the most are known.

>>> Span(1, 3) * 2 + Span(0, 1)
Span(low=2, high=7)
>>> Span.around([Span(2, 3), Span(1, 2)])
Span(low=1, high=3)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """From `low` to `high`, both of them possible; never negative here."""

    low: float
    high: float

    @staticmethod
    def exactly(value: float) -> Span:
        return Span(value, value)

    @staticmethod
    def around(spans: Iterable[Span]) -> Span:
        """The smallest span that holds all of them; ValueError for none."""
        every = list(spans)
        return Span(min(span.low for span in every), max(span.high for span in every))

    @staticmethod
    def total(spans: Iterable[Span]) -> Span:
        """The sum; 0 for none."""
        every = list(spans)
        return Span(sum(span.low for span in every), sum(span.high for span in every))

    def __add__(self, other: Span | float) -> Span:
        added = other if isinstance(other, Span) else Span.exactly(other)
        return Span(self.low + added.low, self.high + added.high)

    def __mul__(self, factor: Span | float) -> Span:
        times = factor if isinstance(factor, Span) else Span.exactly(factor)
        return Span(self.low * times.low, self.high * times.high)

    def at_most(self, most: float) -> Span:
        """
        >>> Span(4, 9).at_most(6)
        Span(low=4, high=6)
        """
        return Span(min(self.low, most), min(self.high, most))

    def to_json(self) -> list[float]:
        return [self.low, self.high]
