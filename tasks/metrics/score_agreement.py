"""Agreement on scores: of judges with one another, of people, and of judges with people (EYT-Bench Table 15)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tasks.foundation.stats.agreement import (
    Agreed,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    mean_of,
    mean_pair_kappa,
    pearson,
    rater_pairs,
    raw_agreement,
    spearman_rho,
)
from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.stats.ratings import Ratings
from tasks.metrics.label_agreement import Found
from tasks.metrics.subjective import EARLY

PANEL = "panel"
HUMANS = "humans"
HALVES = tuple(np.arange(0, 5.5, 0.5))
"""The places of a dimension's turn scores: doubled, the integers 0–10."""
BIAS_SCALE = 20.0
TOP = 5.0
CLOSE = 1.0


@dataclass(frozen=True, eq=False)
class Judged:
    """Scores of several judges on one thing: [units, judges], NaN where unscored; `clusters` [units].

    `scale`: every possible score, evenly spaced, for quadratic weights; empty for yes-or-no (0, 1).
    `bias_scale` brings a difference to the scale on which the metric is reported.
    """

    category: str
    scores: np.ndarray
    clusters: np.ndarray
    scale: tuple[float, ...]
    bias_scale: float = 1.0


def measure_judge_agreement(judged: Judged, judges: Sequence[str], bootstrap: Bootstrap) -> Iterator[Found]:
    """Of every two judges and of all: raw and κ; for scores quadratic-weighted κ, r, ρ, bias and ordinal α."""
    active = [place for place in range(len(judges)) if np.isfinite(judged.scores[:, place]).any()]
    names = [judges[place] for place in active]
    rated = Ratings.of_scores(judged.scores[:, active], names, judged.clusters, judged.scale)
    for a, b in combinations(range(len(active)), 2):
        pair = rated.pick(a, b).complete
        yield Found(judged.category, pair.raters, raw_agreement(pair, bootstrap))
        yield Found(judged.category, pair.raters, cohen_kappa(pair, bootstrap, "quadratic" if judged.scale else None))
        if judged.scale:
            x, y = pair.values.T
            yield Found(judged.category, pair.raters, pearson(x, y, pair.clusters, bootstrap))
            yield Found(judged.category, pair.raters, spearman_rho(x, y, pair.clusters, bootstrap))
            bias = (x - y) * judged.bias_scale
            yield Found(judged.category, pair.raters, mean_of("bias", bias, pair.clusters, bootstrap))
    if len(active) > 2:
        yield Found(judged.category, rated.raters, fleiss_kappa(rated, bootstrap))
    if len(active) > 1:
        level = "ordinal" if judged.scale else "nominal"
        yield Found(judged.category, rated.raters, krippendorff_alpha(rated, bootstrap, level))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Rated:
    """Turns that people rated on one dimension: `humans` [turns, people] integers 0–5, NaN where not rated;
    `judges` [turns, judges] and `panel` [turns] their scores 0–5; `panel_names` are the judges that the panel consists
    of, others have judged beside it. Positions are 1-based turns; `dimension` is
    the name of its metrics (persona_alignment, so that it is not taken for DEMO's persona elements)."""

    dimension: str
    humans: np.ndarray
    people: tuple[str, ...]
    judges: np.ndarray
    judge_names: tuple[str, ...]
    panel: np.ndarray
    panel_names: tuple[str, ...]
    position: np.ndarray
    target: np.ndarray
    clusters: np.ndarray

    def only(self, turns: np.ndarray) -> Rated:
        rows = (self.humans[turns], self.people, self.judges[turns], self.judge_names, self.panel[turns])
        of_turns = (self.position[turns], self.target[turns], self.clusters[turns])
        return Rated(self.dimension, *rows, self.panel_names, *of_turns)


def measure_human_agreement(rated: Rated, bootstrap: Bootstrap) -> Iterator[Found]:
    """People with one another: raw, mean quadratic-weighted κ over pairs, ordinal α."""
    people = Ratings.of_scores(rated.humans, rated.people, rated.clusters, HALVES)
    if len(rated.people) > 1:
        kappa = mean_pair_kappa("mean_kappa_quadratic", rater_pairs(people), bootstrap)
        for agreed in (
            raw_agreement(people, bootstrap),
            kappa,
            krippendorff_alpha(people, bootstrap, "ordinal"),
        ):
            yield Found(rated.dimension, rated.people, agreed)


def measure_judge_human_agreement(rated: Rated, bootstrap: Bootstrap) -> Iterator[Found]:
    """The panel and each judge against the people's mean H̄; the panel by target too (`empathy/<target>`).

    κ is the mean of quadratic-weighted κ over pairs of a judge and a person: of that judge, or, in the panel's
    row, of every judge of the panel.
    """
    yield from _against_people(rated, rated.dimension, PANEL, rated.panel, bootstrap)
    panel = [place for place, judge in enumerate(rated.judge_names) if judge in rated.panel_names]
    if panel:
        yield Found(rated.dimension, (PANEL, HUMANS), _mean_kappa(rated, panel, bootstrap))
    for place, judge in enumerate(rated.judge_names):
        yield from _against_people(rated, rated.dimension, judge, rated.judges[:, place], bootstrap)
        yield Found(rated.dimension, (judge, HUMANS), _mean_kappa(rated, [place], bootstrap))
    for target in sorted(set(rated.target)):
        part = rated.only(rated.target == target)
        yield from _against_people(part, f"{rated.dimension}/{target}", PANEL, part.panel, bootstrap)


def _against_people(
    rated: Rated, category: str, judge: str, scores: np.ndarray, bootstrap: Bootstrap
) -> Iterator[Found]:
    count = np.isfinite(rated.humans).sum(axis=1)
    both = np.isfinite(scores) & (count > 0)
    mean = np.nansum(rated.humans[both], axis=1) / count[both]
    score, clusters, early = scores[both], rated.clusters[both], rated.position[both] <= EARLY
    apart = score - mean
    statistics: list[Agreed] = [
        pearson(score, mean, clusters, bootstrap),
        spearman_rho(score, mean, clusters, bootstrap),
        mean_of("bias", apart * BIAS_SCALE, clusters, bootstrap),
        mean_of("bias_early", apart[early] * BIAS_SCALE, clusters[early], bootstrap),
        mean_of("bias_late", apart[~early] * BIAS_SCALE, clusters[~early], bootstrap),
        mean_of("within_1", (np.abs(apart) <= CLOSE + 1e-9).astype(float), clusters, bootstrap),
        mean_of("same_third", (thirds(score) == thirds(mean)).astype(float), clusters, bootstrap),
    ]
    for agreed in statistics:
        yield Found(category, (judge, HUMANS), agreed)


def _mean_kappa(rated: Rated, judges: Sequence[int] | range, bootstrap: Bootstrap) -> Agreed:
    together = Ratings.of_scores(
        np.concatenate([rated.judges, rated.humans], axis=1),
        (*rated.judge_names, *rated.people),
        rated.clusters,
        HALVES,
    )
    first = len(rated.judge_names)
    pairs = [together.pick(judge, first + person) for judge in judges for person in range(len(rated.people))]
    return mean_pair_kappa("mean_kappa_quadratic", pairs, bootstrap)


def thirds(scores: np.ndarray) -> np.ndarray:
    """0, 1 or 2: the third of the scale 0–5 that each score lies in; a border belongs to the upper one."""
    return np.clip(np.floor(scores * 3 / TOP + 1e-9), 0, 2)
