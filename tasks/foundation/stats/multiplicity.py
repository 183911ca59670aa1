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


def find_apart(
    differences: np.ndarray, errors: np.ndarray, resampled: np.ndarray, resampled_errors: np.ndarray
) -> np.ndarray:
    """Which of `differences` [k] with standard `errors` [k] are not 0, all of them together with 95 % confidence;
    `resampled` and `resampled_errors` [resamples, k] are the same of bootstrap resamples. NaN is never apart, nor is
    what more than one resample in twenty leaves undefined.

    The largest |resampled − observed| / resampled error over all k, of each resample, gives the one bound for
    |observed| / error (a single-step maximum statistic of studentised differences: Romano and Wolf 2005). A resample
    whose error is less than half of the observed one has seen too few of the dialogues that differ: it counts as half.
    """
    defined = np.isfinite(resampled) & np.isfinite(resampled_errors)
    known = np.isfinite(differences) & np.isfinite(errors)
    apart = np.zeros(len(differences), dtype=bool)
    if not known.any() or len(resampled) < 2:
        return apart
    known &= defined.mean(axis=0) >= CONFIDENCE
    varies = known & (errors > ROUNDING * np.maximum(1.0, np.abs(differences)))
    if varies.any():
        scale = np.maximum(np.where(defined, resampled_errors, np.inf), errors / 2)[:, varies]
        moved = np.abs(np.where(defined, resampled, differences) - differences)[:, varies]
        bound = float(np.quantile((moved / scale).max(axis=1), CONFIDENCE))
        apart[varies] = np.abs(differences[varies]) > bound * errors[varies]
    same = known & ~varies
    apart[same] = np.abs(differences[same]) > ROUNDING
    return apart
