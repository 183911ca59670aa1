"""Which of the assessed pairings go on: a share of the coherent ones, spread over goal type × language.

Pure. DEMO section 3.2 keeps 30 % of the coherent combinations, taken evenly from ten goal types.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tasks.foundation.ids import digest

Cell = tuple[str, str]
"""A goal type and a language."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One assessed pairing. `ok_flags`: how many of the three checks it passed (0–3)."""

    pairing_id: str
    language: str
    goal_type: str
    ok_flags: int = 3

    @property
    def cell(self) -> Cell:
        return (self.goal_type, self.language)


@dataclass(frozen=True, slots=True)
class Selection:
    """The pairings that go on, in order of selection, and what each cell lacks of its even share."""

    pairing_ids: tuple[str, ...]
    shortfalls: Mapping[Cell, tuple[int, int]]
    """Cell → (selected, even share), for the cells that have less."""


def count_to_keep(coherent: int, keep_share: float, cap: int | None) -> int:
    """`keep_share` of the coherent pairings, rounded down but at least one of any, and at most `cap`.

    Exact in decimals: 0.29 of 100 is 29.
    """
    if coherent == 0:
        return 0
    share = max(1, math.floor(Fraction(str(keep_share)) * coherent))
    return share if cap is None else min(share, cap)


def select_evenly(candidates: Sequence[Candidate], wanted: int, cells: Iterable[Cell], seed: int) -> Selection:
    """Up to `wanted` candidates, one after another from the cell that has the fewest so far.

    Ties go to the language, then the goal type, with the fewest so far, then by seeded order; within a
    cell the order is seeded too. `cells` are those that should have an even share, empty ones included.
    """
    queues = _make_queues(candidates, seed)
    of_cell: Counter[Cell] = Counter()
    of_language: Counter[str] = Counter()
    of_type: Counter[str] = Counter()
    chosen: list[str] = []

    def fewest_so_far(cell: Cell) -> tuple[int, int, int, str]:
        return (of_cell[cell], of_language[cell[1]], of_type[cell[0]], digest(seed, "cell", *cell))

    while len(chosen) < wanted and queues:
        cell = min(queues, key=fewest_so_far)
        chosen.append(queues[cell].pop(0).pairing_id)
        of_cell[cell] += 1
        of_language[cell[1]] += 1
        of_type[cell[0]] += 1
        if not queues[cell]:
            del queues[cell]
    return Selection(tuple(chosen), _find_shortfalls(of_cell, wanted, list(cells)))


def pick_best_ranked(candidates: Sequence[Candidate], wanted: int, seed: int) -> tuple[str, ...]:
    """Up to `wanted` candidates by passed checks, languages taking turns; ties in seeded order.

    For profiles whose models find nothing coherent (`conflicts.if_none: keep N`).
    """
    ranked = sorted(candidates, key=lambda one: (-one.ok_flags, digest(seed, one.pairing_id)))
    place: Counter[str] = Counter()
    in_turn = []
    for candidate in ranked:
        in_turn.append((place[candidate.language], candidate))
        place[candidate.language] += 1
    in_turn.sort(key=lambda entry: entry[0])  # stable: the better rank first within a round
    return tuple(candidate.pairing_id for _, candidate in in_turn[:wanted])


def _make_queues(candidates: Sequence[Candidate], seed: int) -> dict[Cell, list[Candidate]]:
    queues: dict[Cell, list[Candidate]] = {}
    for candidate in sorted(candidates, key=lambda one: digest(seed, one.pairing_id)):
        queues.setdefault(candidate.cell, []).append(candidate)
    return queues


def _find_shortfalls(selected: Counter[Cell], wanted: int, cells: Sequence[Cell]) -> dict[Cell, tuple[int, int]]:
    even = wanted // len(cells) if cells else 0
    return {cell: (selected[cell], even) for cell in sorted(cells) if selected[cell] < even}
