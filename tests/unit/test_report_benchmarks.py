"""A build of one benchmark: the other's empty sections are left out, and the summary says so."""

from __future__ import annotations

import re
from typing import Any

import pytest

from flows import chain
from tasks.report.facts import made_for
from tests.contract.sql_rows import good
from tests.unit.test_report_page import Page, commit, page

ONLY_OF = {
    "demo": {"characters", "voting", "demo", "interactions", "dialogues", "predictions"},
    "eyt": {"eyt", "simulator", "likeness", "conversations"},
}


def made(benchmark: str, *stages: str) -> dict[str, Any]:
    return {stage: commit(stage, settings={"run": {"benchmark": benchmark}}) for stage in stages or ("personas",)}


def anchors(found: Page) -> set[str]:
    """What there is, as the ids of sections; whatever the navigation names is among them."""
    ids = {one["id"] or "" for one in found.all("section")}
    linked = {(one["href"] or "").removeprefix("#") for one in found.all("a")}
    assert linked - {"top", "content"} <= ids
    return ids


@pytest.mark.parametrize(("benchmark", "other"), [("demo", "eyt"), ("eyt", "demo")])
def test_empty_sections_of_the_other_benchmark_are_left_out(benchmark: Any, other: Any) -> None:
    found, whole = page({}, made(benchmark)), page({}, made("both"))
    assert anchors(whole) - anchors(found) == ONLY_OF[other]
    names = {"demo": "DEMO", "eyt": "EYT-Bench"}
    said = f"Made for {names[benchmark]} only (run.benchmark); sections of {names[other]} are left out"
    assert said in " ".join(found.text.split())
    assert "Made for" not in whole.text


@pytest.mark.parametrize("benchmark", ["demo", "eyt"])
def test_no_command_of_the_page_runs_a_stage_of_the_other_benchmark(benchmark: Any) -> None:
    offered = set(re.findall(r"--(?:only|from) (\w+)", page({}, made(benchmark)).text))
    assert offered
    assert not offered & {stage.name for stage in chain.chain() if not stage.serves(benchmark)}


def test_sections_that_hold_rows_all_the_same_stay() -> None:
    whole = anchors(page(good()))
    assert anchors(page(good(), made("eyt"))) == whole
    assert "simulator" in anchors(page(good(), made("demo")))


def test_a_build_of_both_halves_is_made_for_neither_alone() -> None:
    assert made_for(made("demo", "personas") | made("both", "chatseeds")) is None
    assert made_for(made("demo", "personas", "scenes")) == "demo"
    assert made_for({"personas": commit("personas")}) is None, "committed before it was recorded"
    assert made_for({}) is None
