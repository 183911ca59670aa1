"""A scripted study with planted truths: 40 conversations, 3 targets, 2 judges, every metric worked out by hand.

14 seeds (s00–s06 in pool p1, English; s07–s13 in p2, of which s07–s09 English, s10–s13 Chinese). Every dialogue has
four turns with the same gold labels (Venting, Curiosity, Hope), except:

    bob on s00   stops early after two turns; the last user turn is "Thanks!"
    cat on s00   the simulator fails after one turn: void
    cat on s01   the target fails at its second turn
    cat on s12, s13   never came to be (infrastructure): void, no row

so there are 14 + 14 + 12 = 40 conversations, and turns: ann 56; bob 13·4 + 2 = 54; cat 1 void + 2 + 10·4. Of these lie
in p1: ann 28; bob 6·4 + 2 = 26; cat 1 void + 2 + 5·4. A value of all pools is the plain mean of those of p1 and p2.

             explicit            latent                       emotion
    ann      right               right                        right
    bob      wrong in turns 3–4  right in turn 1 only         unreadable in turn 4, else right
    cat      always wrong        always unreadable            right
    cat lost the prediction of s02's first turn to infrastructure; it counts on 41 turns.

Sub-scores (all fifteen alike unless said):

    ann      1, 1, .5, .5; judge b gives persona 0 at turn 3, so the panel of two has its median, .25
             empathy_recognition unscored by both: on s00 at turn 4, on s01 at turns 2–4
    bob      .5 everywhere; judge b has no row at all for s03
    cat      0 everywhere; on s01 .5, then 0 by rule
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tasks.foundation.errors import ConfigError
from tasks.foundation.ids import seed_of
from tasks.foundation.stage import Prepared
from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.tables import TABLES
from tasks.foundation.texts.encoder import Encoder as SentenceEncoder
from tasks.foundation.texts.similarity import ByCharacters
from tasks.metrics.catalogue import METRICS, SUB_INDICATORS
from tasks.metrics.task import READS, STAGE, prepare
from tests.unit.metrics_study import (
    Context,
    Rows,
    chat_seed,
    conversation,
    final_judgement,
    human_rating,
    turn,
    turn_judgement,
)

A, B = "scripted-a", "scripted-b"
SETTINGS = (f"judging.judges=[{A},{B}]", "metrics.resamples=2000")
SEEDS = [f"s{number:02d}" for number in range(14)]
FINAL_INTENT = "career change, boss"
OPENING, SECOND, OTHER, LAST = (
    "I need advice about my career",
    "Please tell me more about it",
    "My boss is never happy",
    "That is all I can say",
)
CHINESE = "看清这份工作值不值得继续做下去"
ALPHA = {0.05: '{"alpha":0.05}', 0.10: '{"alpha":0.1}', 0.15: '{"alpha":0.15}'}


KAPPA_OF_EMPATHY = ("judge_human", "empathy", "mean_kappa_quadratic")


class Encoder:
    """Every text is orthogonal to every other, but for Finding Meaning and the final intent, whose cosine is .6."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        axes = {text: place for place, text in enumerate(sorted(texts))}
        vectors = np.eye(len(texts), dtype=np.float32)[[axes[text] for text in texts]]
        for place, text in enumerate(texts):
            if text.startswith("Finding Meaning:") and FINAL_INTENT in axes:
                vectors[place] = 0.8 * vectors[place] + 0.6 * np.eye(len(texts))[axes[FINAL_INTENT]]
        return vectors


def pool_of(seed: str) -> str:
    return "p1" if seed <= "s06" else "p2"


def length_of(target: str, seed: str) -> int:
    """Turns in the table."""
    return {("bob", "s00"): 2, ("cat", "s00"): 1, ("cat", "s01"): 2}.get((target, seed), 4)


def labels_of(target: str, turn_index: int) -> dict[str, str | None]:
    wrong = {"predicted_explicit": "Planning"}
    if target == "bob":
        late = wrong if turn_index >= 3 else {}
        latent = {} if turn_index == 1 else {"predicted_latent": "Finding Meaning"}
        return {**late, **latent, **({"predicted_emotion": None} if turn_index == 4 else {})}
    return {**wrong, "predicted_latent": None} if target == "cat" else {}


def text_of(target: str, turn_index: int) -> str:
    third = SECOND if target == "ann" else OTHER
    fourth = "  " if target == "cat" else LAST
    return (OPENING, SECOND, third, fourth)[turn_index - 1]


def scores_of(target: str, seed: str, turn_index: int, judge: str) -> dict[str, float | None]:
    base = {"ann": (1.0, 1.0, 0.5, 0.5), "bob": (0.5,) * 4, "cat": (0.0,) * 4}[target][turn_index - 1]
    if (target, seed, turn_index) == ("cat", "s01", 1):
        base = 0.5
    scores: dict[str, float | None] = dict.fromkeys(SUB_INDICATORS, base)
    if target == "ann" and turn_index == 3 and judge == B:
        scores |= {name: 0.0 for name in SUB_INDICATORS if name.startswith("persona")}
    if target == "ann" and ((seed == "s00" and turn_index == 4) or (seed == "s01" and turn_index >= 2)):
        scores["empathy_recognition"] = None
    return scores


def verdict_of(target: str, seed: str, judge: str) -> tuple[bool | None, int | None]:
    if target == "bob":
        return True, 3
    if target == "cat":
        return False, 1 if seed == "s01" else 2
    satisfied = 5 if judge == A else 4
    if seed == "s11" and judge == B:
        return None, None
    if seed in ("s12", "s13") or (seed == "s10" and judge == B):
        return False, satisfied
    return True, satisfied


