"""DEMO end to end on rows small enough to work out by hand, and agreement on its labels."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from tasks.foundation.demo.elements import value_hash
from tasks.foundation.ids import canonical_json
from tasks.foundation.stage import Prepared
from tasks.foundation.tables import TABLES
from tasks.metrics.task import READS, prepare
from tests.unit.metrics_study import (
    NOW,
    Context,
    Rows,
    awareness_score,
    episode,
    interaction,
    interaction_score,
    item,
    prediction,
)

A, B = "scripted-a", "scripted-b"

SCORES = {
    # accuracy and hallucination by judge A, by judge B; None: unscored
    ("goal-1", "ann"): ((8, 6), (7, 5)),
    ("goal-2", "ann"): ((4, 2), (None, None)),
    ("scene-1", "ann"): ((10, 10), (9, 9)),
    ("goal-1", "bob"): ((5, 5), (5, 5)),
    ("goal-2", "bob"): ((5, 5), (5, 5)),
}


def planted() -> Rows:
    """Dialogues d1 (English) and d2 (Chinese); ann and bob; bob's prediction of scene-1 and its second episode never
    came to be; the partner of ann's second episode failed, and bob failed itself in its first."""
    rows: Rows = {name: [] for name in READS}
    rows["awareness_items"] = [
        item("goal-1", "goal", "d1"),
        item("goal-2", "goal", "d2", "zh"),
        item("scene-1", "scene", "d1"),
    ]
    for (item_id, target), by_judge in SCORES.items():
        rows["awareness_predictions"].append(prediction(item_id, target))
        rows["awareness_scores"] += [
            awareness_score(item_id, target, judge, *numbers) for judge, numbers in zip((A, B), by_judge, strict=True)
        ]
    rows["interaction_episodes"] = [
        episode("e1", "d1", goal_type="advice"),
        episode("e2", "d2", "zh", goal_type="argument"),
        episode("e3", "d2", "zh", goal_type="advice"),
    ]
    rows["interactions"] = [
        interaction("ann-e1", "e1", "ann"),
        interaction("ann-e2", "e2", "ann", fault="partner", stop_reason="fault"),
        interaction("ann-e3", "e3", "ann"),
        interaction("bob-e1", "e1", "bob", fault="target", stop_reason="fault"),
        interaction("bob-e3", "e3", "bob"),
    ]
    for judge in (A, B):
        rows["interaction_scores"] += [
            interaction_score("ann-e1", judge, 8, 9, 7, 6),
            interaction_score("ann-e2", judge, None, None, None, None),
            interaction_score("ann-e3", judge, 6, 7, 5, None if judge == B else 4),
            interaction_score("bob-e1", judge, 0, 0, 0, 0),
            interaction_score("bob-e3", judge, 4, 4, 4, 4),
        ]
    return rows


@cache
def prepared() -> Prepared:
    return prepare(Context(planted(), f"judging.judges=[{A},{B}]"))


def metric(name: str, target: str, **key: Any) -> Any:
    columns = ("pool", "language", "simulator", "judge", "partner", "goal_type", "slice")
    wanted = {"metric": name, "target": target, **dict.fromkeys(columns), **key}
    found = [row for row in prepared().rows["metrics"] if all(getattr(row, each) == wanted[each] for each in wanted)]
    assert len(found) == 1, (wanted, len(found))
    return found[0]


@pytest.mark.parametrize(
    ("name", "target", "value", "n", "n_unscored", "n_fault"),
    [
        # every scored number of both judges: 8 6 7 5 4 2
        ("goal", "ann", 32 / 6, 6, 2, 0),
        ("scene", "ann", 38 / 4, 4, 0, 0),
        ("awareness", "ann", 70 / 10, 10, 2, 0),
        ("goal", "bob", 5.0, 8, 0, 0),
        ("scene", "bob", None, 0, 0, 4),
        ("persona", "ann", None, 0, 0, 0),
        ("awareness", "bob", 5.0, 8, 0, 4),
        # e1 8 and e3 6, by two judges; e2 void: two numbers a dimension
        ("goal_achievement", "ann", 7.0, 4, 0, 2),
        ("realistic", "ann", (6 + 6 + 4) / 3, 3, 1, 2),
        # 2·(8+9+7+6) + 2·(6+7+5) + 4
        ("interaction", "ann", 100 / 15, 15, 1, 8),
        # its own fault stays in the denominator; e2 never came to be
        ("interaction", "bob", 32 / 16, 16, 0, 8),
        # pooled over every number, and the mean of the two averages
        ("overall_pooled", "ann", 170 / 25, 25, 3, 8),
        ("overall_mean", "ann", (7 + 100 / 15) / 2, 25, 3, 8),
        ("overall_pooled", "bob", (40 + 32) / 24, 24, 0, 12),
        ("void_share", "ann", 1 / 3, 3, 0, 0),
        ("void_share", "bob", 1 / 3, 3, 0, 0),
        ("target_fault_share", "bob", 1 / 2, 2, 0, 1),
    ],
)
def test_every_demo_metric_is_the_one_worked_out_by_hand(
    name: str, target: str, value: float | None, n: int, n_unscored: int, n_fault: int
) -> None:
    row = metric(name, target)
    assert row.value == (None if value is None else pytest.approx(value))
    assert (row.n, row.n_unscored, row.n_fault) == (n, n_unscored, n_fault)


