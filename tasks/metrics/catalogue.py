"""Every metric by its name: unit, what its n counts, and which end of it is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NUnit = Literal["turn", "conversation", "item", "score", "dialogue"]
Better = Literal["high", "low"]

AWARENESS_TASKS = ("goal", "persona", "scene", "utterance")
INTERACTION_DIMENSIONS = ("goal_achievement", "believability", "skillfulness", "realistic")
LABELS = ("explicit", "latent", "emotion")
DRIFTS = ("latent", "explicit", "pair")

DIMENSIONS: dict[str, tuple[str, ...]] = {
    "empathy": ("recognition", "attribution", "resonance", "response", "support"),
    "persona": ("style", "value", "culture", "memory", "security"),
    "anthropomorphic": ("colloquial", "emotional", "flow", "flexibility", "rhythm"),
}
"""The three subjective dimensions and their five sub-indicators (EYT-Bench section 3.5.3)."""

DIMENSION_METRIC = {"empathy": "empathy", "persona": "persona_alignment", "anthropomorphic": "anthropomorphic"}
"""How a dimension's metrics are named; columns and sub-indicators use the short name."""

SUB_INDICATORS = tuple(f"{dimension}_{part}" for dimension, parts in DIMENSIONS.items() for part in parts)
"""Column names of `turn_judgements`, and the metrics of the same names."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a metric is. `better` None: neither end is better, and targets are not compared by it."""

    unit: str
    n_unit: NUnit
    better: Better | None = None


def _kinds() -> dict[str, Kind]:
    demo = [*AWARENESS_TASKS, "awareness", *INTERACTION_DIMENSIONS, "interaction", "overall_pooled", "overall_mean"]
    kinds = {name: Kind("0-10", "score", "high") for name in demo}
    for label in LABELS:
        kinds[f"{label}_accuracy"] = Kind("share", "turn", "high")
        kinds[f"{label}_macro_f1"] = Kind("share", "turn", "high")
    kinds["unreadable_share"] = Kind("share", "turn", "low")
    for drift in DRIFTS:
        kinds[f"drift_{drift}"] = Kind("cosine", "conversation", "low")
    kinds["alignment"] = Kind("rho", "conversation", "high")
    kinds["ficr"] = Kind("share", "conversation", "high")
    kinds["final_intent_undecided"] = Kind("share", "conversation")
    kinds["satisfaction"] = Kind("0-100", "conversation", "high")
    kinds["t_actual"] = Kind("turns", "conversation")
    for name in DIMENSION_METRIC.values():
        kinds[f"{name}_weighted"] = Kind("0-100", "conversation", "high")
        kinds[f"{name}_unweighted"] = Kind("0-100", "conversation", "high")
        kinds[f"{name}_early_minus_late"] = Kind("points", "conversation")
        kinds[f"{name}_early_minus_late_pooled"] = Kind("points", "turn")
        kinds[f"{name}_rank_tau"] = Kind("tau", "conversation")
        kinds[f"{name}_rank_flips"] = Kind("pairs", "conversation")
    kinds |= {name: Kind("0-20", "conversation", "high") for name in SUB_INDICATORS}
    kinds |= {name: Kind("share", "conversation") for name in ("void_share", "target_fault_share")}
    return kinds | _simulator_kinds()


def _simulator_kinds() -> dict[str, Kind]:
    return {
        "simulator_label_reask_rate": Kind("per turn", "turn"),
        "simulator_role_break_rate": Kind("per turn", "turn"),
        "simulator_empty_share": Kind("share", "turn"),
        "simulator_repeated_share": Kind("share", "turn"),
        "simulator_polite_share": Kind("share", "turn"),
        "simulator_early_stop_share": Kind("share", "conversation"),
        "simulator_fault_share": Kind("share", "conversation"),
        "simulator_front_loading": Kind("share", "conversation"),
        "simulator_verbosity_variation": Kind("cv", "conversation"),
        "simulator_mattr": Kind("share", "conversation"),
    }


METRICS: dict[str, Kind] = _kinds()
