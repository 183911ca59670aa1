"""Exact repeats after Unicode NFKC, case and space folding: of whole dialogues, and of goal pairs."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable

from tasks.foundation.ids import digest
from tasks.foundation.tables.scenes import Scene


def folded(text: str) -> str:
    """`text` with compatibility characters, case and spaces levelled.

    >>> folded("Ｈello   World ") == folded("hello world")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def text_key(folded_texts: str) -> int:
    """64 bits of what a dialogue says, whoever says it: one line a turn, each `folded`."""
    return int.from_bytes(hashlib.blake2b(folded_texts.encode(), digest_size=8).digest(), "big")


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
