"""Bootstrap clustered by dialogue: seeded, percentile, vectorised (design: uncertainty and comparison).

A resample draws as many clusters of each stratum as there are, with replacement. Its draw depends on the seed and the
numbers of clusters only, so two targets on the same dialogues (in the same order) meet the same resamples,
and the difference of their values, resample by resample, is paired. A dialogue that adds nothing to a value
(void, unscored) is drawn all the same, which keeps the resamples of all targets the same.

Where dialogues share characters, they are not independent: `widening` says how much wider the resampled values have to
lie.

Fewer than two clusters, or values that no resample can tell apart (all equal), have no interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tasks.foundation.ids import seed_of
from tasks.foundation.stats.sums import Formula

CONFIDENCE = 0.95
_TAILS = [50 * (1 - CONFIDENCE), 100 - 50 * (1 - CONFIDENCE)]
_AT_ONCE = 64
"""Columns that a formula takes together: what fits a processor's cache."""
_MOST_KEPT = 2**23
"""Counts (64 MiB) that stay for the next who asks for them."""
_MOST_DRAWN = 2**20
"""Counts that are drawn at once."""
FEWEST = 2
"""Clusters from which there is anything to resample."""
SAME = 1e-12
"""Resampled values closer than this (relative) are equal: what differs is only the order of summing."""
NOTHING = 1e-9
"""Differences smaller than this (relative to what differs, and never to less than 1) are 0, for the same reason."""


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Design:
    """How the clusters of a sample lie: the stratum of each (codes from 0, all of them used) [clusters], and the
    characters that take part in each [clusters, 2] (codes, -1: not known); None: no cluster shares any."""

    strata: np.ndarray
    characters: np.ndarray | None = None

    @staticmethod
    def simple(clusters: int) -> Design:
        """One stratum, nothing shared."""
        return Design(np.zeros(clusters, dtype=int))

    @cached_property
    def rows(self) -> list[np.ndarray]:
        """The places of each stratum's clusters."""
        return [np.nonzero(self.strata == stratum)[0] for stratum in range(int(self.strata.max(initial=-1)) + 1)]


