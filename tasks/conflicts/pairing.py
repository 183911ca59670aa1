"""Deals characters to scenes: seeded, without repeats, every scene and character used evenly."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import cycle, islice

from tasks.foundation.ids import digest, seeded_order

Triple = tuple[str, str, str]
"""A scene and its participants 1 and 2."""

Waiting = list[tuple[int, str, str]]
"""A heap of (uses so far, seeded tie break, character)."""


def draw_pairings(scenes: Sequence[str], characters: Sequence[str], count: int, seed: int) -> list[Triple]:
    """At most `count` different triples of a scene and two different characters.

    Scenes are used equally often, give or take one; the next characters are always the least used that
    give a triple not drawn before. Depends on the ids and the seed only, not on their order. Fewer than
    `count` come back when there are no more triples to draw.
    """
    possible = len(scenes) * len(characters) * (len(characters) - 1)
    ordered = [scenes[place] for place in seeded_order(scenes, seed, "scene")]
    waiting = [(0, digest(seed, 0, name), name) for name in characters]
    heapq.heapify(waiting)
    drawn: set[Triple] = set()
    triples = []
    for scene in islice(cycle(ordered), min(count, possible)):
        triple = _least_used(waiting, scene, drawn, seed)
        drawn.add(triple)
        triples.append(triple)
    return triples


def _least_used(waiting: Waiting, scene: str, drawn: set[Triple], seed: int) -> Triple:
    """The new triple of `scene` with the least used characters, whose uses `waiting` then counts."""
    taken: Waiting = []
    found: Triple | None = None
    while found is None:
        taken.append(heapq.heappop(waiting))
        found = _new_triple(scene, [name for _, _, name in taken], drawn)
    for uses, tie, name in taken:
        again = (uses + 1, digest(seed, uses + 1, name), name) if name in found[1:] else (uses, tie, name)
        heapq.heappush(waiting, again)
    return found


def _new_triple(scene: str, names: Sequence[str], drawn: set[Triple]) -> Triple | None:
    """A triple not drawn before of the last of `names` with an earlier one."""
    *earlier, newest = names
    for other in earlier:
        for triple in ((scene, other, newest), (scene, newest, other)):
            if triple not in drawn:
                return triple
    return None