def test_demo_cells() -> None:
    assert metric("goal", "ann", language="en").value == pytest.approx(26 / 4)
    assert metric("goal", "ann", language="zh").value == pytest.approx(3.0)
    assert metric("goal", "ann", judge=A).value == pytest.approx(20 / 4)
    assert metric("interaction", "ann", goal_type="advice").value == pytest.approx(100 / 15)
    assert metric("interaction", "ann", goal_type="argument").value is None
    assert metric("interaction", "ann", partner="ann").value == pytest.approx(100 / 15)
    assert metric("interaction", "ann", language="zh", goal_type="advice").value == pytest.approx(40 / 7)


def test_targets_with_equal_scores_do_not_differ_because_one_lost_some_items() -> None:
    rows: Rows = {name: [] for name in READS}
    for number in range(10):
        easy, hard = f"goal-{number}", f"persona-{number}"
        rows["awareness_items"] += [item(easy, "goal", f"d{number}"), item(hard, "persona", f"d{number}")]
        for target in ("ann", "bob"):
            for item_id, score in ((easy, 10), (hard, 2)):
                if target == "bob" and item_id == easy and number < 5:
                    continue
                rows["awareness_predictions"].append(prediction(item_id, target))
                rows["awareness_scores"].append(awareness_score(item_id, target, A, score, score))
    found = prepare(Context(rows, f"judging.judges=[{A}]")).rows["comparisons"]
    (row,) = [row for row in found if row.metric == "awareness" and row.language is None]  # type: ignore[attr-defined]
    assert (row.difference, row.p, row.n) == (0.0, 1.0, 10)  # type: ignore[attr-defined]


def test_demo_targets_compared() -> None:
    rows = [row for row in prepared().rows["comparisons"] if row.metric == "awareness" and row.language is None]  # type: ignore[attr-defined]
    row = next(row for row in rows if row.judge_a is None)  # type: ignore[attr-defined]
    assert (row.target_a, row.target_b, row.n) == ("ann", "bob", 2)  # type: ignore[attr-defined]
    # bob lost scene-1, so it is no part of the difference: 8 6 7 5 4 2 against 5
    assert row.difference == pytest.approx(32 / 6 - 5)  # type: ignore[attr-defined]
    # judges on the numbers both gave: 8 6 10 10 against 7 5 9 9
    row = next(row for row in rows if row.judge_a == A and row.target_a == "ann")  # type: ignore[attr-defined]
    assert row.difference == pytest.approx(1.0)  # type: ignore[attr-defined]


def test_demo_accounting_counts_rows_that_are_there() -> None:
    # five predictions and five interactions, one of them void
    assert prepared().accounting.to_json() == {
        "n_in": 10,
        "n_produced": 9,
        "n_filtered": 1,
        "n_failed": 0,
        "filtered": {"void": 1},
        "failed": {},
    }


# -- labels


def review(element: str, annotator: str, action: str | None, value: Any = None, dialogue: str = "d1") -> dict[str, Any]:
    return {
        "dialogue_id": dialogue,
        "element": element,
        "annotator": annotator,
        "family": "f",
        "action": action,
        "proposed": canonical_json(value) if action == "edit" else None,
        "reason": None,
    }


def vote(element: str, voter: str, candidate: int | None, candidates: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "dialogue_id": "d1",
        "element": element,
        "voter": voter,
        "family": "f",
        "candidates": json.dumps(candidates),
        "presentation": 0,
        "candidate": candidate,
        "reason": None,
    }


def verdict(element: str, outcome: str, value: Any, dialogue: str = "d1") -> dict[str, Any]:
    return {
        "dialogue_id": dialogue,
        "element": element,
        "outcome": outcome,
        "value": None if value is None else canonical_json(value),
        "pending": outcome == "manual",
        "changed": False,
        "votes_for": 2,
        "votes_cast": 2,
        "panel": None,
    }


def human(element: str, reviewer: str, action: str, shown: Any, dialogue: str = "d1") -> dict[str, Any]:
    return {
        "dialogue_id": dialogue,
        "element": element,
        "reviewer": reviewer,
        "action": action,
        "proposed": None,
        "value_hash": value_hash(canonical_json(shown)),
        "seconds": 1.0,
        "created_at": NOW,
    }


def agreements(rows: Rows) -> dict[tuple[str, str, str, str], Any]:
    found = prepare(Context(rows)).rows["agreement"]
    TABLES["agreement"].arrow(found)
    return {(row.scope, row.category, row.statistic, row.raters): row for row in found}  # type: ignore[attr-defined]


