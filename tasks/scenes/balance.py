"""As many scenes of one language as of the other: what the language that has more gives up."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tasks.foundation.ids import seeded_order
from tasks.foundation.tables.types import Language


def surplus(by_language: Mapping[Language, Collection[str]], seed: int) -> set[str]:
    """Ids beyond the size of the smallest language, the last of a seeded order. Nothing where a language has none:
    half a benchmark is better than none."""
    fewest = min(map(len, by_language.values()), default=0)
    if not fewest:
        return set()
    return {
        ids[place]
        for ids in map(list, by_language.values())
        for place in seeded_order(ids, seed, "scenes.one_to_one")[fewest:]
    }
