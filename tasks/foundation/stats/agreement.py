"""Agreement of raters, each statistic with its effective n and a 95 % interval clustered by dialogue.

Values come from scikit-learn, statsmodels, krippendorff and scipy; the formulas here compute the same from
sums over clusters, which those libraries cannot resample (tests hold the two against each other). Gwet's AC1
is in none of them.

Unless said otherwise a statistic is None for fewer than two items and where chance alone explains everything
(all ratings equal): there is nothing to correct for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Literal

import numpy as np

from tasks.foundation.stats.bootstrap import FEWEST, Bootstrap, wilson_interval
from tasks.foundation.stats.ratings import Ratings
from tasks.foundation.stats.sums import Formula, by_cluster, quotient, ratio

Level = Literal["nominal", "ordinal"]


@dataclass(frozen=True, slots=True)
class Agreed:
    """One statistic. `n` counts the items it rests on; value and interval are None where not computable."""

    statistic: str
    value: float | None
    n: int
    ci_low: float | None
    ci_high: float | None


def raw_agreement(ratings: Ratings, bootstrap: Bootstrap) -> Agreed:
    """Mean over items with ≥ 2 ratings of the share of rater pairs that agree; 1.0 for all-equal ratings,
    computable from one item on."""
    rated = ratings.rated_by(2)
    columns = np.stack([_pair_share(rated), np.ones(len(rated.codes))], axis=1)
    return _agreed("raw", _mean(columns[:, 0]), rated, columns, ratio(), bootstrap)


def cohen_kappa(ratings: Ratings, bootstrap: Bootstrap, weights: Literal["quadratic"] | None = None) -> Agreed:
    """Cohen's κ of two raters over the items both rated; quadratic weights are over the places of the levels,
    so the scale must be complete and even (rate halves on doubled scores)."""
    from sklearn.metrics import cohen_kappa_score

    both = ratings.complete
    value = None
    if len(both.codes) >= FEWEST and len(np.unique(both.codes)) > 1:
        value = float(
            cohen_kappa_score(*both.codes.T, labels=np.arange(len(both.levels)), weights=weights),
        )
    name = "cohen_kappa_quadratic" if weights else "cohen_kappa"
    a, b = both.codes.T
    sums = count_joint(a, b, len(both.levels), len(both.levels), both.clusters)
    return measure_sums(name, value, sums, len(both.codes), kappa_formula(len(both.levels), weights), bootstrap)


def fleiss_kappa(ratings: Ratings, bootstrap: Bootstrap) -> Agreed:
    """Fleiss' κ over the items that every rater rated (it needs equally many ratings an item)."""
    from statsmodels.stats.inter_rater import fleiss_kappa as library

    rated = ratings.complete
    value = None
    if len(rated.codes) >= FEWEST and len(np.unique(rated.codes)) > 1:
        value = float(library(rated.counts, method="fleiss"))
    columns = np.column_stack([_pair_share(rated), np.ones(len(rated.codes)), rated.counts])
    return _agreed("fleiss_kappa", value, rated, columns, fleiss_formula, bootstrap)


def krippendorff_alpha(ratings: Ratings, bootstrap: Bootstrap, level: Level = "nominal") -> Agreed:
    """Krippendorff's α over the items with ≥ 2 ratings; missing ratings are allowed."""
    import krippendorff

    rated = ratings.rated_by(2)
    value = None
    if len(rated.codes) >= FEWEST and len(np.unique(rated.codes[rated.given])) > 1:
        numbers = np.where(rated.given, rated.codes, np.nan).astype(float)
        domain = list(range(len(rated.levels)))
        value = float(krippendorff.alpha(reliability_data=numbers.T, level_of_measurement=level, value_domain=domain))
    q = len(rated.levels)
    name = "krippendorff_alpha" if level == "nominal" else "krippendorff_alpha_ordinal"
    return measure_sums(name, value, _coincidences(rated), len(rated.codes), alpha_formula(q, level), bootstrap)


