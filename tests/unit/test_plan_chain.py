"""The plan against the actual: the whole chain on scripted models takes about what the dry run said."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from flows import chain
from flows.chain.plan import RunPlan, _run_plan, plan_build
from tasks.foundation.ids import seed_of
from tasks.foundation.llm.models import load_models
from tasks.foundation.llm.providers.scripted import make_reply
from tasks.foundation.llm.request import ProviderCall, RawReply
from tasks.foundation.llm.schema_filler import SchemaFiller
from tasks.foundation.run.context import Workspace, read_rows
from tasks.foundation.run.cost_plan import total_of
from tasks.foundation.run.dry_inputs import MOST_ROWS, keep_fewer, shrink
from tasks.foundation.run.stage_run import StageRun
from tasks.foundation.run.usual_usage import usual_table
from tasks.foundation.settings import load_settings
from tasks.foundation.store.commits import commits_of
from tasks.foundation.store.layout import Layout
from tasks.foundation.tables import TABLES
from tests.unit.source_stages import WordEncoder

BUILD = "planned"
ENGLISH_ONLY = "dialogues.if_unfit=keep"
"""The scripted model below knows no Chinese."""
PILOT = (
    *("personas.characters={en: 4, zh: 4}", "scenes.sample={en: 4, zh: 4}", "conflicts.pairings={en: 8, zh: 8}"),
    ENGLISH_ONLY,
)
LARGER = (
    "personas.characters={en: 12, zh: 12}",
    "scenes.sample={en: 12, zh: 12}",
    "conflicts.pairings={en: 40, zh: 40}",
    *("conflicts.select=24", "conflicts.keep_share=0.5", ENGLISH_ONLY),
)
ASKING = tuple(name for name in chain.names() if name != "metrics")


class Words(WordEncoder):
    fingerprint = "words"


class Talkative(SchemaFiller):
    """Long texts; most of what is asked with yes or no is so, and no verdict goes against its checks."""

    def write(self, shortest: int, longest: int, name: str) -> str:
        return " ".join(self.sentence(8) for _ in range(self.source.randint(1, 3)))[:longest]

    def chance_of(self, name: str) -> float:
        return 1.0 if name.endswith("_ok") else 0.9


def talkative(call: ProviderCall) -> RawReply:
    """Longer replies than the table has; one in ten in JSON is cut short and asked for again."""
    source = random.Random(seed_of(call.key()))
    filler = Talkative(source)
    if call.schema is None:
        return make_reply(filler.sentence(60), call)
    text = json.dumps(filler.fill(call.schema), ensure_ascii=False)
    return make_reply(text[:-1] if source.random() < 0.1 else text, call)


@pytest.fixture(autouse=True)
def _views_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making all views after every commit would take half of the time."""
    monkeypatch.setattr("tasks.foundation.run.stage_run.rebuild_views", lambda layout: None)


def open_workspace(folder: Path, *overrides: str, model: str | None = None, profile: str = "test") -> Workspace:
    """A profile, in a folder of its own; with another callable as its scripted models, if one is named."""
    found = Workspace.open(profile, overrides, Layout(folder / "artifacts"))
    found.stage_of = chain.stage_of()
    found._encoder = Words()
    if model is not None:
        found.models = {alias: replace(spec, name=model) for alias, spec in found.models.items()}
    return found


async def run_chain(workspace: Workspace, build: str, names: Sequence[str]) -> dict[str, Counter[str]]:
    """Calls and tokens of each run, from its ledger."""
    found: dict[str, Counter[str]] = {}
    for stage in map(chain.stage, names):
        for member in stage.members(workspace.settings):
            with StageRun.open(stage, workspace, build, member) as run:
                run.prepare()
                shards = run.shards
                while shards:
                    for shard in shards:
                        await run.work(shard)
                    shards = run.draw_on()
                commit = run.commit()
                await run.close()
            rows = read_rows(workspace.layout, TABLES["llm_calls"], [part.path for part in commit.tables["llm_calls"]])
            found[commit.run] = Counter(
                calls=rows["attempts"].sum(), tokens=rows["prompt_tokens"].sum() + rows["completion_tokens"].sum()
            )
    workspace.close()
    return found


def difference(plans: Sequence[RunPlan], runs: Mapping[str, Counter[str]]) -> dict[str, float]:
    """By how much the calls and tokens of all runs differ from the plan, as a share of the actual."""
    total = total_of([call for plan in plans for call in plan.calls])
    actual = Counter[str]()
    for each in runs.values():
        actual += each
    return {"calls": total.calls.value / actual["calls"] - 1, "tokens": total.tokens.value / actual["tokens"] - 1}


async def test_a_first_run_takes_about_what_was_planned_and_later_ones_are_planned_by_their_state(
    tmp_path: Path,
) -> None:
    place = open_workspace(tmp_path, *PILOT)
    plans = plan_build(place, BUILD, ASKING)
    runs = await run_chain(place, BUILD, ASKING)
    assert runs.keys() == {plan.run for plan in plans}
    off = difference(plans, runs)
    assert all(abs(share) < 0.25 for share in off.values()), off
    again = plan_build(open_workspace(tmp_path, *PILOT), BUILD, ASKING)
    assert {(plan.state, len(plan.calls)) for plan in again} == {("up to date", 0)}
    changed = open_workspace(tmp_path, *PILOT, "voting.max_tokens=900")
    plans = plan_build(changed, BUILD, ("dialogues", "voting", "judging"))
    assert [plan.state for plan in plans] == ["up to date", "again", "if rows change"]
    assert plans[2].calls[0].calls.low == 0, "perhaps nothing"
    recorded = commits_of(place.layout, BUILD)["voting"].record["plan"]
    assert sum(each["requests"][0] for each in recorded) > 0


