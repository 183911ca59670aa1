"""Exact repeats after Unicode NFKC, case and space folding: of whole dialogues, and of goal pairs."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from tasks.foundation.ids import digest
from tasks.foundation.tables.scenes import Scene, SeedDialogue


def folded(text: str) -> str:
    """`text` with compatibility characters, case and spaces levelled.

    >>> folded("Ｈello   World ") == folded("hello world")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def seed_key(seed: SeedDialogue) -> str:
    """Equal for dialogues that say the same, whoever says it."""
    return digest([folded(turn.text) for turn in seed.turns])


def goals_key(scene: Scene) -> str:
    """Equal for scenes of one language with the same pair of goals."""
    return digest(scene.language, folded(scene.goal1).rstrip(".。"), folded(scene.goal2).rstrip(".。"))


def first_of_each(keyed: Iterable[tuple[str, str]]) -> dict[str, str]:
    """(id, key) pairs in order → for each id that repeats an earlier one's key, the first id with that key."""
    first: dict[str, str] = {}
    repeats: dict[str, str] = {}
    for identity, key in keyed:
        original = first.setdefault(key, identity)
        if original != identity:
            repeats[identity] = original
    return repeats
