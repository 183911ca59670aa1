"""Near-duplicates among texts of one language: who is kept, and for everyone dropped, because of whom.

Texts are walked in a seeded order that depends only on their ids; one is kept if it is like none kept before it. A
dropped one names the kept one that it is most like. An encoder says how alike two are (their cosine) where it knows the
language and the text is in it; else it is the share of their short character sequences that they have in common.

By the encoder, neither who is kept nor who is named depends on row order, block size, the way of exact searching or the
batches in which the texts were encoded: wherever the stored float32 vectors leave a decision within `slack`, it is made
on float64 vectors of the texts encoded one by one. Where they do not, the cosine is that of the stored vectors, which
batches change by about 1e-6, and no text is encoded again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from tasks.foundation.errors import TableError
from tasks.foundation.ids import seeded_order
from tasks.foundation.settings.sections import NearSection
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.personas import Duplicate
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.approximate import open_search
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.minhash import NearTexts, fold
from tasks.foundation.texts.nearest import KeptSearch, Pairs, Recall, SearchName
from tasks.foundation.texts.similarity import Similarity, can_read

SLACK = 1e-4
"""How far the cosine of stored vectors may be from the exact one (batches change it by about 1e-6)."""
BLOCK = 2048
"""Steps searched at once."""

Method = Literal["exact", "embedding", "minhash"]
TextOf = Callable[[int], str]
ExactVector = Callable[[int], np.ndarray]
"""Row → unit vector float64 of its text encoded alone."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dropped:
    """The row that was dropped because of the kept row `closest`; `cosine` is None for the same text."""

    row: int
    closest: int
    cosine: float | None
    method: Method


