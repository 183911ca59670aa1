"""Near-duplicates among texts of one language: who is kept, and for everyone dropped, because of whom.

Candidates are walked in a seeded order that depends only on their ids; one is kept if its cosine to every
kept one is below the threshold. A dropped one names the kept one, among those kept before it, that it is
closest to. Who is kept and who is named does not depend on row order, block size, the way of searching or the
batches in which the texts were encoded: wherever the stored float32 vectors leave a decision within `slack`,
it is made on float64 vectors of the texts encoded one by one. Where they do not, the cosine is that of the
stored vectors, which batches change by about 1e-6, and no text is encoded again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tasks.foundation.errors import TableError
from tasks.foundation.ids import seeded_order
from tasks.foundation.texts.nearest import KeptSearch, Pairs, SearchName, open_search

SLACK = 1e-4
"""How far the cosine of stored vectors may be from the exact one (batches change it by about 1e-6)."""
BLOCK = 2048
"""Candidates searched at once."""
RIVALS = 1024
"""Rivals whose exact vectors are held at once."""
LENGTHS_READ = 1 << 14
"""Vectors whose lengths are checked at once."""

Method = Literal["exact", "embedding", "minhash"]
ExactVector = Callable[[int], np.ndarray]
"""Position of a candidate → unit vector float64 of its text encoded alone."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dropped:
    """`position` was dropped because of the kept `closest`; `cosine` is None for the same text."""

    position: int
    closest: int
    cosine: float | None
    method: Method


@dataclass(frozen=True, slots=True)
class Deduplicated:
    """`kept` positions in the order they were walked, and those dropped, each with its reason."""

    kept: tuple[int, ...]
    dropped: tuple[Dropped, ...]


def deduplicate(
    ids: Sequence[str],
    texts: Sequence[str],
    vectors: np.ndarray,
    exact_vector: ExactVector,
    *,
    threshold: float,
    seed: int,
    search: SearchName = "exact",
    block: int = BLOCK,
    slack: float = SLACK,
) -> Deduplicated:
    """Walks candidates as the module says; `ids`, `texts` and the rows of `vectors` (unit, float32 [n, d])
    belong together. A zero vector is close to nothing. `search` and `block` change how long it takes; `slack` is
    how far a cosine of `vectors` may be from that of `exact_vector`.

    Raises TableError for a vector that is neither unit nor zero, NaN included.
    """
    vectors = np.ascontiguousarray(vectors, np.float32)
    check_lengths(vectors, ids)
    order = np.array(seeded_order(ids, seed, "personas.dedupe"), np.int64)
    finder = open_search(search, vectors, order, threshold - slack, rival=2 * slack)
    walk = _Walk(order, texts, vectors, exact_vector, threshold, finder, slack)
    for start in range(0, len(order), block):
        walk.through(range(start, min(start + block, len(order))))
    return walk.result()


_WHY: dict[Method, str] = {
    "exact": "have the text of a kept one",
    "embedding": "are near one by the encoder",
    "minhash": "are near one by their characters",
}


def warn_if_most_dropped(what: str, n: int, methods: Iterable[Method], kept: Iterable[str], setting: str) -> None:
    """Logs a warning where more than half of the `n` texts of `what` were dropped: how, and because of whom.

    `methods` and `kept` (whom it is like) have an entry for each dropped one; `setting` decided from what likeness.
    """
    by_method, by_kept = Counter(methods), Counter(kept)
    dropped = by_method.total()
    if 2 * dropped <= n:
        return
    why = ", ".join(f"{count:,} {_WHY[method]}" for method, count in by_method.most_common())
    ((most, times),) = by_kept.most_common(1)
    log.warning(
        "%s: deduplication dropped %s of %s: %s. %s are like %s. Look at them in the table `duplicates` before you go "
        "on: texts of one template, or %s too low?",
        *(what, f"{dropped:,}", f"{n:,}", why, f"{times:,}", most, setting),
    )


def check_lengths(vectors: np.ndarray, ids: Sequence[str]) -> None:
    """TableError naming the first vector whose length is neither 0 nor 1."""
    for start in range(0, len(vectors), LENGTHS_READ):
        some = vectors[start : start + LENGTHS_READ]
        squared = np.vecdot(some, some)
        wrong = np.flatnonzero(~((abs(squared - 1) < 1e-3) | (squared == 0)))
        if len(wrong):
            length = float(np.sqrt(squared[wrong[0]]))
            raise TableError(
                f"expected unit vectors, found one of length {length} for {ids[start + int(wrong[0])]!r}: its stored "
                "embedding is damaged. Delete the folder cache/embeddings in the artifacts folder and run again."
            )


