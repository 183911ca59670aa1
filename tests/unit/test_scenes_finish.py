"""The last step of the scenes stage: near-duplicate goals go, and the languages stay one to one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.stage import Finished
from tasks.foundation.tables.scenes import Scene
from tasks.scenes.goals import join_goals
from tasks.scenes.sampling import find_surplus
from tasks.scenes.task import STAGE
from tests.unit.source_stages import FakeContext

ENGLISH = [
    ("Borrow the bicycle for a week", "Keep the bicycle"),
    ("Find out why the dog barks at night", "Hide that the dog is a fox"),
    ("Sell the old piano before Sunday", "Get the piano for less"),
    ("Learn how to prune a pear tree", "Talk about the new fence"),
]
CHINESE = [("想借对方的自行车骑一个星期", "不想把自行车借出去"), ("想弄清楚狗为什么半夜叫", "想瞒住狗其实是狐狸")]
ALIKE = ("borrow the bicycle for one week", "keep the bicycle.")


def scene(number: int, language: str, goals: tuple[str, str]) -> Scene:
    plain: dict[str, Any] = dict.fromkeys(Scene.model_fields, "x")
    named = {"scene_id": f"scene_{language}_{number}", "language": language, "goal_type": "advice"}
    return Scene.model_validate({**plain, **named, "goal1": goals[0], "goal2": goals[1]})


def finished(english: list[tuple[str, str]], chinese: list[tuple[str, str]], *overrides: str) -> Finished:
    context = FakeContext(STAGE, *overrides)
    drafts = [scene(number, "en", goals) for number, goals in enumerate(english)]
    context.add({"scene_drafts": [*drafts, *(scene(number, "zh", goals) for number, goals in enumerate(chinese))]})
    assert STAGE.finish is not None
    return STAGE.finish(context)


def languages(found: Finished) -> Counter[str]:
    return Counter(row.language for row in found.rows["scenes"])  # type: ignore[attr-defined]


def test_a_scene_with_nearly_the_goals_of_another_goes_and_is_named_with_the_kept_one() -> None:
    found = finished([*ENGLISH[:2], ALIKE], CHINESE)
    (duplicate,) = found.rows["duplicates"]
    assert {duplicate.row_id, duplicate.duplicate_of} == {"scene_en_0", "scene_en_2"}  # type: ignore[attr-defined]
    assert duplicate.table_name == "scenes" and duplicate.method == "embedding"  # type: ignore[attr-defined]
    assert found.filtered == {"duplicate": 1} and languages(found) == {"en": 2, "zh": 2}


def test_goals_are_compared_as_a_pair_and_not_one_by_one() -> None:
    swapped = [("Borrow the bicycle", "Sell the piano before Sunday"), ("Borrow the bicycle", "Hide the fox from her")]
    assert finished(swapped, CHINESE).filtered == {}


def test_a_full_stop_makes_no_difference() -> None:
    assert join_goals("借车。", "不借", "zh") == join_goals("借车", "不借。", "zh") == "借车。不借"


def test_without_thresholds_only_repeats_go() -> None:
    found = finished([*ENGLISH[:2], ALIKE, ENGLISH[0]], CHINESE, "scenes.goal_dedup=null", "scenes.one_to_one=false")
    assert found.filtered == {"duplicate": 1} and languages(found) == {"en": 3, "zh": 2}


def test_the_language_that_has_more_left_is_cut_to_the_other_and_the_cut_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("WARNING"):
        found = finished(ENGLISH, CHINESE)
    assert languages(found) == {"en": 2, "zh": 2} and found.filtered == {"one_to_one": 2}
    assert found.rows["duplicates"] == [] and "4 en, 2 zh" in caplog.text


def test_what_is_like_a_cut_scene_is_cut_with_it_so_that_duplicates_name_scenes_that_are_there() -> None:
    for english in (
        [ENGLISH[0], ALIKE, *ENGLISH[1:3]],
        [*ENGLISH[1:3], ENGLISH[0], ALIKE],
        [ALIKE, ENGLISH[2], ENGLISH[0]],
    ):
        found = finished(english, CHINESE[:1])
        scenes = {row.scene_id for row in found.rows["scenes"]}  # type: ignore[attr-defined]
        assert {row.duplicate_of for row in found.rows["duplicates"]} <= scenes  # type: ignore[attr-defined]
        assert languages(found) == {"en": 1, "zh": 1}
        assert sum(found.filtered.values()) == len(english) - 1
        assert found.filtered.get("duplicate", 0) == len(found.rows["duplicates"])


@pytest.mark.parametrize("override", ["scenes.one_to_one=false", "scenes.sample={en: 6, zh: 2}"])
def test_nothing_is_cut_where_one_to_one_is_not_asked_for(override: str) -> None:
    assert languages(finished(ENGLISH, CHINESE, override)) == {"en": 4, "zh": 2}


def test_a_language_without_any_scene_cuts_nothing() -> None:
    found = finished(ENGLISH, [])
    assert languages(found) == {"en": 4} and found.filtered == {}


def test_how_alike_the_kept_goals_are_is_told_by_language_with_its_n() -> None:
    rows = finished([*ENGLISH[:2], ALIKE], CHINESE).rows["diversity"]
    told = {(row.language, row.statistic): (row.n, row.n_of) for row in rows}  # type: ignore[attr-defined]
    assert told == {("en", "mean_cosine"): (2, 1), ("zh", "mean_jaccard"): (2, 1)}


IDS = st.sets(st.text("abcdef", min_size=1, max_size=3), max_size=9).map(sorted)


@given(IDS, IDS, st.randoms())
def test_what_is_cut_depends_on_the_ids_alone_and_leaves_both_languages_the_same(
    english: list[str], chinese: list[str], random: Any
) -> None:
    cut = find_surplus({"en": [f"e{x}" for x in english], "zh": [f"z{x}" for x in chinese]}, seed=1)
    left = [sum(f"{mark}{x}" not in cut for x in ids) for mark, ids in (("e", english), ("z", chinese))]
    fewest = min(len(english), len(chinese))
    assert left == ([fewest, fewest] if fewest else [len(english), len(chinese)])
    random.shuffle(english)
    assert cut == find_surplus({"zh": [f"z{x}" for x in chinese], "en": [f"e{x}" for x in english]}, seed=1)
