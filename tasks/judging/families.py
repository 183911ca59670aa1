"""The family rule of EYT-Bench (sections 3.1 and 3.6): a judge scores neither its own family nor its simulator's.

It holds for conversations only. DEMO judges GPT-4o with GPT-4o (section 4.1), so its scores have no such rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.foundation.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Party:
    role: str
    alias: str
    family: str

    def __str__(self) -> str:
        return f"{self.role} {self.alias!r}"


def check_families(judge: Party, others: Sequence[Party], waiver: str | None) -> None:
    """ConfigError when the judge shares a family with one of `others` and no reason is given why it may."""
    kin = [other for other in others if other.family == judge.family]
    if kin and not waiver:
        raise ConfigError(
            f"judging.judges: expected a family that no target or simulator of this build's conversations has, found "
            f"{judge} of family {judge.family!r}, as is {', '.join(map(str, kin))}. Name another judge, or write down "
            "why this is acceptable: conversation.family_waiver='the reason' (every report prints it)."
        )