def gwet_ac1(ratings: Ratings, bootstrap: Bootstrap) -> Agreed:
    """Gwet's AC1 (2008) over the items with ≥ 2 ratings: chance is Σ π(1 − π) / (q − 1) over the q levels of
    the scale, which stays small where nearly all ratings are alike. 1.0 for all-equal ratings; None for a
    scale of one level and for fewer than two items."""
    rated = ratings.rated_by(2)
    shares = quotient(rated.counts, rated.counts.sum(axis=1, keepdims=True))
    columns = np.column_stack([_pair_share(rated), np.ones(len(rated.codes)), shares])
    value = None
    if len(rated.codes) >= FEWEST:
        value = _number(ac1_formula(columns.sum(axis=0)))
    return _agreed("ac1", value, rated, columns, ac1_formula, bootstrap)


def pearson(x: np.ndarray, y: np.ndarray, clusters: np.ndarray, bootstrap: Bootstrap) -> Agreed:
    """Pearson's r of two series [n] without gaps; None for n < 2 and when either is constant."""
    from scipy.stats import pearsonr

    varied = len(x) >= FEWEST and np.ptp(x) > 0 and np.ptp(y) > 0
    value = float(pearsonr(x, y).statistic) if varied else None
    a, b = (series - series.mean() if len(series) else series for series in (x, y))
    columns = np.column_stack([a, b, a * a, b * b, a * b, np.ones(len(a))])
    return measure_columns("pearson", value, columns, pearson_formula, clusters, bootstrap)


def spearman_rho(x: np.ndarray, y: np.ndarray, clusters: np.ndarray, bootstrap: Bootstrap) -> Agreed:
    """Spearman's ρ of two series [n] without gaps; None for n < 2 and when either is constant."""
    from scipy.stats import spearmanr

    varied = len(x) >= FEWEST and np.ptp(x) > 0 and np.ptp(y) > 0
    value = float(spearmanr(x, y).statistic) if varied else None
    (levels_x, codes_x), (levels_y, codes_y) = (np.unique(series, return_inverse=True) for series in (x, y))
    p, q = len(levels_x), len(levels_y)
    sums = count_joint(codes_x, codes_y, p, q, clusters)
    return measure_sums("spearman", value, sums, len(x), spearman_formula(p, q), bootstrap)


def mean_of(name: str, values: np.ndarray, clusters: np.ndarray, bootstrap: Bootstrap) -> Agreed:
    """The mean of a series [n] without gaps as a statistic (bias, shares); computable from one item on."""
    columns = np.stack([values, np.ones(len(values))], axis=1)
    return measure_columns(name, _mean(values), columns, ratio(), clusters, bootstrap)


def mean_pair_kappa(name: str, pairs: Sequence[Ratings], bootstrap: Bootstrap) -> Agreed:
    """Mean over pairs of raters of quadratic-weighted Cohen's κ (pairs where it is not computable are left
    out); `pairs` rate the same items on one scale. `n`: items rated by both of at least one pair."""
    values = [cohen_kappa(pair, NO_INTERVAL, "quadratic").value for pair in pairs]
    known = [value for value in values if value is not None]
    if not pairs:
        return Agreed(name, None, 0, None, None)
    q = len(pairs[0].levels)
    columns = np.concatenate([pair.joint for pair in pairs], axis=1)
    used = columns.any(axis=1)
    formula = mean_kappa_formula(len(pairs), q)
    value = sum(known) / len(known) if known else None
    return measure_columns(name, value, columns[used], formula, pairs[0].clusters[used], bootstrap)


def rater_pairs(ratings: Ratings) -> list[Ratings]:
    """The ratings of every two raters."""
    return [ratings.pick(a, b) for a, b in combinations(range(len(ratings.raters)), 2)]


def kappa_formula(q: int, weights: Literal["quadratic"] | None) -> Formula:
    """Joint tables [..., q · q] → 1 − observed / expected disagreement."""
    places = np.arange(q)
    apart = (places[:, None] - places[None, :]) ** 2 if weights else 1 - np.eye(q)

    def formula(sums: np.ndarray) -> np.ndarray:
        table = sums.reshape(*sums.shape[:-1], q, q)
        rows, columns = table.sum(axis=-1), table.sum(axis=-2)
        expected = np.einsum("...i,...j,ij->...", rows, columns, apart)
        total = table.sum(axis=(-1, -2))
        return 1 - quotient((table * apart).sum(axis=(-1, -2)) * total, expected)

    return formula