def planted() -> Rows:
    rows: Rows = {name: [] for name in READS}
    for seed in SEEDS:
        language = "en" if seed <= "s09" else "zh"
        rows["chat_seeds"].append(chat_seed(seed, pool_of(seed), language=language, final_intent=FINAL_INTENT))
        for target in ("ann", "bob", "cat"):
            if target != "cat" or seed not in ("s12", "s13"):
                plant(rows, target, seed)
    rows["chat_seeds"].append(chat_seed("s99", "p1", error="unreadable"))
    for turn_index, (one, other) in enumerate([(5, 4), (5, 5), (2, 3), (2, 2)], start=1):
        rows["human_ratings"].append(human_rating("ann-s02", turn_index, "h1", one))
        rows["human_ratings"].append(human_rating("ann-s02", turn_index, "h2", other))
    rows["human_ratings"].append(human_rating("ann-s03", 1, "h1", 0, saw_judge=True))
    return rows


def plant(rows: Rows, target: str, seed: str) -> None:
    name, length = f"{target}-{seed}", length_of(target, seed)
    special: dict[tuple[str, str], dict[str, Any]] = {
        ("bob", "s00"): {"stop_reason": "achieved", "final_user_text": "Thanks!", "final_progress": "achieved"},
        ("cat", "s00"): {"stop_reason": "fault", "fault": "simulator"},
        ("cat", "s01"): {"stop_reason": "fault", "fault": "target", "t_actual": 1},
    }
    changes = {"pool": pool_of(seed), "t_actual": length, **special.get((target, seed), {})}
    rows["conversations"].append(conversation(name, seed, target, **changes))
    for turn_index in range(1, length + 1):
        row = turn(name, turn_index, user_text=text_of(target, turn_index), **labels_of(target, turn_index))
        if name == "cat-s01" and turn_index == 2:
            row["assistant_text"] = None
        if name == "cat-s02" and turn_index == 1:
            row |= {f"predicted_{label}": None for label in ("explicit", "latent", "emotion")}
            row["perception_fault"] = "timeout"
        row["label_reasks"] = int(target == "ann" and turn_index == 2)
        row["role_breaks"] = int(name == "bob-s01" and turn_index == 3)
        rows["conversation_turns"].append(row)
    if name == "cat-s00":
        return
    for judge in (A, B):
        rows["final_intent_judgements"].append(final_judgement(name, judge, *verdict_of(target, seed, judge)))
        for turn_index in range(1, length + 1):
            if (name, judge) != ("bob-s03", B):
                scores = scores_of(target, seed, turn_index, judge)
                rows["turn_judgements"].append(
                    turn_judgement(name, turn_index, judge, None, unscored_kind=None) | scores
                )


@cache
def prepared() -> Prepared:
    return prepare(Context(planted(), *SETTINGS, encoder=Encoder()))


def metric(name: str, target: str | None, **key: Any) -> Any:
    """The one row of a cell."""
    columns = ("pool", "language", "simulator", "judge", "partner", "goal_type", "slice")
    wanted = {"metric": name, "target": target, **dict.fromkeys(columns), **key}
    found = [row for row in prepared().rows["metrics"] if all(getattr(row, each) == wanted[each] for each in wanted)]
    assert len(found) == 1, (wanted, len(found))
    return found[0]


RHO = 3 / math.sqrt(15)
"""Of (1, 2, 3, 4) with ranks (1, 3, 3, 3): covariance 3, variances 5 and 3."""


def both(p1: float, p2: float) -> float:
    """Of all pools."""
    return (p1 + p2) / 2


ANSWERS_OF_CAT = both(25 / 6, 0)
"""One of the six dialogues of p1 has 25."""
POOLED_OF_CAT = both(2.5 / 12 * 20, 0)
"""Of the 12 early turns of p1 one has 2.5."""