def test_annotators_agree_when_their_edits_are_the_same_and_not_when_they_differ() -> None:
    reviews = [
        *[review("scene.topic", name, "keep") for name in (A, B)],
        review("goal.goal1", A, "edit", "Win  the race"),
        review("goal.goal1", B, "edit", "win the race"),
        review("persona.1.hobby", A, "edit", "chess"),
        review("persona.1.hobby", B, "edit", "go"),
        review("utterance.1.intent", A, "keep"),
        review("utterance.1.intent", B, "reject"),
        review("utterance.2.intent", A, "keep"),
        review("utterance.2.intent", B, None),
    ]
    found = agreements({"reviews": reviews})
    pair = f"{A} × {B}"
    raw = {category: found["annotators", category, "raw", pair] for category in ("all", "goal", "persona", "utterance")}
    assert {category: (row.value, row.n) for category, row in raw.items()} == {
        "all": (0.5, 4),
        "goal": (1.0, 1),
        "persona": (0.0, 1),
        "utterance": (0.0, 1),
    }
    # keep keep, edit1 edit1, edit1 edit2, keep reject: chance .5·.25 + .5·.25 = .25; (.5 − .25) / .75
    assert found["annotators", "all", "cohen_kappa", pair].value == pytest.approx(1 / 3)
    assert found["annotators", "goal", "cohen_kappa", pair].value is None
    assert ("annotators", "all", "fleiss_kappa", pair) not in found, "two raters have Cohen's κ"
    assert ("annotators", "all", "krippendorff_alpha", pair) in found


def test_voters_are_compared_by_what_they_chose_whatever_its_place_on_the_ballot() -> None:
    reviews = [
        review("goal.goal1", A, "keep"),
        review("goal.goal1", B, "edit", "new"),
        review("scene.topic", A, "reject"),
        review("scene.topic", B, "keep"),
        review("scene.workflow", A, "keep"),
        review("scene.workflow", B, "keep"),
    ]
    goal = [{"value": "new"}, {"value": "old"}]
    topic = [{"value": "old"}, {"reject": True}]
    votes = [
        *[vote("goal.goal1", name, place, goal) for name, place in ((A, 1), (B, 0), ("scripted-c", 1))],
        *[vote("scene.topic", name, place, topic) for name, place in ((A, 0), (B, 0), ("scripted-c", None))],
        # nobody's review names a candidate: which one is the original cannot be told
        *[vote("scene.workflow", name, 0, goal) for name in (A, B)],
    ]
    found = agreements({"reviews": reviews, "votes": votes})
    pair, three = f"{A} × {B}", f"{A} × {B} × scripted-c"
    # goal: keep against edit; topic: both keep
    assert (found["voters", "all", "raw", pair].value, found["voters", "all", "raw", pair].n) == (0.5, 2)
    # of three: one of three pairs on goal1, the one pair on topic
    assert found["voters", "all", "raw", three].value == pytest.approx((1 / 3 + 1) / 2)
    assert found["voters", "all", "fleiss_kappa", three].n == 1
    assert found["voters", "all", "krippendorff_alpha", three].n == 2


def test_people_and_the_panel_on_the_labels_that_stand() -> None:
    verdicts = [verdict(f"utterance.{turn}.intent", "majority", "ask") for turn in range(1, 10)]
    verdicts += [verdict("utterance.10.intent", "manual", "ask"), verdict("goal.goal1", "rejected", None)]
    answers = [human(f"utterance.{turn}.intent", "h1", "keep", "ask") for turn in range(1, 9)]
    answers += [human("utterance.9.intent", "h1", "edit", "ask"), human("utterance.10.intent", "h1", "reject", "ask")]
    answers.append(human("utterance.1.intent", "h2", "keep", "an older value"))
    answers.append(human("utterance.2.intent", "h2", "keep", "ask"))
    answers.append(human("utterance.9.intent", "h2", "keep", "ask"))
    found = agreements({"verdicts": verdicts, "human_reviews": answers})

    def row(statistic: str, raters: str) -> Any:
        return found["human", "utterance", statistic, raters]

    # panel 9 correct of 10; h1 8: they differ on turn 9
    assert (row("raw", "panel × h1").value, row("raw", "panel × h1").n) == (0.9, 10)
    # chance .9·.8 + .1·.2 = .74 → (.9 − .74)/.26
    assert row("cohen_kappa", "panel × h1").value == pytest.approx(0.16 / 0.26)
    # AC1: correct in 17 of 20 ratings, chance 2·.85·.15 = .255 → (.9 − .255)/.745
    assert row("ac1", "panel × h1").value == pytest.approx(0.645 / 0.745)
    assert (row("accuracy", "h1").value, row("accuracy", "h1").n) == (0.8, 10)
    assert (row("accuracy", "h2").value, row("accuracy", "h2").n) == (1.0, 2), "an answer to an older value is void"
    # h1 and h2: of ten labels, 8 full; turn 9 half; turn 10 none
    assert row("accuracy", "h1 × h2").value == pytest.approx(0.85)
    assert row("fleiss_kappa", "panel × h1 × h2").n == 2
    assert ("human", "goal", "raw", "panel × h1") not in found, "a rejected label does not stand"


def test_labels_without_reviews_have_no_agreement() -> None:
    assert agreements({"verdicts": [verdict("goal.goal1", "majority", "x")]}) == {}
