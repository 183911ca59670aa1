"""A pilot is the profile on fewer rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows import chain
from flows.chain.pilot import list_pilot_settings, write_whole
from tasks.foundation.run.context import Workspace
from tasks.foundation.settings import load_settings, profile_names
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import open_views
from tasks.report.prompt_section import read_whole
from tests.whole_stage import run_whole


@pytest.mark.parametrize("profile", profile_names())
def test_no_amount_of_a_pilot_is_above_that_of_its_profile(profile: str) -> None:
    whole = load_settings(profile, ())
    few = load_settings(profile, list_pilot_settings(whole, 3))
    for language in ("en", "zh"):
        assert few.scenes.sample.of(language) == min(3, whole.scenes.sample.of(language))
        assert few.personas.characters.of(language) == min(6, whole.personas.characters.of(language))
        assert few.conflicts.pairings.of(language) == min(12, whole.conflicts.pairings.of(language))
        assert few.curation.episodes.of(language) == min(3, whole.curation.episodes.of(language))
    assert few.chatseeds.per_pool == min(3, whole.chatseeds.per_pool)
    assert few.conflicts.select is not None and few.conflicts.select <= 6
    assert few.conflicts.keep_share == 1.0


@pytest.mark.parametrize("profile", profile_names())
def test_what_a_pilot_asks_and_whom_is_as_in_its_profile(profile: str) -> None:
    whole = load_settings(profile, ())
    few = load_settings(profile, list_pilot_settings(whole, 3))
    for section in ("dialogues", "voting", "conversation", "interaction", "awareness"):
        assert getattr(few, section) == getattr(whole, section)
    assert few.judging.judges == whole.judging.judges
    assert (few.personas.sources, few.scenes.sources) == (whole.personas.sources, whole.scenes.sources)


def test_a_report_finds_what_the_whole_takes(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert read_whole(layout, "pilot-x") is None
    write_whole(layout, "pilot-x", "x", {"expected": ["Expected: 3 calls."], "stages": []})
    assert read_whole(layout, "pilot-x") == {"profile": "x", "expected": ["Expected: 3 calls."], "stages": []}


async def test_the_whole_gets_what_the_pilot_paid_for(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "artifacts")
    few = list_pilot_settings(load_settings("test", ()), 2)
    for build, settings in (("pilot-test", few), ("whole", [])):
        for name in ("personas", "scenes", "chatseeds"):
            await run_whole(chain.stage(name), Workspace.open("test", settings, layout), build)
    with open_views(layout) as connection:
        asked = connection.execute(
            "select purpose, count(*) filter (where build = 'pilot-test'), count(*) filter (where build = 'whole'), "
            "count(*) filter (where build = 'whole' and from_cache) from history.llm_calls group by purpose order by 1"
        ).fetchall()
    assert asked == [("design", 8, 12, 8), ("distil", 4, 12, 4), ("seed", 4, 6, 4)]