@dataclass(frozen=True, slots=True)
class Deduplicated:
    """`kept` rows in the order they were walked, and those dropped, each with its reason. `recall` says how many near
    ones an approximate search found."""

    kept: tuple[int, ...]
    dropped: tuple[Dropped, ...]
    recall: Recall | None = None


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts by row, of which some columns are held and the rest is read where it is needed."""

    name: str
    """What messages call them."""
    ids: Sequence[str]
    keys: Sequence[str]
    """Equal for equal texts."""
    foreign: Collection[int]
    """Rows whose text is in another language than is said of it: no encoder may compare them."""
    text_of: TextOf
    encode: Callable[[Encoder, Sequence[int]], np.ndarray]
    """Unit float32 [n, d] of some rows."""


def find_duplicates(
    table: str,
    texts: Mapping[str, str],
    language: Language,
    similarity: Similarity,
    near: NearSection | None,
    seed: int,
) -> list[Duplicate]:
    """Rows of `duplicates` for those of `texts` (by id, all of one language, held in memory) that repeat, or are near,
    a kept one.

    Without `near` only repeats are found (but for case, width and spaces). The result depends on ids and texts only,
    not on their order.
    """
    ids, said = list(texts), list(texts.values())
    keys = [fold(text, joint="") for text in said]
    dropped: Sequence[Dropped] = ()
    if near is None:
        dropped = _find_repeats(ids, keys, seed)
    elif len(ids) > 1:
        if not isinstance(similarity, Encoder):
            log.info("%d %s %s", len(ids), LANGUAGES[language], similarity.explanation)
        foreign = {row for row, text in enumerate(said) if not can_read(similarity, text, language)}
        held = Texts(
            table,
            ids,
            keys,
            foreign,
            said.__getitem__,
            lambda encoder, rows: encoder.encode([said[row] for row in rows]),
        )
        dropped = deduplicate_language(
            held, range(len(ids)), language, similarity, cosine=near.cosine, jaccard=near.jaccard, seed=seed
        ).dropped
    found = duplicate_rows(table, ids, dropped)
    why = ((each.method, each.duplicate_of) for each in found)
    warn_if_most_dropped(f"{table}, {LANGUAGES[language]}", len(texts), why, "the dedup threshold")
    return found


def deduplicate_language(
    texts: Texts,
    rows: Sequence[int],
    language: Language,
    similarity: Similarity,
    *,
    cosine: float,
    jaccard: float,
    seed: int,
    search: SearchName = "exact",
) -> Deduplicated:
    """Who is kept of some rows, all of one language: by the encoder those that it can read, by their characters all
    others, and neither held against the other."""
    if not isinstance(similarity, Encoder):
        return _by_characters(texts, rows, language, jaccard, seed)
    foreign = [row for row in rows if row in texts.foreign]
    if not foreign:
        return _by_encoder(texts, rows, similarity, cosine, seed, search)
    log.warning(
        "%s: %d of %d texts said to be %s are in another language and are compared by their characters",
        *(texts.name, len(foreign), len(rows), LANGUAGES[language]),
    )
    results = [_by_characters(texts, foreign, language, jaccard, seed)]
    if native := [row for row in rows if row not in texts.foreign]:
        results.append(_by_encoder(texts, native, similarity, cosine, seed, search))
    return join_results(results, texts.ids, seed)


def _by_characters(texts: Texts, rows: Sequence[int], language: Language, threshold: float, seed: int) -> Deduplicated:
    ids, keys = ([column[row] for row in rows] for column in (texts.ids, texts.keys))
    found = deduplicate_texts(ids, keys, lambda row: texts.text_of(rows[row]), language, threshold=threshold, seed=seed)
    return _among(found, rows)


def _by_encoder(
    texts: Texts, rows: Sequence[int], encoder: Encoder, threshold: float, seed: int, search: SearchName
) -> Deduplicated:
    ids, keys = ([column[row] for row in rows] for column in (texts.ids, texts.keys))
    found = deduplicate(
        ids,
        keys,
        texts.encode(encoder, rows),
        lambda row: encoder.encode_alone(texts.text_of(rows[row])),
        threshold=threshold,
        seed=seed,
        search=search,
        slack=encoder.slack,
    )
    return _among(found, rows)


def _among(found: Deduplicated, rows: Sequence[int]) -> Deduplicated:
    """The result for some of the rows, by what these are among all."""
    dropped = tuple(replace(each, row=rows[each.row], closest=rows[each.closest]) for each in found.dropped)
    return replace(found, kept=tuple(rows[row] for row in found.kept), dropped=dropped)


def join_results(results: Sequence[Deduplicated], ids: Sequence[str], seed: int) -> Deduplicated:
    """Results for different rows as one, in the order in which all rows together would be walked."""
    if len(results) == 1:
        return results[0]
    step = {row: step for step, row in enumerate(_walk_order(ids, seed))}
    kept = sorted((row for each in results for row in each.kept), key=step.__getitem__)
    dropped = sorted((dropped for each in results for dropped in each.dropped), key=lambda dropped: step[dropped.row])
    recalls = [each.recall for each in results if each.recall is not None]
    return Deduplicated(tuple(kept), tuple(dropped), sum(recalls, Recall(0, 0)) if recalls else None)


def duplicate_rows(table: str, ids: Sequence[str], dropped: Iterable[Dropped]) -> list[Duplicate]:
    """The rows of `duplicates` for dropped rows of a table."""
    return [
        Duplicate(
            table_name=table,
            row_id=ids[each.row],
            duplicate_of=ids[each.closest],
            cosine=each.cosine,
            method=each.method,
        )
        for each in dropped
    ]


_WHY: dict[Method, str] = {
    "exact": "have the text of a kept one",
    "embedding": "are near one by the encoder",
    "minhash": "are near one by their characters",
}


def warn_if_most_dropped(what: str, n: int, dropped: Iterable[tuple[Method, str]], setting: str) -> None:
    """Logs a warning where more than half of the `n` texts of `what` were dropped: how, and because of whom.

    `dropped` has for each the method and the kept one it is like; `setting` decided from what likeness.
    """
    pairs = list(dropped)
    if 2 * len(pairs) <= n:
        return
    by_method, by_kept = Counter(method for method, _ in pairs), Counter(kept for _, kept in pairs)
    why = ", ".join(f"{count:,} {_WHY[method]}" for method, count in by_method.most_common())
    ((most, times),) = by_kept.most_common(1)
    log.warning(
        "%s: deduplication dropped %s of %s: %s. %s are like %s. Look at them in the table `duplicates` before you go "
        "on: texts of one template, or %s too low?",
        *(what, f"{len(pairs):,}", f"{n:,}", why, f"{times:,}", most, setting),
    )


def deduplicate_texts(
    ids: Sequence[str], keys: Sequence[str], text_of: TextOf, language: Language, *, threshold: float, seed: int
) -> Deduplicated:
    """Keeps a text unless it has at least `threshold` of its characters' sequences in common with one kept before it,
    the nearest of which it then names. Width, case and spaces make no difference. `keys` are equal for equal texts; a
    text is read by its row when its step comes."""
    near = NearTexts(language, threshold)
    kept: list[int] = []
    dropped: list[Dropped] = []
    first: dict[str, int] = {}
    for row in _walk_order(ids, seed):
        same = first.get(keys[row])
        if same is not None:
            dropped.append(Dropped(row, same, None, "exact"))
            continue
        closest = near.keep_unless_near(fold(text_of(row), joint=""))
        if closest is not None:
            dropped.append(Dropped(row, kept[closest], None, "minhash"))
            continue
        kept.append(row)
        first[keys[row]] = row
    return Deduplicated(tuple(kept), tuple(dropped))


def deduplicate(
    ids: Sequence[str],
    keys: Sequence[str],
    vectors: np.ndarray,
    exact_vector: ExactVector,
    *,
    threshold: float,
    seed: int,
    search: SearchName = "exact",
    block: int = BLOCK,
    slack: float = SLACK,
) -> Deduplicated:
    """Walks vectors as the module says; `ids`, `keys` (equal for equal texts) and the rows of `vectors` (unit, float32
    [n, d]) belong together. A zero vector is close to nothing. `block` and exact ways of searching change how long it
    takes; `slack` is how far a cosine of `vectors` may be from that of `exact_vector`.

    Raises TableError for a vector that is neither unit nor zero, NaN included.
    """
    vectors = np.ascontiguousarray(vectors, np.float32)
    check_lengths(vectors, ids)
    order = np.array(_walk_order(ids, seed), np.int64)
    finder = open_search(search, vectors, order, threshold - slack, rival=2 * slack)
    walk = _Walk(order.tolist(), keys, vectors, exact_vector, threshold, finder, slack)
    for start in range(0, len(order), block):
        walk.decide(range(start, min(start + block, len(order))))
    return walk.result()


def check_lengths(vectors: np.ndarray, ids: Sequence[str]) -> None:
    """TableError naming the first vector whose length is neither 0 nor 1."""
    squared = np.vecdot(vectors, vectors)
    wrong = np.flatnonzero(~((abs(squared - 1) < 1e-3) | (squared == 0)))
    if len(wrong):
        length = float(np.sqrt(squared[wrong[0]]))
        raise TableError(
            f"expected unit vectors, found one of length {length} for {ids[int(wrong[0])]!r}: its stored embedding is "
            "damaged. Delete the folder cache/embeddings in the artifacts folder and run again."
        )


def _walk_order(ids: Sequence[str], seed: int) -> list[int]:
    return seeded_order(ids, seed, "personas.dedupe")


def _find_repeats(ids: Sequence[str], keys: Sequence[str], seed: int) -> list[Dropped]:
    first: dict[str, int] = {}
    closest = [(row, first.setdefault(keys[row], row)) for row in _walk_order(ids, seed)]
    return [Dropped(row, kept, None, "exact") for row, kept in closest if row != kept]


@dataclass
class _Walk:
    """What has been decided so far, by step; keys, vectors and exact vectors are by row."""

    order: list[int]
    keys: Sequence[str]
    """Equal for equal texts."""
    vectors: np.ndarray
    exact_vector: ExactVector
    threshold: float
    search: KeptSearch
    slack: float
    """How far a cosine of `vectors` may be from that of `exact_vector`."""
    first: dict[str, int] = field(default_factory=dict)
    """Kept steps by key."""
    dropped: dict[int, Dropped] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.is_kept = np.zeros(len(self.order), bool)

    def decide(self, block: range) -> None:
        """Decides the steps of one block; its kept ones are found by later searches."""
        steps = np.array([step for step in block if not self._drop_repeat(step)], np.int64)
        pairs = self._find_pairs(steps)
        starts = np.searchsorted(pairs.query, np.arange(len(steps) + 1)).tolist()
        for step, start, stop in zip(steps.tolist(), starts, starts[1:], strict=False):
            if self._drop_repeat(step) or (start < stop and self._drop_near(step, pairs, start, stop)):
                continue
            self.is_kept[step] = True
            self.first[self.keys[self.order[step]]] = step
        self.search.keep(steps[self.is_kept[steps]])

    def result(self) -> Deduplicated:
        kept = (self.order[step] for step in np.flatnonzero(self.is_kept).tolist())
        dropped = (self.dropped[step] for step in sorted(self.dropped))
        return Deduplicated(tuple(kept), tuple(dropped), self.search.measure_recall())

    def _find_pairs(self, steps: np.ndarray) -> Pairs:
        """What is near each step: kept ones, and those of the block that come first and may yet be kept."""
        kept = self.search.near(steps)
        open_ = kept.highest(len(steps)) < self.threshold + self.slack
        return Pairs.join([kept, self.search.within(steps, open_)])

    def _drop_repeat(self, step: int) -> bool:
        """Whether the same text was kept before; then the step is dropped."""
        same = self.first.get(self.keys[self.order[step]])
        if same is not None:
            self._drop(step, same, None, "exact")
        return same is not None

    def _drop_near(self, step: int, pairs: Pairs, start: int, stop: int) -> bool:
        """Whether one of the kept among the pairs of a step is too close; then it is dropped."""
        near = pairs.step[start:stop]
        is_kept = self.is_kept[near] & (pairs.cosine[start:stop] > self.threshold - self.slack)
        if not is_kept.any():
            return False
        near, cosines = near[is_kept], pairs.cosine[start:stop][is_kept]
        rivals = near[cosines > cosines.max() - 2 * self.slack].tolist()
        if len(rivals) == 1 and cosines.max() > self.threshold + self.slack:
            closest, cosine = rivals[0], float(self._stored(step) @ self._stored(rivals[0]))
        else:
            closest, cosine = self._find_closest(step, rivals)
        if cosine >= self.threshold:
            self._drop(step, closest, cosine, "embedding")
        return cosine >= self.threshold

    def _find_closest(self, step: int, rivals: list[int]) -> tuple[int, float]:
        """The rival with the highest exact cosine, the first kept of equal ones, and that cosine."""
        own = self._exact(step)
        cosines = [float(np.vecdot(self._exact(rival), own)) for rival in rivals]
        best = int(np.argmax(cosines))
        return rivals[best], cosines[best]

    def _drop(self, step: int, closest: int, cosine: float | None, method: Method) -> None:
        self.dropped[step] = Dropped(self.order[step], self.order[closest], cosine, method)

    def _exact(self, step: int) -> np.ndarray:
        return self.exact_vector(self.order[step])

    def _stored(self, step: int) -> np.ndarray:
        vector = self.vectors[self.order[step]].astype(np.float64)
        return np.asarray(vector / np.linalg.norm(vector))