@dataclass(frozen=True, eq=False)
class Cut:
    """Sums are those of something larger, `whole` [clusters, k], but for a few clusters: `rows` (places, ascending).
    What parts have of one whole, and of one array of rows, is resampled together."""

    whole: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Part:
    """What is resampled: columns summed by cluster [clusters, k], and the formula of the value, which is the plain mean
    of the formula's values in the strata; `strata`: only in these. NaN where one of them has none. `cut`: what the sums
    hardly differ from; resamples are found sooner with it, and are the same but for rounding."""

    sums: np.ndarray
    formula: Formula
    strata: Sequence[int] | None = None
    cut: Cut | None = None

    @property
    def how(self) -> tuple[Formula, Sequence[int] | None]:
        """How its value is found from sums."""
        return self.formula, self.strata

    def value(self, design: Design) -> float:
        """Over all clusters."""
        return float(self.average([np.atleast_2d(self.sums[rows].sum(axis=0)) for rows in design.rows])[0])

    def average(self, by_stratum: Sequence[np.ndarray]) -> np.ndarray:
        """Sums of each stratum [..., k] → values [...]."""
        chosen = range(len(by_stratum)) if self.strata is None else self.strata
        values = [self.formula(by_stratum[stratum]) for stratum in chosen]
        if len(values) == 1:
            return values[0]
        return np.mean(values, axis=0) if values else np.full(by_stratum[0].shape[:-1] if by_stratum else 1, np.nan)

    def pulls(self, design: Design) -> np.ndarray:
        """The value less that without each cluster [clusters]; NaN where either is not defined, 0 of a cluster in none
        of the strata that count."""
        chosen = range(len(design.rows)) if self.strata is None else self.strata
        found = np.zeros(self.sums.shape[:-1])
        for stratum in chosen:
            rows = design.rows[stratum]
            whole = self.sums[rows].sum(axis=0)
            found[rows] = (self.formula(whole) - self.formula(whole - self.sums[rows])) / len(chosen)
        return found

    def effects(self, design: Design) -> np.ndarray:
        """How much each cluster adds to the value [clusters]: `pulls`, and 0 where they are not defined."""
        found = self.pulls(design)
        return np.where(np.isfinite(found), found, 0.0)


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """How uncertainty is found: the number of resamples and the seed of their draw."""

    resamples: int
    seed: int

    def counts(self, clusters: int, stratum: int = 0) -> np.ndarray:
        """How often each resample drew each cluster of a stratum: float64 [resamples, clusters], rows summing to
        `clusters`."""
        return _counts(clusters, self.resamples, self.seed, stratum)

    def distributions(self, parts: Sequence[Part], design: Design | None = None) -> list[np.ndarray]:
        """Each part's value in every resample [resamples], NaN where undefined; parts share their clusters, which lie
        as `design` says (None: in one stratum).

        One matrix product a stratum for all of them, in which what several have in common is one column. What is given
        several times comes back as one array.
        """
        if not parts or not self.resamples or len(parts[0].sums) < FEWEST:
            return [np.full(self.resamples, np.nan) for _ in parts]
        design = design or Design.simple(len(parts[0].sums))
        different = list({id(part): part for part in parts}.values())
        wholes = [part.sums if part.cut is None else part.cut.whole for part in different]
        arrays = {id(whole): whole for whole in wholes}
        table, places = _merge_equal(np.concatenate(list(arrays.values()), axis=1))
        edges = np.cumsum([whole.shape[1] for whole in arrays.values()])[:-1]
        columns = dict(zip(arrays, np.split(places, edges), strict=True))
        by_stratum = [self._drawn(table[rows], stratum) for stratum, rows in enumerate(design.rows)]
        added = self._added(different, design)
        values: dict[int, np.ndarray] = {}
        for some in _alike(different):
            its = np.stack([columns[id(wholes[place])] for place in some])
            drawn = [sums[its] for sums in by_stratum]
            for place, part in enumerate(different[each] for each in some):
                for sums, more in zip(drawn, added.get(id(part), ()), strict=False):
                    sums[place] += more
            found = different[some[0]].average([np.moveaxis(sums, 1, 2) for sums in drawn])
            values.update((id(different[place]), one) for place, one in zip(some, found, strict=True))
        return [values[id(part)] for part in parts]

    def _drawn(self, sums: np.ndarray, stratum: int) -> np.ndarray:
        """Sums by cluster of a stratum [clusters, k] in every resample [k, resamples]. The counts of very many clusters
        are not kept, nor all there at once."""
        clusters = len(sums)
        if clusters * self.resamples <= _MOST_KEPT:
            return sums.T @ self.counts(clusters, stratum).T
        some = _draw(clusters, self.resamples, self.seed, stratum)
        return np.concatenate([sums.T @ counts.T for counts in some], axis=1)

    def _added(self, parts: Sequence[Part], design: Design) -> dict[int, list[np.ndarray]]:
        """What the resampled sums of each part that is cut have beyond those of its whole (a negative number where a
        cluster adds less): by id, of each stratum [k, resamples]."""
        alike: dict[int, list[tuple[Part, Cut]]] = {}
        for part in parts:
            if part.cut is not None:
                alike.setdefault(id(part.cut.rows), []).append((part, part.cut))
        added: dict[int, list[np.ndarray]] = {}
        for cuts in alike.values():
            rows = cuts[0][1].rows
            beyond = np.concatenate([part.sums[rows] - cut.whole[rows] for part, cut in cuts], axis=1)
            edges = np.cumsum([part.sums.shape[1] for part, _ in cuts])[:-1]
            for stratum, of_stratum in enumerate(design.rows):
                here = design.strata[rows] == stratum
                counts = self.counts(len(of_stratum), stratum)[:, np.searchsorted(of_stratum, rows[here])]
                for (part, _), found in zip(cuts, np.split(beyond[here].T @ counts.T, edges), strict=True):
                    added.setdefault(id(part), []).append(found)
        return added

    def interval(self, sums: np.ndarray, formula: Formula) -> Interval | None:
        """The 95 % percentile interval; None for fewer than two clusters and for all-equal input."""
        return intervals_of(self.distributions([Part(sums, formula)]))[0]


def share_equal(parts: Sequence[Part]) -> list[Part]:
    """The same parts, equal ones as one object: its values have to be found once."""
    known: dict[object, Part] = {}
    shared = []
    for part in parts:
        strata = None if part.strata is None else tuple(part.strata)
        shared.append(known.setdefault((part.sums.tobytes(), part.formula, strata), part))
    return shared