def mean_kappa_formula(pairs: int, q: int) -> Formula:
    """Joint tables of several pairs [..., pairs · q · q] → the mean of their quadratic κ, undefined ones left out."""
    one = kappa_formula(q, "quadratic")

    def formula(sums: np.ndarray) -> np.ndarray:
        each = one(sums.reshape(*sums.shape[:-1], pairs, q * q))
        return quotient(np.nansum(each, axis=-1), np.isfinite(each).sum(axis=-1))

    return formula


def fleiss_formula(sums: np.ndarray) -> np.ndarray:
    """Columns [Σ pair share, items, ratings of each level] → Fleiss' κ."""
    observed = quotient(sums[..., 0], sums[..., 1])
    shares = quotient(sums[..., 2:], sums[..., 2:].sum(axis=-1, keepdims=True))
    chance = (shares**2).sum(axis=-1)
    return quotient(observed - chance, np.where(chance > 1 - 1e-12, 0.0, 1 - chance))


def ac1_formula(sums: np.ndarray) -> np.ndarray:
    """Columns [Σ pair share, items, Σ share of each level] → Gwet's AC1."""
    observed = quotient(sums[..., 0], sums[..., 1])
    shares = quotient(sums[..., 2:], sums[..., 1, None])
    q = shares.shape[-1]
    if q < 2:
        return np.full(observed.shape, np.nan)
    chance = (shares * (1 - shares)).sum(axis=-1) / (q - 1)
    return quotient(observed - chance, 1 - chance)


def alpha_formula(q: int, level: Level) -> Formula:
    """Coincidence matrices [..., q · q] → Krippendorff's α."""

    def formula(sums: np.ndarray) -> np.ndarray:
        table = sums.reshape(*sums.shape[:-1], q, q)
        uses = table.sum(axis=-1)
        apart = _ordinal_distance(uses) if level == "ordinal" else np.broadcast_to(1 - np.eye(q), table.shape)
        expected = (uses[..., :, None] * uses[..., None, :] * apart).sum(axis=(-1, -2))
        observed = (table * apart).sum(axis=(-1, -2)) * (uses.sum(axis=-1) - 1)
        return 1 - quotient(observed, expected)

    return formula


def pearson_formula(sums: np.ndarray) -> np.ndarray:
    """Columns [Σx, Σy, Σxx, Σyy, Σxy, n] → r; NaN when either is constant."""
    x, y, xx, yy, xy, n = np.moveaxis(sums, -1, 0)
    spread = np.sqrt(np.clip(n * xx - x * x, 0, None)) * np.sqrt(np.clip(n * yy - y * y, 0, None))
    scale = np.maximum(1.0, n * n)
    return quotient(n * xy - x * y, np.where(spread <= 1e-12 * scale, 0.0, spread))


def spearman_formula(p: int, q: int) -> Formula:
    """Joint tables [..., p · q] over sorted levels → Pearson's r of the mid-ranks."""

    def formula(sums: np.ndarray) -> np.ndarray:
        table = sums.reshape(*sums.shape[:-1], p, q)
        rows, columns = table.sum(axis=-1), table.sum(axis=-2)
        n = rows.sum(axis=-1)
        a, b = _centred_ranks(rows), _centred_ranks(columns)
        covariance = np.einsum("...ij,...i,...j->...", table, a, b)
        spread = np.sqrt((rows * a**2).sum(axis=-1)) * np.sqrt((columns * b**2).sum(axis=-1))
        return quotient(covariance, np.where(spread <= 1e-9 * np.maximum(n, 1), 0.0, spread))

    return formula


SHARES = frozenset({"raw", "accuracy", "flips", "within_1", "same_third"})
"""Statistics that are shares of what is counted."""

