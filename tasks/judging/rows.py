"""From a judge's opinion, a rule, or neither to a row. Pure.

Unscored is a state of its own: NULL scores and why, never 0. A rule gives scores without asking anybody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.foundation.ids import canonical_json
from tasks.foundation.tables import Row
from tasks.foundation.tables.evaluation import (
    AwarenessPrediction,
    AwarenessScore,
    FinalIntentJudgement,
    InteractionScore,
    JudgementRepeat,
    TurnJudgement,
)
from tasks.judging.prompts import FinalOpinion, InteractionOpinion
from tasks.judging.rubric import group_columns, list_columns

DIMENSIONS = tuple(InteractionOpinion.model_fields)

Opinions = Mapping[str, Any]
"""By name of what is judged a reason and a score, or `Unscored`."""


@dataclass(frozen=True, slots=True)
class Unscored:
    """There is no score, and why: a failure kind of the engine, or the fault that made the talk void."""

    kind: str


@dataclass(frozen=True, slots=True)
class Judge:
    alias: str
    family: str


def make_awareness_row(prediction: AwarenessPrediction, judge: Judge, opinions: Opinions | None) -> AwarenessScore:
    """The scores of a prediction, if there is one for each criterion; None: it is empty, 0 and 0 by rule."""
    scored = _all_scored(opinions)
    by_rule = None if opinions else 0
    return AwarenessScore(
        item_id=prediction.item_id,
        target=prediction.target,
        sample=prediction.sample,
        judge=judge.alias,
        accuracy=scored["accuracy"].score if scored else by_rule,
        hallucination=scored["hallucination"].score if scored else by_rule,
        accuracy_reason=scored["accuracy"].reason if scored else None,
        hallucination_reason=scored["hallucination"].reason if scored else None,
        unscored_kind=_first_kind(opinions),
        scored_by="judge" if opinions else "rule",
    )


def make_interaction_row(
    interaction_id: str, judge: Judge, opinions: Opinions | None, *, by_rule: bool = False
) -> InteractionScore:
    """The four scores of an episode, if there are four; None: the target is at fault, 0 by rule. `by_rule` marks an
    `Unscored` that no judge was asked about."""
    if given := _all_scored(opinions):
        scores: dict[str, int | None] = {name: one.score for name, one in given.items()}
        reasons = canonical_json({name: one.reason for name, one in given.items()})
    else:
        scores, reasons = dict.fromkeys(DIMENSIONS, None if opinions else 0), None
    return InteractionScore(
        interaction_id=interaction_id,
        judge=judge.alias,
        **scores,
        reasons=reasons,
        unscored_kind=_first_kind(opinions),
        scored_by="rule" if by_rule or opinions is None else "judge",
    )


def make_turn_row(conversation_id: str, turn_index: int, judge: Judge, opinions: Opinions | None) -> TurnJudgement:
    """The fifteen sub-scores of a turn; None: the target gave no answer, 0 by rule.

    Sub-scores that stayed unreadable are null and `unscored_kind` says why; the others stand.
    """
    scores: dict[str, float | None] = dict.fromkeys(list_columns(), None if opinions else 0.0)
    reasons: dict[str, str] = {}
    for name, given in (opinions or {}).items():
        if not isinstance(given, Unscored):
            scores[name], reasons[name] = given.score, given.reason
    return TurnJudgement(
        conversation_id=conversation_id,
        turn_index=turn_index,
        judge=judge.alias,
        family=judge.family,
        **scores,
        reasons=canonical_json(reasons) if reasons else None,
        unscored_kind=_first_kind(opinions),
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
        unscored_kind=opinion.kind if isinstance(opinion, Unscored) else None,
        scored_by="judge" if opinion else "rule",
    )


def make_repeat_rows(thing: str, first: Row, again: Row) -> list[JudgementRepeat]:
    """What a judge gave at its first and its second draw, by dimension."""
    one, other = _list_scores(first), _list_scores(again)
    judge: str = first.model_dump()["judge"]
    return [
        JudgementRepeat(thing=thing, judge=judge, dimension=name, first=one[name], again=other[name]) for name in one
    ]


def _list_scores(row: Row) -> dict[str, float | None]:
    """The scores of a row by dimension; of a turn, its sub-scores added up, null where one is missing."""
    match row:
        case AwarenessScore():
            given: dict[str, Any] = {"accuracy": row.accuracy, "hallucination": row.hallucination}
        case InteractionScore():
            given = {name: getattr(row, name) for name in DIMENSIONS}
        case TurnJudgement():
            given = {name: _add([getattr(row, column) for column in own]) for name, own in group_columns().items()}
        case FinalIntentJudgement():
            given = {"completed": row.completed, "satisfaction": row.satisfaction}
        case _:
            raise TypeError(f"expected a row of scores, found {type(row).__name__}")
    return {name: None if value is None else float(value) for name, value in given.items()}


def _add(scores: Sequence[float | None]) -> float | None:
    return None if None in scores else sum(score for score in scores if score is not None)


def _all_scored(opinions: Opinions | None) -> Opinions | None:
    return opinions if opinions and _first_kind(opinions) is None else None


def _first_kind(opinions: Opinions | None) -> str | None:
    """Why the first one without a score has none; None: each has one."""
    return next((one.kind for one in (opinions or {}).values() if isinstance(one, Unscored)), None)
