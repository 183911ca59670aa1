"""What several judges together say: panel rules over scores and verdicts. Pure; the order of judges never matters.

The panel is the *configured* one, so a missing judgement never helps anyone. Arrays hold NaN where a judge
gave nothing.
"""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np

Rule = Literal["majority", "mean"]


def combine_scores(scores: np.ndarray, rule: Rule) -> np.ndarray:
    """One score from each panel's: [..., judges] → [...] (EYT-Bench section 3.6).

    `majority`: the value that more than half of the judges gave, else the median of those given; `mean`: their
    mean. NaN unless more than half of the judges scored.
    """
    judges = scores.shape[-1]
    if judges == 1:
        return scores[..., 0]
    enough = 2 * np.isfinite(scores).sum(axis=-1) > judges
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of panels where nobody scored: NaN, as wanted
        middle = np.nanmean(scores, axis=-1) if rule == "mean" else np.nanmedian(scores, axis=-1)
    settled = np.where(enough, middle, np.nan)
    if rule == "majority":
        for value in np.unique(scores[np.isfinite(scores)]):
            settled = np.where(2 * (scores == value).sum(axis=-1) > judges, value, settled)
    return settled


def combine_verdicts(votes: np.ndarray) -> np.ndarray:
    """The verdict of more than half of the judges on a yes-or-no question: votes [..., judges] in {0, 1} → [...];
    NaN where neither answer has so many (ties, missing votes)."""
    judges = votes.shape[-1]
    verdicts = np.full(votes.shape[:-1], np.nan)
    for answer in (0.0, 1.0):
        verdicts = np.where(2 * (votes == answer).sum(axis=-1) > judges, answer, verdicts)
    return verdicts
