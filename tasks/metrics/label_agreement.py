"""Agreement on DEMO's labels: of annotators, of voters, and of people with the panel (DEMO Table 3).

A label is rated by what becomes of it: `keep`, `reject`, or `edit k`, where equal edits (after NFKC, case and
space folding) are one and the different edits of a label are numbered in the order of their folded text. So
two who edit differently disagree, and categories mean the same for every label. Categories of agreement are
the element groups and `all`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import polars as pl

from tasks.foundation.demo.elements import GROUPS, comparison_key, find_kind, value_hash
from tasks.foundation.stats.agreement import (
    Agreed,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    mean_of,
    raw_agreement,
)
from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.stats.ratings import Ratings

ALL = "all"
KEEP, REJECT = "keep", "reject"
CORRECT, WRONG = "correct", "wrong"
PANEL = "panel"

Label = tuple[str, str]
"""Dialogue and element."""


@dataclass(frozen=True, slots=True)
class Found:
    """One statistic of some raters on one category."""

    category: str
    raters: tuple[str, ...]
    agreed: Agreed


def collect_review_ratings(reviews: pl.DataFrame) -> dict[Label, dict[str, str]]:
    """What each annotator rates each label; an unreadable review is no rating."""
    edits = _edits(reviews)
    ratings: dict[Label, dict[str, str]] = {}
    for row in reviews.iter_rows(named=True):
        label = (row["dialogue_id"], row["element"])
        given = ratings.setdefault(label, {})
        if row["action"] == "edit":
            given[row["annotator"]] = _edit(edits[label].index(_key(row["proposed"])))
        elif row["action"] is not None:
            given[row["annotator"]] = row["action"]
    return ratings


def collect_vote_ratings(votes: pl.DataFrame, reviews: pl.DataFrame) -> dict[Label, dict[str, str]]:
    """What each panel member votes on each disputed label, in the same words; abstentions are no rating.

    The original is the candidate that no review proposed. Labels where that is not one candidate (their
    reviews are not there) are left out.
    """
    edits = _edits(reviews)
    ratings: dict[Label, dict[str, str]] = {}
    for row in votes.iter_rows(named=True):
        label = (row["dialogue_id"], row["element"])
        words = _words(json.loads(row["candidates"]), edits.get(label, []))
        if words is not None:
            given = ratings.setdefault(label, {})
            if row["candidate"] is not None:
                given[row["voter"]] = words[row["candidate"]]
    return ratings


def human_ratings(verdicts: pl.DataFrame, human_reviews: pl.DataFrame) -> dict[Label, dict[str, str]]:
    """Whether the label that stands is correct: of the panel (it decided for it; a label without a majority it
    did not find correct) and of each person who reviewed that very value (keep: correct).

    Only labels that somebody reviewed; answers to an older value are void.
    """
    ratings: dict[Label, dict[str, str]] = {}
    standing = {
        (row["dialogue_id"], row["element"]): row for row in verdicts.iter_rows(named=True) if row["value"] is not None
    }
    for row in human_reviews.iter_rows(named=True):
        label = (row["dialogue_id"], row["element"])
        verdict = standing.get(label)
        if verdict is not None and row["value_hash"] == value_hash(verdict["value"]):
            decided = verdict["outcome"] in ("unanimous", "majority")
            given = ratings.setdefault(label, {PANEL: CORRECT if decided else WRONG})
            given[row["reviewer"]] = CORRECT if row["action"] == "keep" else WRONG
    return ratings


def measure_label_agreement(ratings: Mapping[Label, Mapping[str, str]], bootstrap: Bootstrap) -> Iterator[Found]:
    """Raw agreement, Cohen's κ for pairs, Fleiss' κ for three or more, Krippendorff's α, by category."""
    raters = sorted({rater for given in ratings.values() for rater in given})
    for category, rated in group_ratings(ratings, raters):
        for a, b in combinations(range(len(raters)), 2):
            pair = rated.pick(a, b)
            yield Found(category, pair.raters, raw_agreement(pair, bootstrap))
            yield Found(category, pair.raters, cohen_kappa(pair, bootstrap))
        if len(raters) > 2:
            yield Found(category, rated.raters, raw_agreement(rated, bootstrap))
            yield Found(category, rated.raters, fleiss_kappa(rated, bootstrap))
        if len(raters) > 1:
            yield Found(category, rated.raters, krippendorff_alpha(rated, bootstrap))


def measure_human_agreement(ratings: Mapping[Label, Mapping[str, str]], bootstrap: Bootstrap) -> Iterator[Found]:
    """People with the panel and with one another: raw, Cohen's κ and AC1 of pairs; Fleiss' κ and AC1 of all; and
    `accuracy`, the share of answers that find the label correct, of each person and of all."""
    people = sorted({rater for given in ratings.values() for rater in given} - {PANEL})
    raters = [PANEL, *people] if people else []
    for category, rated in group_ratings(ratings, raters, scale=(CORRECT, WRONG)):
        for a, b in combinations(range(len(raters)), 2):
            pair = rated.pick(a, b)
            for statistic in (raw_agreement, cohen_kappa, gwet_ac1):
                yield Found(category, pair.raters, statistic(pair, bootstrap))
        if len(raters) > 2:
            for statistic in (raw_agreement, fleiss_kappa, gwet_ac1):
                yield Found(category, rated.raters, statistic(rated, bootstrap))
        persons = rated.pick(*range(1, len(raters)))
        groups = [persons.pick(place) for place in range(len(people))] + ([persons] if len(people) > 1 else [])
        for group in groups:
            answered = group.rated_by(1)
            correct = (answered.counts[:, 0] / answered.counts.sum(axis=1)) if len(answered.codes) else answered.codes
            yield Found(category, group.raters, mean_of("accuracy", correct.ravel(), answered.clusters, bootstrap))


def group_ratings(
    ratings: Mapping[Label, Mapping[str, str]], raters: Sequence[str], scale: Sequence[str] = ()
) -> Iterator[tuple[str, Ratings]]:
    """The ratings of each element group that was rated, then of all."""
    if not ratings or not raters:
        return
    dialogues = {dialogue: code for code, dialogue in enumerate(sorted({dialogue for dialogue, _ in ratings}))}
    group_of = {element: find_kind(element).group for element in {element for _, element in ratings}}
    for category in (*GROUPS, ALL):
        labels = [label for label in sorted(ratings) if category in (ALL, group_of[label[1]])]
        if labels:
            clusters = [dialogues[dialogue] for dialogue, _ in labels]
            yield category, Ratings.of([ratings[label] for label in labels], raters, clusters, scale)


def _edits(reviews: pl.DataFrame) -> dict[Label, list[str]]:
    """The distinct edits of each label, folded, in order."""
    found: dict[Label, set[str]] = {}
    for row in reviews.filter(pl.col("action") == "edit").iter_rows(named=True):
        found.setdefault((row["dialogue_id"], row["element"]), set()).add(_key(row["proposed"]))
    return {label: sorted(keys) for label, keys in found.items()}


def _words(candidates: Sequence[Mapping[str, object]], edits: Sequence[str]) -> list[str] | None:
    """Each candidate in the words of a rating; None unless exactly one is the original."""
    words = []
    for candidate in candidates:
        key = None if candidate.get("reject") else comparison_key(candidate["value"])
        words.append(REJECT if key is None else _edit(edits.index(key)) if key in edits else KEEP)
    return words if words.count(KEEP) == 1 else None


def _key(proposed: str) -> str:
    return comparison_key(json.loads(proposed))


def _edit(place: int) -> str:
    return f"edit {place + 1}"
