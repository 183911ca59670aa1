"""Counts the votes on one label. Pure; the order of the votes never matters.

>>> tally([1, 1, None], panel=3)
Tally(outcome='majority', winner=1, votes_for=2, votes_cast=2)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

C = TypeVar("C", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Tally(Generic[C]):
    """`winner` None: no candidate has a strict majority of the configured panel (outcome `manual`);
    `votes_for` is then the most that any candidate got."""

    outcome: Literal["unanimous", "majority", "manual"]
    winner: C | None
    votes_for: int
    votes_cast: int


def count_votes(votes: Sequence[C | None], panel: int) -> Tally[C]:
    """The outcome of `votes` (None: abstained or unreadable) for a panel of `panel` members.

    More than half of the *configured* panel decides, so a missing vote never helps anyone;
    `unanimous` when every member chose alike. ValueError for more votes than members.
    """
    if len(votes) > panel:
        raise ValueError(f"expected at most {panel} votes, found {len(votes)}")
    counts = Counter(vote for vote in votes if vote is not None)
    most = max(counts.values(), default=0)
    if 2 * most <= panel:
        return Tally("manual", None, most, counts.total())
    winner = next(vote for vote, count in counts.items() if count == most)
    return Tally("unanimous" if most == panel else "majority", winner, most, counts.total())