EXPECTED: dict[str, dict[str, tuple[float | None, int]]] = {
    # value and n; cat's n leaves out the lost turn and the void ones: 21 turns of p1, 20 of p2
    "explicit_accuracy": {"ann": (1.0, 56), "bob": (both(14 / 26, 14 / 28), 54), "cat": (0.0, 41)},
    "latent_accuracy": {"ann": (1.0, 56), "bob": (both(7 / 26, 7 / 28), 54), "cat": (0.0, 41)},
    # cat's emotion is right but for the turn at which it failed
    "emotion_accuracy": {"ann": (1.0, 56), "bob": (both(20 / 26, 21 / 28), 54), "cat": (both(20 / 21, 1), 41)},
    # bob in p1: Venting 2·14/(26 + 14), Planning 0; Curiosity 2·7/(26 + 7), Finding Meaning 0; Hope 2·20/(26 + 20)
    "explicit_macro_f1": {"ann": (1.0, 56), "bob": (both(14 / 40, 14 / 42), 54), "cat": (0.0, 41)},
    "latent_macro_f1": {"ann": (1.0, 56), "bob": (both(7 / 33, 7 / 35), 54), "cat": (0.0, 41)},
    "emotion_macro_f1": {"ann": (1.0, 56), "bob": (both(40 / 46, 42 / 49), 54), "cat": (both(40 / 41, 1), 41)},
    # nothing of the turn at which cat failed is readable
    "unreadable_share": {"ann": (0.0, 56), "bob": (both(6 / 78, 7 / 84), 54), "cat": (both(23 / 63, 20 / 60), 41)},
    # bob: 3/4 of four turns are wrong (13 dialogues), 1/2 of two (one dialogue)
    "drift_latent": {"ann": (0.0, 14), "bob": (10.25 / 14, 14), "cat": (1.0, 11)},
    "drift_explicit": {"ann": (0.0, 14), "bob": (6.5 / 14, 14), "cat": (1.0, 11)},
    "drift_pair": {"ann": (0.0, 14), "bob": (10.25 / 14, 14), "cat": (1.0, 11)},
    "alignment": {"ann": (None, 0), "bob": (RHO, 13), "cat": (None, 0)},
    "t_actual": {"ann": (4.0, 14), "bob": (54 / 14, 14), "cat": (both(21 / 6, 4), 11)},
    "void_share": {"ann": (0.0, 14), "bob": (0.0, 14), "cat": (3 / 14, 14)},
    "target_fault_share": {"ann": (0.0, 14), "bob": (0.0, 14), "cat": (both(1 / 6, 0), 11)},
    # ann: s00–s09 by both; s10 a tie, s11 one vote missing; s12, s13 by neither
    "ficr": {"ann": (10 / 14, 14), "bob": (1.0, 14), "cat": (0.0, 11)},
    "final_intent_undecided": {"ann": (2 / 14, 14), "bob": (0.0, 14), "cat": (0.0, 11)},
    # ann: (5 + 4)/2 → 87.5 on 13, 5 → 100 on s11; cat: 1 → 0 once, 2 → 25 ten times
    "satisfaction": {"ann": ((13 * 87.5 + 100) / 14, 14), "bob": (50.0, 14), "cat": (both(125 / 6, 25), 11)},
    # ann: turns 5, 5, 2.5, 2.5 → 75; s00: 5, 5, 2.5 → 250/3; s01 leaves the cell
    "empathy_unweighted": {
        "ann": (both((5 * 75 + 250 / 3) / 6, 75), 13),
        "bob": (50.0, 13),
        "cat": (ANSWERS_OF_CAT, 11),
    },
    # α = .10: .1·5 + .1·5 + .4·2.5 + .4·2.5 = 3 → 60; s00: (.1·5 + .1·5 + .4·2.5)/.6 = 10/3 → 200/3
    "empathy_weighted": {
        "ann": (both((5 * 60 + 200 / 3) / 6, 60), 13),
        "bob": (50.0, 13),
        "cat": (ANSWERS_OF_CAT, 11),
    },
    "empathy_early_minus_late": {"ann": (50.0, 13), "bob": (0.0, 12), "cat": (0.0, 10)},
    # ann: 26 early turns of 5, 25 late ones of 2.5
    "empathy_early_minus_late_pooled": {"ann": (50.0, 51), "bob": (0.0, 50), "cat": (POOLED_OF_CAT, 42)},
    # the panel's median at turn 3: 5, 5, 1.25, 2.5
    "persona_alignment_unweighted": {"ann": (68.75, 14), "bob": (50.0, 13), "cat": (ANSWERS_OF_CAT, 11)},
    "persona_alignment_weighted": {"ann": (50.0, 14), "bob": (50.0, 13), "cat": (ANSWERS_OF_CAT, 11)},
    "persona_alignment_early_minus_late": {"ann": (62.5, 14), "bob": (0.0, 12), "cat": (0.0, 10)},
    "persona_alignment_early_minus_late_pooled": {
        "ann": (62.5, 56),
        "bob": (0.0, 50),
        "cat": (POOLED_OF_CAT, 42),
    },
    "anthropomorphic_unweighted": {"ann": (75.0, 14), "bob": (50.0, 13), "cat": (ANSWERS_OF_CAT, 11)},
    "anthropomorphic_weighted": {"ann": (60.0, 14), "bob": (50.0, 13), "cat": (ANSWERS_OF_CAT, 11)},
    "anthropomorphic_early_minus_late": {"ann": (50.0, 14), "bob": (0.0, 12), "cat": (0.0, 10)},
    "anthropomorphic_early_minus_late_pooled": {
        "ann": (50.0, 56),
        "bob": (0.0, 50),
        "cat": (POOLED_OF_CAT, 42),
    },
    **{
        name: {"ann": (15.0, 14), "bob": (10.0, 13), "cat": (ANSWERS_OF_CAT / 5, 11)}
        for name in SUB_INDICATORS
        if not name.startswith("persona") and name != "empathy_recognition"
    },
    "empathy_recognition": {
        "ann": (both((5 * 15 + 50 / 3) / 6, 15), 13),
        "bob": (10.0, 13),
        "cat": (ANSWERS_OF_CAT / 5, 11),
    },
    **{
        name: {"ann": (13.75, 14), "bob": (10.0, 13), "cat": (ANSWERS_OF_CAT / 5, 11)}
        for name in SUB_INDICATORS
        if name.startswith("persona")
    },
}


def test_the_study_has_forty_conversations() -> None:
    assert len(planted()["conversations"]) == 40
    assert prepared().accounting.to_json() == {
        "n_in": 40,
        "n_produced": 39,
        "n_filtered": 1,
        "n_failed": 0,
        "filtered": {"void": 1},
        "failed": {},
    }
    prepared().accounting.check("metrics")


@pytest.mark.parametrize("target", ["ann", "bob", "cat"])
@pytest.mark.parametrize("name", EXPECTED)
def test_every_metric_is_the_one_worked_out_by_hand(name: str, target: str) -> None:
    row = metric(name, target)
    value, n = EXPECTED[name][target]
    assert row.value == (None if value is None else pytest.approx(value, abs=1e-6))
    assert (row.n, row.n_unit, row.unit) == (n, METRICS[name].n_unit, METRICS[name].unit)


def test_no_metric_of_the_catalogue_is_forgotten() -> None:
    of_demo = {"goal", "persona", "scene", "utterance", "awareness", "interaction", "overall_pooled", "overall_mean"}
    of_demo |= {"goal_achievement", "believability", "skillfulness", "realistic"}
    of_all = {name for name in METRICS if "_rank_" in name or name.startswith("simulator_")}
    assert set(METRICS) - of_demo - of_all == set(EXPECTED)
    assert {row.metric for row in prepared().rows["metrics"]} == set(METRICS) - of_demo


