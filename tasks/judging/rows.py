"""From a judge's opinion, a rule, or neither to a row. Pure.

Unscored is a state of its own: NULL scores and why, never 0. A rule gives scores without asking anybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from tasks.foundation.ids import canonical_json
from tasks.foundation.tables.evaluation import (
    AwarenessPrediction,
    AwarenessScore,
    FinalIntentJudgement,
    InteractionScore,
    TurnJudgement,
)
from tasks.judging.prompts import AwarenessOpinion, FinalOpinion, InteractionOpinion
from tasks.judging.rubric import list_columns

DIMENSIONS = tuple(InteractionOpinion.model_fields)


@dataclass(frozen=True, slots=True)
class Unscored:
    """There is no score, and why: a failure kind of the engine, or the fault that made the talk void."""

    kind: str


@dataclass(frozen=True, slots=True)
class Judge:
    alias: str
    family: str


def make_awareness_row(
    prediction: AwarenessPrediction, judge: Judge, opinion: AwarenessOpinion | Unscored | None
) -> AwarenessScore:
    """The scores of a prediction; None: it is empty, 0 and 0 by rule."""
    scored = opinion if isinstance(opinion, AwarenessOpinion) else None
    by_rule = None if opinion else 0
    return AwarenessScore(
        item_id=prediction.item_id,
        target=prediction.target,
        sample=prediction.sample,
        judge=judge.alias,
        accuracy=scored.accuracy.score if scored else by_rule,
        hallucination=scored.hallucination.score if scored else by_rule,
        accuracy_reason=scored.accuracy.reason if scored else None,
        hallucination_reason=scored.hallucination.reason if scored else None,
        unscored_kind=_kind(opinion),
        scored_by="judge" if opinion else "rule",
    )


def make_interaction_row(
    interaction_id: str, judge: Judge, opinion: InteractionOpinion | Unscored | None, *, by_rule: bool = False
) -> InteractionScore:
    """The four scores of an episode; None: the target is at fault, 0 by rule. `by_rule` marks an `Unscored` that no
    judge was asked about."""
    if isinstance(opinion, InteractionOpinion):
        given = {name: getattr(opinion, name) for name in DIMENSIONS}
        scores: dict[str, int | None] = {name: one.score for name, one in given.items()}
        reasons = canonical_json({name: one.reason for name, one in given.items()})
    else:
        scores, reasons = dict.fromkeys(DIMENSIONS, None if opinion else 0), None
    return InteractionScore(
        interaction_id=interaction_id,
        judge=judge.alias,
        **scores,
        reasons=reasons,
        unscored_kind=_kind(opinion),
        scored_by="rule" if by_rule or opinion is None else "judge",
    )


def make_turn_row(
    conversation_id: str, turn_index: int, judge: Judge, opinions: Mapping[str, BaseModel | Unscored] | None
) -> TurnJudgement:
    """The fifteen sub-scores of a turn; None: the target gave no answer, 0 by rule.

    `opinions` holds the reply to each sub-indicator's request. Where one of several requests stayed unreadable
    its sub-scores are null and `unscored_kind` says why; the others' stand.
    """
    scores: dict[str, float | None] = dict.fromkeys(list_columns(), None if opinions else 0.0)
    reasons: dict[str, str] = {}
    kind = None
    for name, opinion in (opinions or {}).items():
        if isinstance(opinion, Unscored):
            kind = kind or opinion.kind
        else:
            given: Any = getattr(opinion, name)
            scores[name], reasons[name] = given.score, given.reason
    return TurnJudgement(
        conversation_id=conversation_id,
        turn_index=turn_index,
        judge=judge.alias,
        family=judge.family,
        **scores,
        reasons=canonical_json(reasons) if reasons else None,
        unscored_kind=kind,
        scored_by="judge" if opinions else "rule",
    )


def make_final_row(conversation_id: str, judge: Judge, opinion: FinalOpinion | Unscored | None) -> FinalIntentJudgement:
    """Whether the final intent was met; None: the target is at fault, not completed and satisfaction 1 by rule."""
    scored = opinion if isinstance(opinion, FinalOpinion) else None
    return FinalIntentJudgement(
        conversation_id=conversation_id,
        judge=judge.alias,
        family=judge.family,
        completed=scored.completed if scored else (None if opinion else False),
        satisfaction=scored.satisfaction if scored else (None if opinion else 1),
        reason=scored.reason if scored else None,
        unscored_kind=_kind(opinion),
        scored_by="judge" if opinion else "rule",
    )


def _kind(opinion: BaseModel | Unscored | None) -> str | None:
    return opinion.kind if isinstance(opinion, Unscored) else None
