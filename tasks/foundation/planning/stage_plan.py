"""The plan of one stage run: its estimate, in calls, tokens and dollars.

known = known_of(committed(layout, commits), stage.reads)
plan = plan_of_stage(stage, View(settings, models, known, member))
plan.to_json()  # what the commit records under "plan"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasks.foundation.planning.calls import PlannedCalls, planned_calls
from tasks.foundation.planning.estimate import Known, View, estimator_of
from tasks.foundation.stage import Stage


@dataclass(frozen=True, slots=True)
class StagePlan:
    """What a stage run asks, by model and purpose; what it makes for later stages; what was assumed."""

    calls: Sequence[PlannedCalls] = ()
    makes: Known = field(default_factory=dict)
    assumes: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        return {"calls": [each.to_json() for each in self.calls], "assumes": list(self.assumes)}

    @staticmethod
    def calls_of(record: Mapping[str, Any]) -> list[PlannedCalls] | None:
        """What a commit's record says was planned; None where it says nothing."""
        plan = record.get("plan")
        return None if plan is None else [PlannedCalls.from_json(plain) for plain in plan["calls"]]


def plan_of_stage(stage: Stage, view: View) -> StagePlan:
    """The plan of a run; empty for a stage that asks no model and says nothing of the rows it makes."""
    estimator = estimator_of(stage)
    if estimator is None:
        return StagePlan()
    estimate = estimator(view)
    batched = getattr(getattr(view.settings, stage.name), "mode", "live") == "batch"
    calls = planned_calls(estimate.asks, view.settings.llm, view.models, batched=batched)
    return StagePlan(calls, estimate.makes, estimate.assumes)