def values_of(parts: Sequence[Part], design: Design) -> np.ndarray:
    """`Part.value` of each [parts]."""
    found = np.full(len(parts), np.nan)
    for some in _alike(parts):
        sums = np.stack([parts[place].sums for place in some], axis=1)
        found[some] = parts[some[0]].average([sums[rows].sum(axis=0) for rows in design.rows])
    return found


def effects_of(parts: Sequence[Part], design: Design) -> np.ndarray:
    """`Part.effects` of each [clusters, parts]."""
    found = np.zeros((len(design.strata), len(parts)))
    for some in _alike(parts):
        together = Part(np.stack([parts[place].sums for place in some], axis=1), *parts[some[0]].how)
        found[:, some] = together.effects(design)
    return found


def _alike(parts: Sequence[Part]) -> list[list[int]]:
    """The places of parts whose values are found in the same way, at most `_AT_ONCE` columns together."""
    same: dict[object, list[int]] = {}
    for place, part in enumerate(parts):
        formula, strata = part.how
        same.setdefault((formula, part.sums.shape, strata if strata is None else tuple(strata)), []).append(place)
    found = []
    for places in same.values():
        several = max(1, _AT_ONCE // max(1, parts[places[0]].sums.shape[1]))
        found += [places[start : start + several] for start in range(0, len(places), several)]
    return found


def _merge_equal(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different columns of a table, and the place of each of its columns among them."""
    known: dict[bytes, int] = {}
    places = np.array([known.setdefault(column.tobytes(), len(known)) for column in table.T], dtype=int)
    return table[:, np.unique(places, return_index=True)[1]], places


def intervals_of(distributions: Sequence[np.ndarray]) -> list[Interval | None]:
    """The central 95 % of the defined values of each; None where there are none or all are equal."""
    if not distributions or not len(distributions[0]):
        return [None] * len(distributions)
    table = np.stack(distributions)
    with np.errstate(invalid="ignore"):
        whole = np.isfinite(table).all(axis=1)
    ends = np.full((len(table), 2), np.nan)
    ends[whole] = np.percentile(table[whole], _TAILS, axis=1).T
    for place in np.nonzero(~whole)[0]:
        values = table[place][np.isfinite(table[place])]
        ends[place] = np.percentile(values, _TAILS) if len(values) else np.nan
    varying = _vary(table)
    return [
        Interval(float(low), float(high)) if varies else None for varies, (low, high) in zip(varying, ends, strict=True)
    ]


def errors_of(effects: np.ndarray, design: Design) -> np.ndarray:
    """Standard errors [k] of values whose clusters add `effects` [clusters, k], clusters taken for independent (the
    jackknife's, by stratum)."""
    squared = np.zeros(effects.shape[1])
    for rows in design.rows:
        n = len(rows)
        squared += effects[rows].var(axis=0) * n * n / max(n - 1, 1)
    return np.sqrt(squared)


def resampled_errors(effects: np.ndarray, design: Design, bootstrap: Bootstrap) -> np.ndarray:
    """The same of every resample [resamples, k]."""
    squared = np.zeros((effects.shape[1], bootstrap.resamples))
    for stratum, rows in enumerate(design.rows):
        n, counts = len(rows), bootstrap.counts(len(rows), stratum)
        centred = (effects[rows] - effects[rows].mean(axis=0)).T
        sums = centred @ counts.T
        squared += (centred**2 @ counts.T - sums**2 / n) * (n / max(n - 1, 1))
    return np.sqrt(np.maximum(squared, 0.0)).T


def widening(effects: np.ndarray, design: Design) -> np.ndarray:
    """By how much (1 or more) resampled values have to lie further from the value, [k], since clusters share
    characters; `effects` [clusters, k] as `Part.effects` has them.

    √(V / V₀): V₀ takes clusters for independent, V lets any two that share a character vary together (the variance of
    dyadic data: Fafchamps and Gubert 2007; Aronow, Samii and Assenova 2015). Since the n characters are its sample, V
    is times n / (n − 2), and Student's t of n − 2 stands for the normal. Clusters that add nothing do not count.
    """
    from scipy import stats

    nothing = np.ones(effects.shape[1])
    counted = np.abs(effects).max(axis=1, initial=0.0) > 0
    if design.characters is None or not counted.any():
        return nothing
    effects, characters = effects[counted], design.characters[counted]
    if len(np.unique(characters[characters >= 0])) == (characters >= 0).sum():
        return nothing
    alone = -2 - np.arange(characters.size).reshape(characters.shape)
    named, codes = np.unique(np.sort(np.where(characters >= 0, characters, alone), axis=1), return_inverse=True)
    codes = codes.reshape(characters.shape)
    n = max(len(named), 3)
    of_each = np.zeros((n, effects.shape[1]))
    for side in range(2):
        np.add.at(of_each, codes[:, side], effects)
    of_pairs = np.zeros_like(effects)
    np.add.at(of_pairs, np.unique(codes, axis=0, return_inverse=True)[1].ravel(), effects)
    together = (of_each**2).sum(axis=0) - (of_pairs**2).sum(axis=0)
    apart = (effects**2).sum(axis=0)
    ratio = np.divide(together, apart, out=nothing.copy(), where=apart > 0)
    further = stats.t.isf((1 - CONFIDENCE) / 2, n - 2) / stats.norm.isf((1 - CONFIDENCE) / 2)
    widened: np.ndarray = np.sqrt(np.maximum(ratio, 1.0) * n / (n - 2)) * further
    return widened


def spread(resampled: np.ndarray, value: float | np.ndarray, by: float | np.ndarray) -> np.ndarray:
    """Resampled values, each `by` so many times as far from the value."""
    return resampled if np.all(by == 1.0) else value + (resampled - value) * by


def wilson_interval(share: float, n: int) -> Interval:
    """Wilson's 95 % interval of a share of `n` dialogues: for a share of 0 or 1, whose resamples are all alike."""
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(share * n, n, alpha=1 - CONFIDENCE, method="wilson")
    return Interval(float(low), float(high))


def differences(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """`one` less `other`, resample by resample, and exactly 0 where only rounding sets them apart."""
    found = one - other
    with np.errstate(invalid="ignore"):
        found[np.abs(found) <= NOTHING * np.maximum(1.0, np.maximum(np.abs(one), np.abs(other)))] = 0.0
    return found


def two_sided_p(distribution: np.ndarray) -> float | None:
    """p of "no difference" from resampled differences: 2 · (the smaller tail beyond 0, 0 included, + 1) /
    (resamples + 1), at most 1, so never 0. None when no value is defined."""
    return two_sided_ps(distribution[None])[0]


def two_sided_ps(distributions: np.ndarray) -> list[float | None]:
    """`two_sided_p` of each row of [k, resamples]."""
    finite = np.isfinite(distributions)
    tails = [(finite & beyond).sum(axis=1) for beyond in (distributions <= 0, distributions >= 0)]
    defined = finite.sum(axis=1)
    p = np.minimum(1.0, 2 * (np.minimum(*tails) + 1) / (defined + 1))
    return [float(one) if n else None for one, n in zip(p, defined, strict=True)]


def _vary(table: np.ndarray) -> np.ndarray:
    """Which rows of [k, resamples] have defined values that differ."""
    defined = np.isfinite(table)
    least, most = np.where(defined, table, np.inf).min(axis=1), np.where(defined, table, -np.inf).max(axis=1)
    with np.errstate(invalid="ignore"):
        varies: np.ndarray = most - least > SAME * np.maximum(1.0, np.maximum(np.abs(least), np.abs(most)))
    return varies & defined.any(axis=1)


@lru_cache(maxsize=16)
def _counts(clusters: int, resamples: int, seed: int, stratum: int) -> np.ndarray:
    counts = np.concatenate([np.zeros((0, clusters)), *_draw(clusters, resamples, seed, stratum)])
    counts.setflags(write=False)
    return counts


def _draw(clusters: int, resamples: int, seed: int, stratum: int) -> Iterator[np.ndarray]:
    """The counts of all resamples, some resamples at a time: the same, however many at a time."""
    further = (stratum,) if stratum else ()
    generator = np.random.default_rng(seed_of(seed, "bootstrap", clusters, *further))
    several = max(1, _MOST_DRAWN // clusters)
    for start in range(0, resamples, several):
        some = min(several, resamples - start)
        drawn = generator.integers(0, clusters, size=(some, clusters))
        flat = (drawn + clusters * np.arange(some)[:, None]).ravel()
        yield np.bincount(flat, minlength=some * clusters).reshape(some, clusters).astype(float)