def test_what_is_unscored_or_void_is_counted_beside_the_score() -> None:
    assert metric("explicit_accuracy", "cat").n_fault == 4  # a lost turn, one of a void one, two without any
    assert metric("empathy_early_minus_late_pooled", "cat").n_fault == 3
    assert metric("drift_latent", "cat").n_fault == 3  # a simulator's fault and two that never came to be
    assert metric("empathy_weighted", "ann").n_unscored == 1
    assert metric("empathy_weighted", "bob").n_unscored == 1
    assert metric("empathy_early_minus_late", "bob").n_unscored == 1  # s03; s00 has no late turn to score
    assert metric("empathy_early_minus_late_pooled", "ann").n_unscored == 5
    assert metric("alignment", "bob").n_unscored == 0  # s00 has two turns, of which no alignment could be told
    assert metric("alignment", "cat").n_unscored == 10  # turns enough, and not one readable


def test_the_drift_of_every_turn_is_kept_and_makes_the_metric() -> None:
    rows = {(row.conversation_id, row.turn_index): row for row in prepared().rows["turn_drifts"]}
    turns = planted()["conversation_turns"]
    assert set(rows) == {(one["conversation_id"], one["turn_index"]) for one in turns}
    for one in turns:
        row = rows[one["conversation_id"], one["turn_index"]]
        if one["perception_fault"] is not None and one["assistant_text"] is not None:
            assert row.drift_latent is row.drift_pair is row.final_intent_cosine is None
        elif one["predicted_latent"] is None:
            assert (row.drift_latent, row.final_intent_cosine) == (1.0, None)
        else:  # texts are orthogonal in this study
            assert row.drift_latent == (one["predicted_latent"] != one["gold_latent"])
    bob = [held["conversation_id"] for held in planted()["conversations"] if held["target"] == "bob"]
    means = [np.mean([row.drift_latent for key, row in rows.items() if key[0] == held]) for held in bob]
    assert np.mean(means) == pytest.approx(metric("drift_latent", "bob").value)


def test_a_share_of_all_dialogues_has_wilsons_interval() -> None:
    row = metric("ficr", "bob")
    assert (row.value, row.ci_low, row.ci_high) == (1.0, pytest.approx(row.n / (row.n + 1.96**2), abs=1e-4), 1.0)


def test_cells_by_pool_and_language() -> None:
    # p1 holds s00, the short one: 6 dialogues of .75 and one of .5
    assert metric("drift_latent", "bob", pool="p1").value == pytest.approx(5 / 7)
    assert metric("drift_latent", "bob", pool="p2").value == pytest.approx(0.75)
    # Chinese: s10 tied, s11 missing a vote, s12 and s13 not completed
    assert metric("ficr", "ann", language="zh").value == 0.0
    assert metric("ficr", "ann", language="en").value == 1.0
    assert metric("ficr", "ann", pool="p2", language="en").n == 3
    assert metric("ficr", "cat", pool="p2", language="zh").n_fault == 2
    assert metric("ficr", "ann", simulator=B).value == pytest.approx(10 / 14)


def test_each_judge_alone() -> None:
    assert metric("ficr", "ann", judge=A).value == pytest.approx(12 / 14)
    assert metric("ficr", "ann", judge=B).value == pytest.approx(10 / 14)
    assert metric("final_intent_undecided", "ann", judge=B).value == pytest.approx(1 / 14)
    assert metric("persona_alignment_unweighted", "ann", judge=A).value == pytest.approx(75.0)
    assert metric("persona_alignment_unweighted", "ann", judge=B).value == pytest.approx(62.5)
    assert metric("empathy_weighted", "bob", judge=B).n == 13
    assert metric("empathy_weighted", "bob", judge=A).n == 14
    assert not [row for row in prepared().rows["metrics"] if row.judge and row.metric.startswith(("drift", "latent"))]


def test_slices() -> None:
    assert metric("explicit_accuracy", "bob", slice='{"turn":2}').value == 1.0
    assert metric("explicit_accuracy", "bob", slice='{"turn":3}').value == 0.0
    assert metric("explicit_accuracy", "bob", slice='{"turn":3}').n == 13
    assert metric("latent_accuracy", "bob", slice='{"label":"Curiosity"}').value == pytest.approx(both(7 / 26, 7 / 28))
    assert metric("persona_alignment_unweighted", "ann", slice='{"turn":3}').value == pytest.approx(25.0)
    assert metric("empathy_unweighted", "ann", slice='{"part":"early"}').value == pytest.approx(100.0)
    assert metric("empathy_unweighted", "ann", slice='{"part":"late"}').value == pytest.approx(50.0)
    assert metric("empathy_unweighted", "bob", slice='{"turn":4}').n_unscored == 1, "s00 has no turn 4, s03 no scores"


def test_the_sweep() -> None:
    # anthropomorphic of ann: 5α·2 + 2.5(1 − 2α): 55, 60, 65
    values = [metric("anthropomorphic_weighted", "ann", slice=ALPHA[alpha]).value for alpha in (0.05, 0.10, 0.15)]
    assert values == pytest.approx([55, 60, 65])
    # persona of ann: (10α + 1.875(1 − 2α))·20: 43.75, 50, 56.25 against bob's 50: a flip, with a tie in the middle
    values = [metric("persona_alignment_weighted", "ann", slice=ALPHA[alpha]).value for alpha in (0.05, 0.10, 0.15)]
    assert values == pytest.approx([43.75, 50, 56.25])
    flipped = '{"alpha":[0.05,0.15],"flips":[["bob","ann"]]}'
    assert metric("persona_alignment_rank_flips", None, slice=flipped).value == 1.0
    # three pairs, one the other way round: (2 − 1)/3
    assert metric("persona_alignment_rank_tau", None, slice='{"alpha":[0.05,0.15]}').value == pytest.approx(1 / 3)
    assert metric("empathy_rank_flips", None, slice='{"alpha":[0.05,0.15],"flips":[]}').value == 0.0
    tau = metric("empathy_rank_tau", None, slice='{"alpha":[0.05,0.15]}')
    assert tau.value == pytest.approx(1.0)
    of_targets = [metric("empathy_weighted", target) for target in ("ann", "bob", "cat")]
    assert (tau.n, tau.n_unscored, tau.n_fault) == tuple(
        sum(getattr(row, count) for row in of_targets) for count in ("n", "n_unscored", "n_fault")
    )