NO_INTERVAL = Bootstrap(0, 0)
"""Where only the value is asked for."""


def _centred_ranks(counts: np.ndarray) -> np.ndarray:
    """Mid-ranks of levels used `counts` times [..., k], less their mean."""
    total = counts.sum(axis=-1, keepdims=True)
    return np.cumsum(counts, axis=-1) - counts / 2 - total / 2


def _pair_share(ratings: Ratings) -> np.ndarray:
    """Per item, the share of ordered pairs of its ratings that are equal [items]; NaN for one rating."""
    counts = ratings.counts
    given = counts.sum(axis=1)
    return quotient((counts * (counts - 1)).sum(axis=1), given * (given - 1))


def count_joint(x: np.ndarray, y: np.ndarray, p: int, q: int, clusters: np.ndarray) -> np.ndarray:
    """How often each pair of codes [n] below p and q meets in each cluster that occurs: [clusters, p · q]."""
    return _count_in_clusters(x * q + y, np.ones(len(x)), clusters, p * q)


def _coincidences(ratings: Ratings) -> np.ndarray:
    """Coincidence matrices summed by cluster [clusters, q · q]; items have ≥ 2 ratings."""
    q, raters = len(ratings.levels), ratings.codes.shape[1]
    weights = quotient(np.ones(len(ratings.codes)), ratings.given.sum(axis=1) - 1)
    several = []
    for a, b in permutations(range(raters), 2):
        both = ratings.given[:, a] & ratings.given[:, b]
        pairs = ratings.codes[both, a] * q + ratings.codes[both, b]
        several.append((pairs, weights[both], ratings.clusters[both]))
    codes, shares, clusters = (np.concatenate(each) for each in zip(*several, strict=True))
    return _count_in_clusters(codes, shares, clusters, q * q)


def _count_in_clusters(codes: np.ndarray, weights: np.ndarray, clusters: np.ndarray, size: int) -> np.ndarray:
    """The weights of each code [n] below `size` summed within the clusters that occur, in code order."""
    found, places = np.unique(clusters, return_inverse=True)
    summed = np.bincount(places * size + codes, weights=weights, minlength=len(found) * size)
    return summed.reshape(len(found), size)


def _ordinal_distance(uses: np.ndarray) -> np.ndarray:
    """Krippendorff's ordinal metric from how often each level is used: [..., q] → [..., q, q]."""
    middle = np.cumsum(uses, axis=-1) - uses / 2
    return (middle[..., :, None] - middle[..., None, :]) ** 2


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None


def _number(value: np.ndarray) -> float | None:
    return float(value) if np.isfinite(value) else None


def _agreed(
    name: str, value: float | None, ratings: Ratings, columns: np.ndarray, formula: Formula, bootstrap: Bootstrap
) -> Agreed:
    return measure_columns(name, value, columns, formula, ratings.clusters, bootstrap)


def measure_columns(
    name: str,
    value: float | None,
    columns: np.ndarray,
    formula: Formula,
    clusters: np.ndarray,
    bootstrap: Bootstrap,
) -> Agreed:
    """A statistic of columns [n, k] with the interval of `formula` over their sums; `n` is theirs."""
    return measure_sums(name, value, by_cluster(columns, clusters), len(columns), formula, bootstrap)


def measure_sums(
    name: str, value: float | None, sums: np.ndarray, n: int, formula: Formula, bootstrap: Bootstrap
) -> Agreed:
    """A statistic of `n` items with the interval of `formula` over what their clusters sum to [clusters, k]. A share of
    0 or 1, whose resamples are all alike, has Wilson's interval of its clusters."""
    if value is not None and math.isnan(value):
        value = None
    interval = None
    if value is not None and bootstrap.resamples:
        interval = bootstrap.interval(sums, formula)
        if interval is None and name in SHARES and value in (0.0, 1.0):
            interval = wilson_interval(value, len(sums)) if len(sums) >= FEWEST else None
    ends = (None, None) if interval is None else (interval.low, interval.high)
    return Agreed(name, value, n, *ends)
