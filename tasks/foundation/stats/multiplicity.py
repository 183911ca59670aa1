"""Several comparisons at once: Holm's correction of p-values, and which differences are not 0, all of them together.

statsmodels has Holm's too, but ends every call with a full garbage collection, which costs seconds for the hundreds
of families of a build; tests hold this one against it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

CONFIDENCE = 0.95
ROUNDING = 1e-9
"""What differs by no more than this is the same."""


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm-adjusted p in the order given; None stays None and does not count as a test. Empty → empty."""
    tested = [place for place, p in enumerate(p_values) if p is not None]
    p = np.array([p_values[place] for place in tested], dtype=float)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1.0)
    adjusted: list[float | None] = [None] * len(p_values)
    for place, value in zip(order, stepped, strict=True):
        adjusted[tested[place]] = float(value)
    return adjusted


def least_holm(tests: int, resamples: int) -> float:
    """The least that Holm's p can be of the smallest of `tests` bootstrap p-values (`two_sided_p`)."""
    return min(1.0, 2 * max(tests, 1) / (resamples + 1))


def find_apart(differences: np.ndarray, resampled: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Which of `differences` [k] are not 0, all of them together with 95 % confidence; `resampled` [resamples, k] are
    the same of bootstrap resamples, `clusters` [k] how many dialogues each rests on. NaN is never apart.

    The largest |resampled − observed| / SE over all k, of each resample, gives the one bound for |observed| / SE (a
    single-step maximum statistic; the SE of a difference is that of its resamples). It is widened from the normal to
    Student's t of the fewest dialogues, since the SE is itself found from them.
    """
    from scipy import stats

    known = np.isfinite(differences) & np.isfinite(resampled).all(axis=0)
    apart = np.zeros(len(differences), dtype=bool)
    if not known.any() or len(resampled) < 2:
        return apart
    errors = resampled.std(axis=0, ddof=1) * np.sqrt(clusters / np.maximum(clusters - 1, 1))
    varies = known & (errors > ROUNDING * np.maximum(1.0, np.abs(differences)))
    if varies.any():
        largest = (np.abs(resampled - differences)[:, varies] / errors[varies]).max(axis=1)
        bound = float(np.quantile(largest, CONFIDENCE))
        bound = float(stats.t.isf(stats.norm.sf(bound), int(clusters[varies].min()) - 1))
        apart[varies] = np.abs(differences[varies]) > bound * errors[varies]
    same = known & ~varies
    apart[same] = np.abs(differences[same]) > ROUNDING
    return apart