def test_a_single_target_has_no_ranking_that_could_flip() -> None:
    rows = planted()
    rows["conversations"] = [row for row in rows["conversations"] if row["target"] == "ann"]
    found = prepare(Context(rows, *SETTINGS, encoder=Encoder())).rows["metrics"]
    ranks = [row for row in found if "_rank_" in row.metric]  # type: ignore[attr-defined]
    assert ranks and {row.value for row in ranks} == {None}  # type: ignore[attr-defined]


def test_simulator_health() -> None:
    # turns that the simulator wrote in p1: ann 21, bob 18 + 1 + 1, cat 1 + 15; in p2: 21, 21, 15
    def health(name: str, **key: Any) -> Any:
        return metric(f"simulator_{name}", None, simulator=B, **key)

    # and one of cat's that it gave up, in p1
    assert health("label_reask_rate").value == pytest.approx(both(7 / 58, 7 / 57))
    assert health("label_reask_rate").n == 115
    assert health("role_break_rate").value == pytest.approx(both(1 / 58, 0))
    assert health("empty_share").value == pytest.approx(5 / 57)
    assert health("repeated_share").value == pytest.approx(7 / 57)
    # "Please …" by ann 7 and again 7 in each pool, bob 7, cat 6 and 5; "Thanks!" once
    assert health("polite_share").value == pytest.approx(both(28 / 57, 26 / 57))
    assert health("early_stop_share").value == pytest.approx(both(1 / 20, 0))
    assert (health("fault_share").value, health("fault_share").n) == (pytest.approx(both(1 / 21, 0)), 40)
    # career at once; boss comes in turn 3 of bob's 13 and cat's 10 long dialogues
    fronts = both((7 + 6 * 0.5 + 1 + 1 + 5 * 0.5) / 20, (7 + 7 * 0.5 + 5 * 0.5) / 19)
    assert health("front_loading").value == pytest.approx(fronts)
    # lengths 6, 6, 6; 6, 5, 6; 6, 1; 6, 5, 0
    bobs, cats = math.sqrt(2 / 9) / (17 / 3), math.sqrt(186 / 27) / (11 / 3)
    variation = both((6 * bobs + 2.5 / 3.5 + 5 * cats) / 19, (7 * bobs + 5 * cats) / 19)
    assert health("verbosity_variation").value == pytest.approx(variation)
    # distinct words: 12 of 18; 16 of 17; all of 7, 6 and 11
    distinct = both((7 * 12 / 18 + 6 * 16 / 17 + 7) / 20, (7 * 12 / 18 + 7 * 16 / 17 + 5) / 19)
    assert health("mattr").value == pytest.approx(distinct)
    assert health("early_stop_share", pool="p2").value == 0.0


def comparison(name: str, a: str, b: str, **key: Any) -> Any:
    return compared(prepared(), name, a, b, **key)


def compared(found_by: Prepared, name: str, a: str, b: str, **key: Any) -> Any:
    absent = dict.fromkeys(("pool", "pool_b", "language", "judge_a", "judge_b"))
    wanted = {"metric": name, "target_a": a, "target_b": b, **absent, **key}
    found = [
        row
        for row in found_by.rows["comparisons"]
        if all(getattr(row, each) == wanted[each] for each in wanted) and (row.kind != "pairs" or "kind" in key)
    ]
    assert len(found) == 1, (wanted, len(found))
    return found[0]


def test_targets_are_compared_with_the_best_on_the_same_resamples() -> None:
    row = comparison("explicit_accuracy", "ann", "bob")
    assert (row.difference, row.n) == (pytest.approx(1 - both(14 / 26, 14 / 28)), 14)
    # per dialogue bob has 2 of 2 right on s00 and 2 of 4 elsewhere; every resample of p1's seeds gives one difference,
    # and every one of p2's the same
    settings = Context({}, *SETTINGS).settings
    counts = Bootstrap(settings.metrics.resamples, seed_of(settings.run.seed, "metrics")).counts(7)
    loop = [1 - both(14 / (2 * drawn[0] + 4 * (7 - drawn[0])), 0.5) for drawn in counts]
    assert (row.ci_low, row.ci_high) == pytest.approx(tuple(np.percentile(loop, [2.5, 97.5])))
    assert row.p == pytest.approx(2 / 2001)
    certain = comparison("explicit_accuracy", "ann", "cat")  # ann is ahead by 1 on every dialogue
    assert (certain.difference, certain.ci_low, certain.n) == (1.0, None, 11)
    assert certain.p == pytest.approx(2 / 2000), "one resample of p2 has drawn cat's lost seeds only"
    assert {(row.p_holm, row.p_holm_least, row.is_primary) for row in (row, certain)} == {(None, None, False)}


def test_holm_is_over_the_other_targets_and_the_primary_metrics_together() -> None:
    """ann against bob and cat on satisfaction, bob against ann and cat on FICR."""
    rows = [comparison("satisfaction", "ann", other) for other in ("bob", "cat")]
    assert [row.p for row in rows] == pytest.approx([2 / 2001, 2 / 2000])
    assert [row.p_holm for row in rows] == pytest.approx([8 / 2001, 8 / 2001], rel=1e-3)
    assert [row.p_holm_least for row in rows] == pytest.approx([8 / 2001, 8 / 2001])
    other = comparison("ficr", "bob", "ann")
    assert other.is_primary and other.p_holm == pytest.approx(max(other.p, 8 / 2001), rel=1e-3)