class _Walk:
    """The candidates decided so far, each known by its place in the walk."""

    def __init__(
        self,
        order: np.ndarray,
        texts: Sequence[str],
        vectors: np.ndarray,
        exact_vector: ExactVector,
        threshold: float,
        search: KeptSearch,
        slack: float,
    ) -> None:
        self._positions: list[int] = order.tolist()
        self._texts = [texts[position] for position in self._positions]
        self._vectors = vectors
        self._exact_vector = exact_vector
        self._threshold = threshold
        self._search = search
        self._slack = slack
        self._is_kept = np.zeros(len(order), bool)
        self._kept_by_text: dict[str, int] = {}
        self._dropped: dict[int, Dropped] = {}

    def through(self, block: range) -> None:
        """Decides one block; its kept ones are found by later searches."""
        rows = np.array([place for place in block if not self._drop_repeat(place)], np.int64)
        pairs = self._pairs(rows)
        starts = np.searchsorted(pairs.row, np.arange(len(rows) + 1)).tolist()
        for place, start, stop in zip(rows.tolist(), starts, starts[1:], strict=False):
            if self._drop_repeat(place) or (start < stop and self._drop_near(place, pairs, start, stop)):
                continue
            self._is_kept[place] = True
            self._kept_by_text[self._texts[place]] = place
        self._search.keep(rows[self._is_kept[rows]])

    def result(self) -> Deduplicated:
        kept = (self._positions[place] for place in np.flatnonzero(self._is_kept).tolist())
        return Deduplicated(tuple(kept), tuple(self._dropped[place] for place in sorted(self._dropped)))

    def _pairs(self, rows: np.ndarray) -> Pairs:
        """What is near each row: kept ones, and those of the block that come first and may yet be kept."""
        kept = self._search.near(rows)
        open_ = kept.highest(len(rows)) < self._threshold + self._slack
        return Pairs.join([kept, self._search.within(rows, open_)])

    def _drop_repeat(self, place: int) -> bool:
        """Whether the same text was kept before; then `place` is dropped."""
        same = self._kept_by_text.get(self._texts[place])
        if same is not None:
            self._drop(place, same, None, "exact")
        return same is not None

    def _drop_near(self, place: int, pairs: Pairs, start: int, stop: int) -> bool:
        """Whether one of the kept among the pairs of `place` is too close; then it is dropped."""
        near = pairs.other[start:stop]
        is_kept = self._is_kept[near] & (pairs.cosine[start:stop] > self._threshold - self._slack)
        if not is_kept.any():
            return False
        near, cosines = near[is_kept], pairs.cosine[start:stop][is_kept]
        rivals = near[cosines > cosines.max() - 2 * self._slack].tolist()
        if len(rivals) == 1 and cosines.max() > self._threshold + self._slack:
            closest, cosine = rivals[0], float(self._stored(place) @ self._stored(rivals[0]))
        else:
            closest, cosine = self._closest(place, rivals)
        if cosine >= self._threshold:
            self._drop(place, closest, cosine, "embedding")
        return cosine >= self._threshold

    def _closest(self, place: int, rivals: list[int]) -> tuple[int, float]:
        """The rival with the highest exact cosine, the first kept of equal ones, and that cosine."""
        own = self._exact(place)
        parts = [rivals[start : start + RIVALS] for start in range(0, len(rivals), RIVALS)]
        cosines = np.concatenate([np.vecdot(np.stack([self._exact(rival) for rival in part]), own) for part in parts])
        best = int(np.argmax(cosines))
        return rivals[best], float(cosines[best])

    def _drop(self, place: int, closest: int, cosine: float | None, method: Method) -> None:
        self._dropped[place] = Dropped(self._positions[place], self._positions[closest], cosine, method)

    def _exact(self, place: int) -> np.ndarray:
        return self._exact_vector(self._positions[place])

    def _stored(self, place: int) -> np.ndarray:
        vector = self._vectors[self._positions[place]].astype(np.float64)
        return np.asarray(vector / np.linalg.norm(vector))
