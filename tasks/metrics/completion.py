"""Whether and how well the final intent was met (EYT-Bench section 3.5.2): FICR and satisfaction."""

from __future__ import annotations

import numpy as np

from tasks.foundation.stats.sums import ratio
from tasks.metrics.observed import Observed, mean_over_units
from tasks.metrics.panel import combine_verdicts


def compute_completion_metrics(completed: np.ndarray, judged: np.ndarray, void: np.ndarray) -> list[Observed]:
    """`ficr` and `final_intent_undecided`, shares of the judged conversations.

    `completed` [conversations, judges] in {0, 1}, NaN for a vote that is missing; `judged` [conversations]:
    some judge of the panel has a row (an unreadable one too). Completed is what a strict majority of the
    panel says; a dialogue without one (ties, missing votes) is not completed, and undecided. A conversation
    that was never judged is unscored.
    """
    verdict = combine_verdicts(completed)
    counted = judged & ~void
    done, undecided = (verdict == 1) & counted, np.isnan(verdict) & counted
    return [
        _share("ficr", done, counted, judged, void),
        _share("final_intent_undecided", undecided, counted, judged, void),
    ]


def satisfaction(scores: np.ndarray, void: np.ndarray) -> Observed:
    """Mean over judges of s in 1–5, reported as (s − 1) / 4 · 100; scores [conversations, judges], NaN unscored."""
    scored = np.isfinite(scores)
    count = scored.sum(axis=1)
    total = np.where(scored, scores, 0).sum(axis=1)
    mean = np.divide(total, count, out=np.full(len(scores), np.nan), where=count > 0)
    return mean_over_units("satisfaction", (mean - 1) / 4, void=void, scale=100.0)


def _share(metric: str, hits: np.ndarray, counted: np.ndarray, judged: np.ndarray, void: np.ndarray) -> Observed:
    columns = np.stack([hits, counted], axis=1).astype(float)
    return Observed(metric, columns, ratio(), counted, ~judged & ~void, void)