def test_every_two_targets_are_head_to_head_on_the_primary_metrics() -> None:
    """As the ranks have it: who is surely behind of how many."""
    found = prepared().rows
    pairs = [row for row in found["comparisons"] if row.kind == "pairs" and not row.pool and not row.language]  # type: ignore[attr-defined]
    assert {row.metric for row in pairs} == {"satisfaction", "ficr"}
    assert {(row.target_a, row.target_b) for row in pairs} == {("ann", "bob"), ("ann", "cat"), ("bob", "cat")}
    assert all(row.is_primary and row.p_holm is None and row.p_holm_least is None for row in pairs)
    for rank in found["ranks"]:  # type: ignore[attr-defined]
        if rank.is_primary and not rank.pool and not rank.language:
            mine = [row for row in pairs if row.metric == rank.metric and rank.target in (row.target_a, row.target_b)]
            better = [row for row in mine if row.is_apart and (row.difference < 0) == (row.target_a == rank.target)]
            assert rank.rank_low == 1 + len(better)
    twin = comparison("satisfaction", "ann", "bob", kind="best")
    one = comparison("satisfaction", "ann", "bob", kind="pairs")
    assert (one.difference, one.ci_low, one.ci_high, one.p) == (twin.difference, twin.ci_low, twin.ci_high, twin.p)


