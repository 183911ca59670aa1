"""How many pairings each goal type of each language is asked for, and which of the assessed ones go on.

Pure. DEMO section 3.2 keeps 30 % of the coherent combinations, taken evenly from ten goal types; section 3.1 has both
languages 1:1. So the languages come first, then the types within each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from tasks.foundation.ids import digest, seeded_order

Cell = tuple[str, str]
"""A goal type and a language."""
K = TypeVar("K", bound=Hashable)

FEWEST_AT_FIRST = 20
"""Pairings of a language in the first round: of fewer, the share of coherent ones says nothing."""
LOWEST_RATE = 0.1
"""Of coherent pairings, that is reckoned with: a type of which none was coherent gets ten times what it lacks."""


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
class CellState:
    """One goal type of a language so far: pairings that can still be drawn, that were drawn to be assessed, and the
    coherent ones among these."""

    left: int
    drawn: int = 0
    coherent: int = 0


@dataclass(frozen=True, slots=True)
class Selection:
    """The pairings that go on, in order of selection, and what each cell lacks of its even share."""

    pairing_ids: tuple[str, ...]
    shortfalls: Mapping[Cell, tuple[int, int]]
    """Cell → (selected, even share), for the cells that have less."""


def share_out(total: int, limits: Mapping[K, int]) -> dict[K, int]:
    """`total` over the keys as evenly as their limits allow; what cannot be split evenly goes to the first.

    >>> share_out(10, {"a": 2, "b": 9, "c": 9})
    {'a': 2, 'b': 4, 'c': 4}
    """
    amounts = dict.fromkeys(limits, 0)
    left = min(total, sum(limits.values()))
    while left:
        unmet = [key for key in limits if amounts[key] < limits[key]]
        each = max(left // len(unmet), 1)
        for key in unmet[:left]:
            more = min(each, limits[key] - amounts[key])
            amounts[key] += more
            left -= more
    return amounts


def order_types(names: Iterable[str], language: str, seed: int) -> list[str]:
    """Goal types in the seeded order in which they take turns; the two languages have it from either end, so that what
    cannot be split evenly goes to different types."""
    ordered = sorted(names, key=lambda name: digest(seed, "goal type", name))
    return ordered if language == "en" else ordered[::-1]


def ask_for(cells: Mapping[str, CellState], wanted: int, cap: int) -> dict[str, int]:
    """How many more pairings to draw of each goal type of a language, so that it comes to `wanted` coherent ones.

    Each type is to have an even share of them; what a type has no material for is shared out to the others. What one
    lacks is divided by its share of coherent ones so far (in the first round by 1, so that nothing is drawn in vain),
    and all together are at most `cap` with those drawn before.
    """
    if not any(cell.drawn for cell in cells.values()):
        wanted = max(wanted, FEWEST_AT_FIRST)
    limits = {name: min(cell.coherent + cell.left, wanted) for name, cell in cells.items()}
    goals = share_out(wanted, limits)
    asked = {
        name: min(_to_draw(goals[name] - cell.coherent, cell), cell.left) for name, cell in cells.items() if cell.left
    }
    return share_out(max(cap - sum(cell.drawn for cell in cells.values()), 0), asked)


def _to_draw(lacking: int, cell: CellState) -> int:
    if lacking <= 0:
        return 0
    rate = Fraction(cell.coherent, cell.drawn) if cell.drawn else Fraction(1)
    return math.ceil(lacking / max(rate, Fraction(str(LOWEST_RATE))))


def count_coherent_wanted(select: int, keep_share: float) -> int:
    """How many coherent pairings there have to be so that `select` of them are a `keep_share`."""
    return math.ceil(select / Fraction(str(keep_share)))


def count_to_keep(coherent: int, keep_share: float, cap: int | None) -> int:
    """`keep_share` of the coherent pairings, rounded down but at least one of any, and at most `cap`.

    Exact in decimals: 0.29 of 100 is 29.
    """
    if coherent == 0:
        return 0
    share = max(1, math.floor(Fraction(str(keep_share)) * coherent))
    return share if cap is None else min(share, cap)


def select_evenly(
    candidates: Sequence[Candidate],
    wanted: int,
    cells: Iterable[Cell],
    seed: int,
    most: Mapping[str, int] | None = None,
) -> Selection:
    """Up to `wanted` candidates: as many of one language as of the other, and of each goal type of a language as many
    as of another, as far as there are any. `most`: of each language, however few the others have.

    Within a cell the order is seeded; in the order of selection the cells take turns. `cells` are those that should
    have an even share, empty ones included.
    """
    queues = _make_queues(candidates, seed)
    there = Counter(candidate.language for candidate in candidates)
    of_language = share_out(
        wanted, {language: min(n, (most or there)[language]) for language, n in sorted(there.items())}
    )
    ranked: list[tuple[int, int, str, str]] = []
    taken: dict[Cell, int] = {}
    for language, amount in of_language.items():
        types = order_types({name for name, own in queues if own == language}, language, seed)
        amounts = share_out(amount, {name: len(queues[name, language]) for name in types})
        for place, name in enumerate(types):
            taken[name, language] = amounts[name]
            chosen = queues[name, language][: amounts[name]]
            ranked += [(turn, place, language, pairing_id) for turn, pairing_id in enumerate(chosen)]
    even = _even_shares(wanted, list(cells), most)
    shortfalls = {cell: (taken.get(cell, 0), even[cell]) for cell in sorted(even) if taken.get(cell, 0) < even[cell]}
    return Selection(tuple(entry[-1] for entry in sorted(ranked)), shortfalls)


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


def _make_queues(candidates: Sequence[Candidate], seed: int) -> dict[Cell, list[str]]:
    """The ids of each cell in seeded order."""
    queues: dict[Cell, list[str]] = {}
    for place in seeded_order([one.pairing_id for one in candidates], seed):
        queues.setdefault(candidates[place].cell, []).append(candidates[place].pairing_id)
    return queues


def _even_shares(wanted: int, cells: Sequence[Cell], most: Mapping[str, int] | None) -> dict[Cell, int]:
    """What each cell should have at least: of `wanted`, or of what its language may have."""
    n_types = Counter(language for _, language in cells)
    of_language = most or share_out(wanted, dict.fromkeys(sorted(n_types), wanted))
    return {(name, language): of_language[language] // n_types[language] for name, language in cells}