async def test_after_a_pilot_a_larger_run_takes_about_what_was_planned(tmp_path: Path) -> None:
    model = f"{__name__}:talkative"
    pilot = open_workspace(tmp_path, *PILOT, model=model)
    before = plan_build(pilot, "larger", ASKING)
    await run_chain(pilot, "pilot", ASKING)
    place = open_workspace(tmp_path, *LARGER, model=model)
    plans = plan_build(place, "larger", ASKING)
    bases = {call.basis for plan in plans for call in plan.calls}
    assert "own" in bases and {call.basis for plan in before for call in plan.calls} == {"table"}
    off = difference(plans, await run_chain(place, "larger", ASKING))
    assert all(abs(share) < 0.25 for share in off.values()), off
    parts = commits_of(place.layout, "larger")["conflicts"].tables["pairings"]
    assert sum(part.label.startswith("draw") for part in parts) >= 1, "some of the first 48 are not coherent"
    assert parts[0].rows == 48


@pytest.mark.parametrize("profile", ["demo-paper", "demo-today", "eyt-paper", "eyt-today", "local", "demo"])
def test_every_profile_can_be_planned_for_every_model_it_names(profile: str, tmp_path: Path) -> None:
    place = open_workspace(tmp_path, profile=profile)
    plans = plan_build(place, BUILD, chain.needed(place.settings))
    for stage in chain.chain():
        of_stage = [plan for plan in plans if plan.stage == stage.name]
        assert not any(plan.note for plan in of_stage), stage.name
        asked = {call.alias for plan in of_stage for call in plan.calls if call.calls.value}
        assert asked in (set(stage.aliases(place.settings)), set()), stage.name


def test_texts_of_a_dataset_that_inspire_are_planned_without_the_hub(tmp_path: Path) -> None:
    texts = "{hub: team/texts, revision: main, column: text, language: en}"
    place = open_workspace(
        tmp_path, "personas.sources=[]", "personas.characters={en: 7, zh: 0}", f"personas.inspirations=[{texts}]"
    )
    (plan,) = plan_build(place, BUILD, ("personas",))
    assert plan.note == "" and plan.calls[0].requests.value == 7


def test_a_large_amount_is_planned_from_a_small_one(tmp_path: Path) -> None:
    place = open_workspace(
        tmp_path, "personas.characters={en: 90000, zh: 30000}", "conflicts.pairings={en: 5000, zh: 0}"
    )
    plans = {plan.stage: plan for plan in plan_build(place, BUILD, ("personas", "conflicts", "dialogues"))}
    assert plans["personas"].calls[0].requests.value == pytest.approx(120_000)
    assert plans["conflicts"].calls[0].requests.value == pytest.approx(5000)
    assert plans["dialogues"].calls[0].requests.value < 5000


def test_the_rounds_of_a_stage_are_expected_at_the_usual_share_and_up_to_its_cap(tmp_path: Path) -> None:
    usual = usual_table().replies["conflicts"]["reflect"].chances["is_coherent"]

    def planned(*overrides: str) -> list[float]:
        place = open_workspace(tmp_path, *overrides, profile="demo-paper")
        plans = plan_build(place, BUILD, ("conflicts", "dialogues"))
        return [plan.calls[0].requests.value for plan in plans]

    # Of 120 pairings that are tried dry, one standard deviation is 4 %; and a dry run draws nothing on that it lacks.
    assert planned() == pytest.approx([1800 / 0.3 / usual, 1800], rel=0.15)
    assert planned("conflicts.pairings={en: 3200, zh: 3200}") == pytest.approx([6400, 6400 * usual * 0.3], rel=0.15)


def test_amounts_shrink_together_and_caps_with_what_they_are_given() -> None:
    settings = load_settings("test", ["scenes.sample={en: 3000, zh: 600}", "conflicts.select=500"])
    small, share = shrink(settings.scenes)
    assert (small.sample.en, small.sample.zh, share) == (MOST_ROWS, 60, 10.0)
    assert shrink(settings.voting) == (settings.voting, 1.0)
    assert keep_fewer(settings.conflicts, 0.1).select == 50
    assert keep_fewer(settings.conflicts, 0.0001).select == 1, "a cap of nothing would be none"
    judging = load_settings("test", ["judging.subsample={judges: [scripted-a], n: 40, by: [pool], seed: 1}"]).judging
    assert judging.subsample is not None and keep_fewer(judging, 0.5).subsample.n == 20  # type: ignore[union-attr]


def test_of_a_partial_stage_only_the_failed_share_is_planned(tmp_path: Path) -> None:
    plans = plan_build(open_workspace(tmp_path, *PILOT), BUILD, ("scenes",))
    (calls,) = plans[0].calls
    commit = type("Partial", (), {"accounting": type("Counts", (), {"n_failed": 2, "n_produced": 6})})()
    plan = _run_plan("scenes", "scenes", "failed rows", [calls], commit, "")
    assert plan.calls[0].requests.value == calls.requests.value / 4
    assert plan.note.startswith("2 failed rows of 8")
    assert load_models()["scripted-a"].alias == "scripted-a"
