"""What several judges together say: panel rules over scores and verdicts. Pure; the order of judges never matters.

The panel is the *configured* one, so a missing judgement never helps anyone. Arrays hold NaN where a judge
gave nothing.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import numpy as np

Rule = Literal["majority", "mean"]

PRESENT = 0.5
"""Share of what it should judge from which a judge has judged a target."""


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


def find_common_judges(
    panel: Sequence[str], judged_by: Mapping[str, Collection[str]]
) -> tuple[tuple[str, ...], frozenset[str]]:
    """On whose judgements all targets can be compared: the judges of the panel that have judged each of them, and these
    targets; `judged_by`: the judges of each target that has anything to judge.

    Where no judge has judged all, those who judged the targets of the one that has judged most (the first by name of
    several) count, and the other targets are left out.
    """
    seen = {target: set(judges) & set(panel) for target, judges in judged_by.items()}
    times = Counter(judge for judges in seen.values() for judge in judges)
    if not times:
        return tuple(panel), frozenset(judged_by)
    most = min(times, key=lambda judge: (-times[judge], judge))
    targets = frozenset(target for target, judges in seen.items() if most in judges)
    common = set.intersection(*(seen[target] for target in targets))
    return tuple(judge for judge in panel if judge in common), targets


def judges_by_target(
    judged: np.ndarray, owed: np.ndarray, targets: np.ndarray, panel: Sequence[str]
) -> dict[str, set[str]]:
    """The judges that have judged half or more of what is to be judged of each target, or, where none has, most of it:
    `judged` [units, judges], `owed` [units], `targets` [units]. Targets of which nothing is judged are left out."""
    found = {}
    for target in sorted(set(targets[owed])):
        shares = judged[owed & (targets == target)].mean(axis=0)
        enough = min(PRESENT, float(shares.max(initial=0.0)))
        if enough:
            found[str(target)] = {judge for judge, share in zip(panel, shares, strict=True) if share >= enough}
    return found
