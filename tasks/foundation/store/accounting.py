"""Where every input row of a stage ended: `n_in = n_produced + n_filtered + n_failed`, checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.foundation.errors import StoreError


@dataclass(frozen=True, slots=True)
class Accounting:
    """Counts of input rows. `filtered` and `failed` are by reason (duplicate, not_sampled, parse …).

    `n_in` is counted where rows come in, independently of where they end, so that the check can fail.
    """

    n_in: int = 0
    n_produced: int = 0
    filtered: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)

    @property
    def n_filtered(self) -> int:
        return sum(self.filtered.values())

    @property
    def n_failed(self) -> int:
        return sum(self.failed.values())

    def __add__(self, other: Accounting) -> Accounting:
        return Accounting(
            self.n_in + other.n_in,
            self.n_produced + other.n_produced,
            _sum(self.filtered, other.filtered),
            _sum(self.failed, other.failed),
        )

    def moved(self, filtered: Mapping[str, int]) -> Accounting:
        """The same rows with some of the produced ones filtered after all (by a stage's last step)."""
        return Accounting(
            self.n_in, self.n_produced - sum(filtered.values()), _sum(self.filtered, filtered), self.failed
        )

    def check(self, where: str) -> None:
        """StoreError unless every input row ended exactly once."""
        ended = self.n_produced + self.n_filtered + self.n_failed
        if ended != self.n_in or self.n_produced < 0:
            raise StoreError(
                f"{where}: the accounting does not balance: {self.n_in} rows came in, but {self.n_produced} produced "
                f"+ {self.n_filtered} filtered + {self.n_failed} failed = {ended}. Nothing was committed; this is a "
                "fault of the stage."
            )

    def to_json(self) -> dict[str, Any]:
        return {
            "n_in": self.n_in,
            "n_produced": self.n_produced,
            "n_filtered": self.n_filtered,
            "n_failed": self.n_failed,
            "filtered": dict(sorted(self.filtered.items())),
            "failed": dict(sorted(self.failed.items())),
        }

    @staticmethod
    def from_json(plain: Mapping[str, Any]) -> Accounting:
        return Accounting(plain["n_in"], plain["n_produced"], plain["filtered"], plain["failed"])


def _sum(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in sorted((Counter(a) + Counter(b)).items()) if count}
