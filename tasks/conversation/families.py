"""The family rule: simulator, targets and judges come from different model families (EYT-Bench section 3.1).

A model favours the words of its own family, so a target must share it with nobody who writes to it or
scores it. Two targets, or two judges, may share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from tasks.foundation.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Party:
    """A model in one of the three roles."""

    role: Literal["simulator", "target", "judge"]
    alias: str
    family: str

    def __str__(self) -> str:
        return f"{self.role} {self.alias!r}"


def find_clashes(parties: Sequence[Party]) -> list[tuple[Party, Party]]:
    """The pairs in different roles that share a family, in order."""
    return [(a, b) for a, b in combinations(parties, 2) if a.role != b.role and a.family == b.family]


def check_families(parties: Sequence[Party], waiver: str | None) -> None:
    """ConfigError when two roles share a family and no reason is given why that may be."""
    found = find_clashes(parties)
    if not found or waiver:
        return
    listed = "; ".join(f"{a} and {b} are both of family {a.family!r}" for a, b in found)
    raise ConfigError(
        f"conversation: expected simulator, targets and judges of different model families, found: {listed}. "
        "Name other models in conversation.simulator, conversation.targets or judging.judges, or write down why "
        "this is acceptable: conversation.family_waiver='the reason' (every report prints it)."
    )
