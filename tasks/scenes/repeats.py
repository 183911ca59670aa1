"""What repeats are known by: whole dialogues after Unicode NFKC, case and space folding, and pairs of goals."""

from __future__ import annotations

import hashlib
import unicodedata

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


def goals_of(scene: Scene) -> str:
    """Both goals as one text; a full stop at the end of either makes no difference."""
    stop = "。" if scene.language == "zh" else ". "
    return stop.join(goal.strip().rstrip(".。") for goal in (scene.goal1, scene.goal2))
