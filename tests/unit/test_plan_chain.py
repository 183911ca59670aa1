"""The plan against the actual: the whole chain on scripted models stays within what was planned for it.

Once with replies that can be used at once, once with replies that are as long and as wrong as the settings allow.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flows import chain
from flows.chain.plan import plan_build
from tasks.foundation.planning.calls import PlannedCalls, by_alias
from tasks.foundation.planning.totals import total_of
from tests.unit.planned_chain import BUILD, Taken, run_chain, workspace


@pytest.fixture(autouse=True)
def _without_views(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here asks SQL; making all views after every commit would take half of the time."""
    monkeypatch.setattr("tasks.foundation.run.stage_run.rebuild_views", lambda layout: None)


SMALL = ("personas.characters={en: 4, zh: 4}", "scenes.sample={en: 4, zh: 4}", "conflicts.pairings={en: 8, zh: 8}")
ASKING = tuple(name for name in chain.names() if name != "metrics")


def outside(planned: list[PlannedCalls], taken: Taken) -> list[str]:
    """What was taken less or more than planned, in words; empty is good."""
    by_name = {(each.alias, each.purpose): each for each in planned}
    found = [f"{name} was not planned" for name in taken if name not in by_name]
    for name, each in by_name.items():
        for number in ("requests", "calls", "prompt_tokens", "completion_tokens"):
            span, actual = getattr(each, number), taken.get(name, {}).get(number, 0)
            if not span.low <= actual <= span.high:
                found.append(f"{name}: {actual} {number}, planned {span.low} to {span.high}")
    return found


async def test_what_the_chain_takes_lies_within_what_was_planned_before_and_as_each_stage_began(tmp_path: Path) -> None:
    place = workspace(tmp_path, *SMALL)
    first = {plan.run: plan for plan in plan_build(place, BUILD, ASKING)}
    runs = await run_chain(place, ASKING)
    assert runs.keys() == first.keys()
    for run, (planned, taken) in runs.items():
        assert outside(planned, taken) == [], run
        assert outside(list(first[run].calls), taken) == [], run
    asked = {run for run, (_, taken) in runs.items() if taken}
    assert asked == {run for run in runs if run != "curation"}
    again = plan_build(workspace(tmp_path, *SMALL), BUILD, ASKING)
    assert {(plan.state, len(plan.calls)) for plan in again} == {("up to date", 0)}
    changed = plan_build(
        workspace(tmp_path, *SMALL, "voting.max_tokens=900"), BUILD, ("dialogues", "voting", "judging")
    )
    assert [plan.state for plan in changed] == ["up to date", "again", "if rows change"]
    taken = sum(total["requests"] for total in runs["voting"][1].values())
    assert total_of(changed[1].calls).requests.low <= taken, "the dialogues that are there are counted"
    assert total_of(changed[2].calls).requests.low == 0


async def test_replies_that_use_up_everything_reach_the_plan_and_do_not_pass_it(tmp_path: Path) -> None:
    place = workspace(tmp_path, *SMALL, model="tests.unit.planned_chain:troublesome")
    first = {plan.run: plan for plan in plan_build(place, BUILD, ASKING)}
    runs = await run_chain(place, ASKING)
    for run, (planned, taken) in runs.items():
        assert outside(planned, taken) == [], run
        assert outside(list(first[run].calls), taken) == [], run
    for run in ("personas", "scenes", "conflicts", "chatseeds"):
        (planned, taken) = runs[run]
        for each in planned:
            assert taken[each.alias, each.purpose]["completion_tokens"] == each.completion_tokens.high, run


@pytest.mark.parametrize("profile", ["demo-paper", "eyt-paper", "local", "demo"])
def test_every_profile_can_be_planned_for_every_model_it_names(profile: str, tmp_path: Path) -> None:
    place = workspace(tmp_path, profile=profile)
    plans = plan_build(place, BUILD, chain.names())
    for stage in chain.chain():
        calls = [each for plan in plans if plan.stage == stage.name for each in plan.calls]
        asked = {each.alias for each in by_alias(calls) if each.calls.high}
        assert asked in (set(stage.aliases(place.settings)), set()), stage.name
