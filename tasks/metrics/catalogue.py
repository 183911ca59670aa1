"""Every metric by its name, declared once: unit, what its n counts, which end is better, and what readers call it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tasks.foundation.tables import Row
from tasks.foundation.tables.dialogues import AwarenessTask
from tasks.foundation.tables.evaluation import InteractionScore, SubScore, TurnJudgement
from tasks.foundation.tables.types import Score10

NUnit = Literal["turn", "conversation", "item", "score", "dialogue"]
Better = Literal["high", "low"]


def _columns_of(row: type[Row], kind: Any) -> tuple[str, ...]:
    """The columns of a kind of score, in the table's order."""
    return tuple(name for name, info in row.model_fields.items() if info.annotation == kind | None)


AWARENESS_TASKS: tuple[str, ...] = get_args(AwarenessTask)
INTERACTION_DIMENSIONS = _columns_of(InteractionScore, Score10)
LABELS = ("explicit", "latent", "emotion")
DRIFTS = ("latent", "explicit", "pair")

DIMENSION_METRIC = {"empathy": "empathy", "persona": "persona_alignment", "anthropomorphic": "anthropomorphic"}
"""The three subjective dimensions (EYT-Bench section 3.5.3), and how their metrics are named; columns of sub-indicators
use the short name."""

SUB_INDICATORS = _columns_of(TurnJudgement, SubScore)
"""Columns of `turn_judgements`, `<dimension>_<name>`, and the metrics of the same names."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What a metric is. `better` None: neither end is better, and targets are not compared by it."""

    unit: str
    n_unit: NUnit
    better: Better | None
    label: str
    """As short as the head of a column."""
    scale: tuple[float, float] | None = None
    """The lowest and highest value of what it is the mean of; None: no mean, or no ends."""


SCALES = {
    "0-10": (0.0, 10.0),
    "0-20": (0.0, 20.0),
    "0-100": (0.0, 100.0),
    "share": (0.0, 1.0),
    "cosine": (0.0, 2.0),
    "rho": (-1.0, 1.0),
}
"""By unit."""

METRICS: dict[str, Metric] = {}


def _declare(unit: str, n_unit: NUnit, better: Better | None, *names: str, **labelled: str) -> None:
    """Metrics that have all but the name in common; the label is the name in words, unless one is given."""
    for name, label in {**{name: name.replace("_", " ") for name in names}, **labelled}.items():
        scale = None if name.endswith("macro_f1") else SCALES.get(unit)
        METRICS[name] = Metric(unit, n_unit, better, label, scale)


OF_DEMO = ("overall_pooled", "overall_mean", "awareness", *AWARENESS_TASKS, "interaction", *INTERACTION_DIMENSIONS)
"""The scores of DEMO."""

_declare("0-10", "score", "high", overall_pooled="overall, pooled", overall_mean="overall, mean of both")
_declare("0-10", "score", "high", "awareness", *AWARENESS_TASKS, "interaction", *INTERACTION_DIMENSIONS)

_declare("share", "turn", "high", explicit_accuracy="explicit intent", latent_accuracy="latent intent")
_declare("share", "turn", "high", emotion_accuracy="emotion")
_declare("share", "turn", "high", **{f"{label}_macro_f1": f"{label}, macro-F1" for label in LABELS})
_declare("share", "turn", "low", unreadable_share="unreadable labels")
_declare("cosine", "conversation", "low", drift_latent="intent drift")
_declare("cosine", "conversation", "low", drift_explicit="drift, explicit", drift_pair="drift, pair")
_declare("rho", "conversation", "high", "alignment")
_declare("share", "conversation", "high", ficr="FICR")
_declare("share", "conversation", None, "final_intent_undecided")
_declare("0-100", "conversation", "high", "satisfaction")
_declare("turns", "conversation", None, t_actual="turns")
for _dimension, _metric in DIMENSION_METRIC.items():
    for _kind in ("weighted", "unweighted"):
        _declare("0-100", "conversation", "high", **{f"{_metric}_{_kind}": f"{_dimension}, {_kind}"})
    _declare("points", "conversation", None, f"{_metric}_early_minus_late")
    _declare("points", "turn", None, f"{_metric}_early_minus_late_pooled")
    _declare("tau", "conversation", None, f"{_metric}_rank_tau")
    _declare("pairs", "conversation", None, f"{_metric}_rank_flips")
_declare("0-20", "conversation", "high", **{name: name.replace("_", ", ", 1) for name in SUB_INDICATORS})
_declare("share", "conversation", None, void_share="void", target_fault_share="target's fault")

_declare("per turn", "turn", None, simulator_label_reask_rate="labels asked again")
_declare("per turn", "turn", None, simulator_role_break_rate="role breaks")
_declare("share", "turn", None, simulator_empty_share="empty turns", simulator_repeated_share="repeated turns")
_declare("share", "conversation", None, simulator_early_stop_share="stopped early")
_declare("share", "conversation", None, simulator_fault_share="simulator's fault")
_declare("share", "conversation", None, simulator_front_loading="front-loading")
_declare("share", "turn", None, simulator_polite_share="polite turns")
_declare("cv", "conversation", None, simulator_verbosity_variation="verbosity variation")
_declare("share", "conversation", None, simulator_mattr="lexical diversity")


def sub_indicators_of(dimension: str) -> Iterator[str]:
    """The five of one dimension."""
    return (name for name in SUB_INDICATORS if name.startswith(f"{dimension}_"))
