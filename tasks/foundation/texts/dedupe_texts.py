"""Near-duplicates among texts whose language no encoder here knows: by their characters.

The walk is that of `texts.dedupe`; instead of a cosine, two texts have the share of their short character sequences
in common. Letters are levelled first (NFKC, case, spaces).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

from tasks.foundation.ids import seeded_order
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.dedupe import Deduplicated, Dropped
from tasks.foundation.texts.near_texts import NearTexts

TextOf = Callable[[int], str]


def deduplicate_texts(
    ids: Sequence[str], hashes: Sequence[str], text_of: TextOf, language: Language, *, threshold: float, seed: int
) -> Deduplicated:
    """Keeps a candidate unless it has at least `threshold` in common with one kept before it, the nearest of which
    it then names. `hashes` are equal for equal texts; a text is read by its position when its turn comes."""
    near = NearTexts(language, threshold)
    kept: list[int] = []
    dropped: list[Dropped] = []
    kept_by_hash: dict[str, int] = {}
    for position in seeded_order(ids, seed, "personas.dedupe"):
        same = kept_by_hash.get(hashes[position])
        if same is not None:
            dropped.append(Dropped(position, same, None, "exact"))
            continue
        closest = near.take(levelled(text_of(position)))
        if closest is not None:
            dropped.append(Dropped(position, kept[closest], None, "minhash"))
            continue
        kept.append(position)
        kept_by_hash[hashes[position]] = position
    return Deduplicated(tuple(kept), tuple(dropped))


def levelled(text: str) -> str:
    """The text without differences of width, case and spaces."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())
