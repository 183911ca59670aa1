"""Deals characters to scenes: seeded, without repeats, every scene and character used evenly."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

Triple = tuple[str, str, str]
"""A scene and its participants 1 and 2."""

Waiting = list[tuple[int, bytes, str]]
"""A heap of (uses so far, seeded tie break, id)."""


class Dealer:
    """Draws triples of a scene and two different characters, none that was `drawn` before.

    The next scene is always the least used of those asked for, the next characters the least used that give a new
    triple. What is drawn depends on the ids, the seed and what was drawn before only, not on the order of any.
    """

    def __init__(self, characters: Sequence[str], seed: int, drawn: Iterable[Triple] = ()) -> None:
        self._key = str(seed).encode()
        self._drawn = set(drawn)
        self._scene_uses = Counter(scene for scene, _, _ in self._drawn)
        uses = Counter(name for _, *both in self._drawn for name in both)
        self._waiting = [self._entry(uses[name], name) for name in characters]
        self._of_a_scene = len(characters) * (len(characters) - 1)
        heapq.heapify(self._waiting)

    def draw(self, scenes: Sequence[str]) -> Iterator[Triple]:
        """New triples of these scenes, until there are no more."""
        waiting = [self._entry(self._scene_uses[scene], scene) for scene in scenes]
        heapq.heapify(waiting)
        while waiting and waiting[0][0] < self._of_a_scene:
            uses, _, scene = waiting[0]
            heapq.heapreplace(waiting, self._entry(uses + 1, scene))
            self._scene_uses[scene] += 1
            triple = self._least_used(scene)
            self._drawn.add(triple)
            yield triple

    def _least_used(self, scene: str) -> Triple:
        """The new triple of a scene with the least used characters, whose uses are then counted."""
        taken: Waiting = []
        found: Triple | None = None
        while found is None:
            taken.append(heapq.heappop(self._waiting))
            found = self._new_triple(scene, [name for _, _, name in taken])
        for entry in taken:
            used = entry[2] in found[1:]
            heapq.heappush(self._waiting, self._entry(entry[0] + 1, entry[2]) if used else entry)
        return found

    def _new_triple(self, scene: str, names: Sequence[str]) -> Triple | None:
        """A triple not drawn before of the last of `names` with an earlier one."""
        *earlier, newest = names
        for other in earlier:
            for triple in ((scene, other, newest), (scene, newest, other)):
                if triple not in self._drawn:
                    return triple
        return None

    def _entry(self, uses: int, name: str) -> tuple[int, bytes, str]:
        # As `ids.digest`, at a fifth of the time: there are hundreds of thousands of scenes and characters.
        return (uses, hashlib.blake2b(f"{uses} {name}".encode(), digest_size=8, key=self._key).digest(), name)
