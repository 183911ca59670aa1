"""What a plan probably comes to, from how requests went before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flows.chain.plan import RunPlan
from flows.cli.plan_tables import likely_lines
from tasks.foundation.llm.models import load_models
from tasks.foundation.planning.calls import PlannedCalls
from tasks.foundation.planning.likely import Went, earlier_requests, likely
from tasks.foundation.planning.span import Span
from tasks.foundation.run import Workspace
from tasks.foundation.store.layout import Layout
from tests.many_rows.task import STAGE
from tests.whole_stage import run_whole

SPEC = replace(load_models()["scripted-a"], prices={"input_per_million": 2.0, "output_per_million": 10.0})
PLANNED = PlannedCalls("scripted-a", "vote", *(Span(100, 200) for _ in range(4)), dollars=None)
OWN, OTHER = Went("scripted", 10, 1.5, 1000.0, 0.0, 100.0), Went("scripted", 30, 1.0, 600.0, 0.0, 60.0)


def test_requests_are_taken_to_go_as_those_of_the_same_model_went() -> None:
    earlier = {("voting", "vote", "scripted-a"): OWN, ("voting", "vote", "other"): OTHER}
    found = likely("voting", PLANNED, earlier, SPEC, batched=False)
    assert found is not None
    assert (found.calls, found.prompt_tokens, found.completion_tokens) == (
        *(Span(150, 300), Span(100_000, 200_000), Span(10_000, 20_000)),
    )
    assert found.rests_on == {("voting", "vote", "scripted-a")}
    assert found.dollars == Span(pytest.approx(0.3), pytest.approx(0.6))  # type: ignore[arg-type]


def test_where_the_model_was_never_asked_others_stand_for_it_by_their_numbers() -> None:
    earlier = {("voting", "vote", "b"): OWN, ("voting", "vote", "c"): OTHER, ("judging", "vote", "scripted-a"): OWN}
    found = likely("voting", PLANNED, earlier, SPEC, batched=False)
    assert found is not None
    assert found.prompt_tokens.low == 100 * (10 * 1000 + 30 * 600) / 40
    assert found.rests_on == {("voting", "vote", "b"), ("voting", "vote", "c")}


def test_models_behind_an_api_are_not_taken_to_answer_like_those_in_this_process() -> None:
    earlier = {("voting", "vote", alias): replace(OWN, kind=kind) for alias, kind in (("b", "embedded"), ("c", "api"))}
    found = likely("voting", PLANNED, earlier, replace(SPEC, provider="google", api_key_env="SOME_KEY"), batched=False)
    assert found is not None
    assert found.rests_on == {("voting", "vote", "c")}
    assert likely("voting", PLANNED, earlier, SPEC, batched=False) is None


def test_nothing_is_said_of_what_nobody_was_asked() -> None:
    assert likely("voting", PLANNED, {("voting", "review", "scripted-a"): OWN}, SPEC, batched=False) is None


def test_a_store_without_builds_knows_nothing(tmp_path: Path) -> None:
    assert earlier_requests(Layout(tmp_path)) == {}


async def test_the_ledgers_of_all_builds_are_read_and_a_replay_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLOQUY_BENCH_ROWS", "12")

    def workspace() -> Workspace:
        return Workspace.open("test", (), Layout(tmp_path / "artifacts"))

    for build in ("b1", "b2"):
        await run_whole(STAGE, workspace(), build)
    found = earlier_requests(workspace().layout)
    assert list(found) == [("curation", "distil", "scripted-a")]
    went = found["curation", "distil", "scripted-a"]
    assert (went.n, went.calls) == (12, 1.0)
    assert went.prompt_tokens > 0
    planned = PlannedCalls("scripted-a", "distil", *(Span(50, 50) for _ in range(4)), dollars=None)
    unknown = replace(planned, purpose="vote")
    lines = list(likely_lines(workspace(), [RunPlan("curation", "curation", "to do", [planned, unknown])]))
    assert lines[0].startswith("Likely, as 12 such requests went in the builds here: 50 calls, ")
    assert lines[1] == "Not in that, as nobody was asked it before: vote (curation)."
    mostly = replace(unknown, requests=Span(51, 51))
    assert list(likely_lines(workspace(), [RunPlan("curation", "curation", "to do", [planned, mostly])])) == []
