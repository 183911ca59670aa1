"""Content ids and seeds: the same input gives the same id on any machine, in any process.

>>> content_id("scene", "seed_0123456789abcdef")[:6]
'scene_'
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no spaces and unescaped Unicode; NaN and infinities raise ValueError."""
    return _CANONICAL.encode(value)


def digest(*parts: Any) -> str:
    """sha256 (64 hex digits) over the canonical JSON of `parts`; lone surrogates are hashed as they are."""
    return hashlib.sha256(canonical_json(parts).encode("utf-8", "surrogatepass")).hexdigest()


def content_id(prefix: str, *parts: Any) -> str:
    """`prefix_` and the first 16 hex digits of the hash over what identifies the row."""
    return f"{prefix}_{digest(prefix, *parts)[:16]}"


def seed_of(*parts: Any) -> int:
    """A 63-bit seed from `parts`; Python's own `hash()` differs between processes and is never used."""
    return int(digest("seed", *parts)[:16], 16) >> 1


def is_drawn(share: float, *parts: Any) -> bool:
    """Whether what `parts` identify is among a random `share` (0–1) of its kind: always the same of them, and of a
    larger share those of a smaller one too."""
    return seed_of(*parts) < share * 2**63


def seeded_order(ids: Sequence[str], *salt: Any) -> list[int]:
    """Positions of `ids` in a shuffle that depends only on the ids and the salt, never on row order.

    Equal ids keep their relative position. The order is that of `digest(*salt, id)`; the salt is hashed once.
    """
    salted = hashlib.sha256(f"{canonical_json(salt)[:-1]}{',' if salt else ''}".encode("utf-8", "surrogatepass"))

    def key(position: int) -> bytes:
        hashed = salted.copy()
        hashed.update(f"{json.encoder.encode_basestring(ids[position])}]".encode("utf-8", "surrogatepass"))
        return hashed.digest()

    return sorted(range(len(ids)), key=key)