def test_what_is_tested_is_what_was_named() -> None:
    found = prepare(Context(planted(), *SETTINGS, "metrics.primary.eyt=[explicit_accuracy]", encoder=Encoder()))
    row = compared(found, "explicit_accuracy", "ann", "bob")
    assert (row.is_primary, row.p_holm) == (True, pytest.approx(4 / 2001))
    assert compared(found, "satisfaction", "ann", "bob").p_holm is None
    assert {row.metric for row in found.rows["ranks"] if row.is_primary} == {"explicit_accuracy"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("named", ["demo=[satisfaction]", "eyt=[t_actual]", "eyt=[overall_pooled, nothing]"])
def test_a_primary_metric_that_there_is_not_is_refused(named: str) -> None:
    with pytest.raises(ConfigError, match=r"metrics\.primary\.\w+ names .* expected some of"):
        STAGE.check(Context({}, f"metrics.primary.{named}"))  # type: ignore[arg-type]


def test_too_few_resamples_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """Two judges are compared on three targets and two metrics, so that p is 12 / (resamples + 1) or more."""
    few = ("metrics.resamples=238", "metrics.resamples=239")
    for resamples, told in zip(few, (True, False), strict=True):
        caplog.clear()
        prepare(Context(planted(), *SETTINGS, resamples, encoder=Encoder()))
        assert ("no p can be below" in caplog.text) == told


def test_the_best_has_the_lowest_drift() -> None:
    assert comparison("drift_latent", "ann", "bob").difference == pytest.approx(-10.25 / 14)


def test_judges_are_compared_on_the_judgements_both_gave() -> None:
    row = comparison("persona_alignment_unweighted", "ann", "ann", judge_a=A, judge_b=B)
    assert (row.difference, row.n) == (pytest.approx(12.5), 14)
    row = comparison("empathy_unweighted", "bob", "bob", judge_a=A, judge_b=B)
    assert (row.difference, row.n) == (0.0, 13)
    # both voted on all but s11; on s10 they differ
    row = comparison("ficr", "ann", "ann", judge_a=A, judge_b=B)
    assert (row.difference, row.n) == (pytest.approx(both(0, 1 / 6)), 13)


def test_a_target_is_compared_on_two_pools_whose_dialogues_are_resampled_together() -> None:
    # ann: 87.5 on every dialogue but s11, which is in p2 and has 100
    row = comparison("satisfaction", "ann", "ann", pool="p1", pool_b="p2", kind="pools")
    assert (row.difference, row.n) == (pytest.approx(87.5 - (6 * 87.5 + 100) / 7), 14)
    counts = Bootstrap(2000, seed_of(Context({}, *SETTINGS).settings.run.seed, "metrics")).counts(14)
    values = np.array([87.5] * 11 + [100] + [87.5] * 2)
    first = np.arange(14) < 7
    means = [(counts[:, side] @ values[side]) / counts[:, side].sum(axis=1) for side in (first, ~first)]
    assert (row.ci_low, row.ci_high) == pytest.approx(tuple(np.percentile(means[0] - means[1], [2.5, 97.5])))


def test_a_pool_with_one_dialogue_has_a_difference_and_no_interval() -> None:
    rows = planted()
    alone = {row["conversation_id"] for row in rows["conversations"] if row["chat_seed_id"] <= "s00"}
    rows["conversations"] = [
        row for row in rows["conversations"] if row["pool"] == "p2" or row["conversation_id"] in alone
    ]
    rows["chat_seeds"] = [row for row in rows["chat_seeds"] if row["pool"] == "p2" or row["chat_seed_id"] == "s00"]
    row = compared(
        prepare(Context(rows, *SETTINGS, encoder=Encoder())), "satisfaction", "ann", "ann", pool="p1", pool_b="p2"
    )
    assert row.difference == pytest.approx(87.5 - (6 * 87.5 + 100) / 7)
    assert (row.ci_low, row.p, row.n) == (None, None, 8)


@pytest.mark.parametrize("condition", ["simulator", "persona_to_target", "protocol"])
def test_conversations_under_other_conditions_are_not_compared(condition: str) -> None:
    rows = planted()
    other = {"simulator": "another", "persona_to_target": "both", "protocol": "max_turns=2"}[condition]
    rows["conversations"] = [
        {**row, condition: other} if row["target"] == "bob" else row for row in rows["conversations"]
    ]
    found = prepare(Context(rows, *SETTINGS, encoder=Encoder()))
    best = {(row.target_a, row.target_b) for row in found.rows["comparisons"] if row.kind == "best"}
    assert best == {("ann", "cat")}, "bob has nobody to be compared with"
    assert compared(found, "explicit_accuracy", "ann", "cat", kind="best").n == 11


def test_the_best_under_other_conditions_keeps_nobody_from_being_compared() -> None:
    rows = planted()
    rows["conversations"] = [
        {**row, "protocol": "max_turns=2"} if row["target"] == "ann" else row for row in rows["conversations"]
    ]
    found = prepare(Context(rows, *SETTINGS, encoder=Encoder()))
    row = compared(found, "satisfaction", "bob", "cat", kind="best")
    assert (row.n, row.p_holm) == (11, pytest.approx(2 * row.p)), "the other test is that of FICR"


def test_a_judge_that_sees_a_sample_is_no_part_of_the_panel() -> None:
    sampled = "judging.subsample={judges: [scripted-b], n: 5, by: [target], seed: 7}"
    rows = planted()
    seen = ("ann-s03", "ann-s04", "bob-s04", "cat-s05", "cat-s06")
    for table in ("turn_judgements", "final_intent_judgements"):
        rows[table] = [row for row in rows[table] if row["judge"] == A or row["conversation_id"] in seen]
    found = prepare(Context(rows, *SETTINGS, sampled, encoder=Encoder())).rows["metrics"]
    alone = prepare(Context(rows, f"judging.judges=[{A}]", "metrics.resamples=2000", encoder=Encoder())).rows["metrics"]
    assert [row for row in found if row.judge != B] == [row for row in alone if row.judge != B]
    (of_b,) = [
        row
        for row in found
        if (row.metric, row.target, row.judge) == ("ficr", "ann", B) and row.pool is None and row.language is None
    ]
    assert of_b.n == 2
    everyone = sampled.replace("[scripted-b]", f"[{A}, {B}]")
    assert Context({}, *SETTINGS, everyone).settings.judging.panel == [A, B]


def test_a_model_that_thinks_is_compared_with_the_one_that_does_not() -> None:
    context = Context(planted(), *SETTINGS, encoder=Encoder())
    some = context.model(A)
    context.know(replace(some, alias="bob", thinking=True, thinking_pair="ann"), replace(some, alias="ann"))
    found = prepare(context)
    row = compared(found, "explicit_accuracy", "bob", "ann", kind="thinking")
    best = compared(found, "explicit_accuracy", "ann", "bob", kind="best")
    assert (row.difference, row.ci_low, row.n) == (-best.difference, pytest.approx(-best.ci_high), best.n)
    assert compared(found, "explicit_accuracy", "bob", "ann", kind="thinking", pool="p1").n == 7
    assert not [row for row in prepared().rows["comparisons"] if row.kind == "thinking"]  # type: ignore[attr-defined]


def agreement(scope: str, category: str, statistic: str, raters: str) -> Any:
    wanted = {"scope": scope, "category": category, "statistic": statistic, "raters": raters}
    found = [row for row in prepared().rows["agreement"] if all(getattr(row, each) == wanted[each] for each in wanted)]
    assert len(found) == 1, (wanted, len(found))
    return found[0]


def test_agreement_of_the_judges() -> None:
    pair = f"{A} × {B}"
    # both scored 56 + 50 + 42 turns; they differ at turn 3 of ann's 14 dialogues, by 2.5 of 5
    raw = agreement("judges", "persona_alignment", "raw", pair)
    assert (raw.value, raw.n) == (pytest.approx(134 / 148), 148)
    assert agreement("judges", "persona_alignment", "bias", pair).value == pytest.approx(14 * 2.5 / 148 * 20)
    assert agreement("judges", "anthropomorphic", "cohen_kappa_quadratic", pair).value == pytest.approx(1.0)
    assert agreement("judges", "anthropomorphic", "krippendorff_alpha_ordinal", pair).value == pytest.approx(1.0)
    # 13 + 14 + 11 dialogues have both votes, one of them differs
    assert agreement("judges", "final_intent", "raw", pair).value == pytest.approx(37 / 38)
    # ann 13 times 5 against 4; the others alike
    assert agreement("judges", "satisfaction", "bias", pair).value == pytest.approx(13 / 38 * 25)


def test_a_judge_outside_the_panel_changes_nothing_of_the_panels_agreement_with_people() -> None:
    rows = planted()
    rows["turn_judgements"] = [
        {**row, **dict.fromkeys(SUB_INDICATORS, 0.0)} if row["judge"] == B else row for row in rows["turn_judgements"]
    ]
    settings = (f"judging.judges=[{A}]", "metrics.resamples=200")
    found = prepare(Context(rows, *settings, encoder=Encoder())).rows["agreement"]
    kappas = {row.raters: row.value for row in found if (row.scope, row.category, row.statistic) == KAPPA_OF_EMPATHY}  # type: ignore[attr-defined]
    assert kappas["panel × humans"] == kappas[f"{A} × humans"] != kappas[f"{B} × humans"]


def test_judges_and_people() -> None:
    # panel 5, 5, 2.5, 2.5; means of the people 4.5, 5, 2.5, 2 (a rating made after seeing the judge's is left out)
    def found(statistic: str) -> Any:
        return agreement("judge_human", "empathy", statistic, "panel × humans")

    assert (found("bias").value, found("bias").n) == (pytest.approx(5.0), 4)
    assert found("bias_early").value == pytest.approx(5.0)
    assert found("bias_late").value == pytest.approx(5.0)
    assert found("within_1").value == 1.0
    assert found("same_third").value == 1.0
    x, y = np.array([5, 5, 2.5, 2.5]), np.array([4.5, 5, 2.5, 2])
    assert found("pearson").value == pytest.approx(np.corrcoef(x, y)[0, 1])
    # ranks 3.5, 3.5, 1.5, 1.5 and 3, 4, 2, 1: covariance 4, variances 4 and 5
    assert found("spearman").value == pytest.approx(4 / math.sqrt(20))
    assert found("bias").ci_low is None, "one dialogue"
    from sklearn.metrics import cohen_kappa_score

    doubled = {"judge": [10, 10, 5, 5], "h1": [10, 10, 4, 4], "h2": [8, 10, 6, 4]}

    def kappa(one: str, other: str) -> float:
        return float(cohen_kappa_score(doubled[one], doubled[other], labels=range(11), weights="quadratic"))

    mean = (kappa("judge", "h1") + kappa("judge", "h2")) / 2
    assert found("mean_kappa_quadratic").value == pytest.approx(mean)
    people = agreement("human", "empathy", "mean_kappa_quadratic", "h1 × h2")
    assert people.value == pytest.approx(kappa("h1", "h2"))
    assert agreement("human", "empathy", "raw", "h1 × h2").value == pytest.approx(0.5)
    assert agreement("judge_human", "empathy/ann", "bias", "panel × humans").value == pytest.approx(5.0)


def test_models_are_those_named_in_settings_and_data_that_are_known() -> None:
    aliases = [row.alias for row in prepared().rows["models"]]
    assert aliases == sorted(aliases)
    assert {"scripted-a", "scripted-b", "scripted-c"} == set(aliases)


def test_every_row_fits_its_table_and_no_key_comes_twice() -> None:
    for name, rows in prepared().rows.items():
        table = TABLES[name]
        assert table.arrow(rows).num_rows == len(rows)
        assert rows or name == "user_likeness", "the planted build has no real users"
        keys = [tuple(getattr(row, column) for column in table.key) for row in rows]
        assert len(set(keys)) == len(keys), name


def test_row_order_changes_nothing() -> None:
    backwards = {name: list(reversed(rows)) for name, rows in planted().items()}
    other_order = (f"judging.judges=[{B},{A}]", "metrics.resamples=2000")
    again = prepare(Context(backwards, *other_order, encoder=Encoder()))
    assert again.rows["metrics"] == prepared().rows["metrics"]
    assert again.rows["comparisons"] == prepared().rows["comparisons"]


def test_a_build_without_evaluation_gives_empty_tables() -> None:
    empty = prepare(Context({}))
    assert {name: len(rows) for name, rows in empty.rows.items()} == {
        "metrics": 0,
        "comparisons": 0,
        "ranks": 0,
        "agreement": 0,
        "turn_drifts": 0,
        "models": 3,
        "user_likeness": 0,
    }


def test_conversations_that_nobody_has_judged_have_no_score_and_keep_their_labels() -> None:
    rows = planted() | {"turn_judgements": [], "final_intent_judgements": [], "human_ratings": []}
    found = prepare(Context(rows, encoder=Encoder())).rows["metrics"]
    ficr = next(row for row in found if row.metric == "ficr" and row.target == "bob")  # type: ignore[attr-defined]
    assert (ficr.value, ficr.n, ficr.n_unscored) == (None, 0, 14)  # type: ignore[attr-defined]
    assert any(row.metric == "latent_accuracy" and row.value == 1.0 for row in found)  # type: ignore[attr-defined]


def test_the_stage_declares_what_it_reads_and_writes() -> None:
    assert STAGE.writes == ("metrics", "comparisons", "ranks", "agreement", "turn_drifts", "models", "user_likeness")
    assert set(STAGE.reads_if_made) == set(STAGE.reads)
    assert STAGE.roles(Context({}).settings) == {}, "no model is asked, so no key is needed"
    one, other = (STAGE.files(Context({}, *changes).settings) for changes in ((), (f"judging.judges=[{A},{B}]",)))
    assert one != other, "the configured panel is part of the fingerprint"


def in_chinese(similarity: Any) -> list[Any]:
    """The metrics of the study with final intents in Chinese, compared with whatever `similarity` is."""
    rows = planted()
    seeds = [{**seed, "final_intent": CHINESE} for seed in rows["chat_seeds"]]
    context = Context(rows | {"chat_seeds": seeds}, *SETTINGS, encoder=Encoder())
    context.similarity = lambda language: similarity  # type: ignore[attr-defined]
    return list(prepare(context).rows["metrics"])


def test_a_chinese_final_intent_has_no_alignment_where_no_encoder_knows_chinese(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = in_chinese(ByCharacters("zh", "no weights"))
    aligned = [row for row in found if row.metric == "alignment"]
    assert aligned and all(row.value is None and row.n == 0 for row in aligned)
    drifts = [row for row in prepared().rows["metrics"] if row.metric.startswith("drift_")]  # type: ignore[attr-defined]
    assert [row for row in found if row.metric.startswith("drift_")] == drifts
    assert [record.getMessage() for record in caplog.records if "final intents in it" in record.getMessage()]


def test_a_chinese_final_intent_is_aligned_by_the_encoder_that_knows_chinese() -> None:
    class Multilingual(SentenceEncoder):
        def encode(self, texts: Sequence[str], *_: Any, **__: Any) -> np.ndarray:
            return Encoder().encode([FINAL_INTENT if text == CHINESE else text for text in texts])

    expected = [row for row in prepared().rows["metrics"] if row.metric == "alignment"]  # type: ignore[attr-defined]
    assert [row for row in in_chinese(Multilingual("zh")) if row.metric == "alignment"] == expected
