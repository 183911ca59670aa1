"""Pairings are drawn on until every goal type of either language has its share of coherent ones."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Mapping

import pytest

from tasks.conflicts.rules import CHARACTER_COLUMNS, SCENE_COLUMNS, find_adult_scenes, make_refusal, pairing_rules
from tasks.conflicts.task import ASSESSMENTS, REFUSED, STAGE, Assessed
from tasks.foundation.errors import NothingLeft
from tasks.foundation.ids import seed_of
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.scenes import Conflict
from tests.unit.dialogue_rows import FakeContext, character, scene

TYPES = taxonomy("goal_type").names
RARE = TYPES[3]
SCENES_OF = {name: 3 if name == RARE else 20 + 5 * place for place, name in enumerate(TYPES)}


def _context(*overrides: str, scenes_of: Mapping[str, int] = SCENES_OF, people: int = 40) -> FakeContext:
    kinds = [name for name, count in scenes_of.items() for _ in range(count)]
    tables = {
        "scenes": [scene(number, language, kind) for language in ("en", "zh") for number, kind in enumerate(kinds)],
        "characters": [character(number, language) for language in ("en", "zh") for number in range(people)],
    }
    return FakeContext(tables, *overrides, drafts=STAGE.drafts)


def _rate(goal_type: str) -> float:
    return 0.3 + 0.3 * TYPES.index(goal_type) / (len(TYPES) - 1)


def _assess(context: FakeContext, drawn: Mapping[str, str]) -> None:
    """Finds pairings coherent as often as their goal type has it."""
    rows = []
    for pairing_id, goal_type in drawn.items():
        coherent = random.Random(seed_of(pairing_id)).random() < _rate(goal_type)
        facts = {"is_coherent": coherent, "relationship": "r", "familiarity": 3, "talkway": "phone call"}
        checks = ("identity_ok", "goal_ok", "partner_ok")
        flags = dict.fromkeys((*checks, *(f"final_{check}" for check in checks), "first_verdict"), coherent)
        facts |= {"objection": None, "final_objection": None, "final_reasoning": "r"}
        rows.append(Assessed(pairing_id=pairing_id, reasoning="r", reflection="t", **flags, **facts))
    context.keep({ASSESSMENTS.name: rows})


def _run(context: FakeContext) -> tuple[list[int], Counter[str]]:
    """All rounds; how many items each had, and what was refused."""
    goal_types = dict(context.read("scenes", columns=("scene_id", "goal_type")).iter_rows())
    sizes, refused, made = [], Counter[str](), STAGE.prepare(context)
    assert STAGE.draw_on is not None
    while made is not None:
        context.keep(made.rows)
        refused.update(made.accounting.filtered)
        sizes.append(len(made.items))
        _assess(context, {each.pairing_id: goal_types[each.scene_id] for each in made.rows["pairings"]})
        made = STAGE.draw_on.draw(context, len(sizes))
    return sizes, refused


def _selected(context: FakeContext) -> Counter[tuple[str, str]]:
    rows: list[Conflict] = STAGE.finish(context).rows["conflicts"]  # type: ignore[assignment, misc]
    chosen = {row.pairing_id for row in rows if row.selected}
    goal_types = dict(context.read("scenes", columns=("scene_id", "goal_type")).iter_rows())
    return Counter(
        (goal_types[row["scene_id"]], row["language"])
        for row in context.made("pairings").iter_rows(named=True)
        if row["pairing_id"] in chosen
    )


def test_all_quotas_are_met_though_a_type_is_rare_and_few_pairings_are_coherent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    context = _context("conflicts.select=180", "conflicts.keep_share=0.3", "conflicts.pairings={en: 1000, zh: 1000}")
    sizes, _ = _run(context)
    assert len(sizes) > 2 and sizes[0] == 600, "180 are 30 % of 600 coherent ones"
    assert 600 / 0.6 < sum(sizes) < 600 / 0.3, "about what the shares of coherent ones take, and no round for nothing"
    assert _selected(context) == dict.fromkeys(((name, of) for name in TYPES for of in ("en", "zh")), 9)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    drawn = context.made("pairings")
    assert drawn.select("scene_id", "character1_id", "character2_id").is_unique().all()
    kept = Counter(row.is_coherent for row in STAGE.finish(context).rows["conflicts"])  # type: ignore[attr-defined]
    assert kept[True] >= 600, "those that are not selected stay, as material"


def test_what_is_drawn_depends_neither_on_the_order_of_scenes_nor_of_characters() -> None:
    drawn = []
    for back in (1, -1):
        context = _context("conflicts.select=60", "conflicts.keep_share=0.5", "conflicts.pairings={en: 500, zh: 500}")
        context._inputs = {table: rows[::back] for table, rows in context._inputs.items()}
        _run(context)
        drawn.append(context.made("pairings"))
    assert drawn[0].equals(drawn[1])


def test_a_type_whose_material_is_out_is_named_and_the_others_make_up_for_it(caplog: pytest.LogCaptureFixture) -> None:
    scenes_of = {name: 1 if name == RARE else 30 for name in TYPES if name != TYPES[0]}
    context = _context(
        *("conflicts.select=100", "conflicts.keep_share=0.5", "conflicts.pairings={en: 2000, zh: 2000}"),
        scenes_of=scenes_of,
        people=3,
    )
    _run(context)
    chosen = _selected(context)
    assert sum(chosen.values()) == 100 and {of: sum(chosen[name, of] for name in TYPES) for of in ("en", "zh")} == {
        "en": 50,
        "zh": 50,
    }
    said = caplog.text
    assert f"of {TYPES[0]} in zh: 0 selected of an even share of 5" in said and "no scene is of this type" in said
    assert f"of {RARE} in en" in said and "its 1 scenes have no further pairing" in said


def test_the_cap_of_a_language_ends_its_rounds_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    context = _context("conflicts.select=180", "conflicts.keep_share=0.3", "conflicts.pairings={en: 1000, zh: 350}")
    _run(context)
    languages = Counter(context.made("pairings")["language"])
    assert languages["zh"] == 350 and languages["en"] < 1000
    chosen = _selected(context)
    assert all(chosen[name, "en"] <= 9 for name in TYPES), "the languages are not made up for by one another"
    assert "conflicts.pairings.zh = 350 is reached" in caplog.text


def test_without_a_number_to_select_all_pairings_are_drawn_in_one_round() -> None:
    context = _context("conflicts.pairings={en: 30, zh: 20}")
    assert _run(context)[0] == [50]


def test_a_small_profile_draws_its_few_pairings_in_one_round() -> None:
    context = _context("conflicts.select=2", "conflicts.keep_share=1.0", "conflicts.pairings={en: 3, zh: 3}")
    assert _run(context)[0] == [6]


# Plain rules


def test_refused_pairings_are_replaced_and_counted_once() -> None:
    context = _context("conflicts.pairings={en: 60, zh: 0}", people=6)
    people = [
        character(0, persona_id="persona_1"),
        character(1, persona_id="persona_1"),
        character(2, name="Bo Li"),
        character(3, name=" bo LI"),
        character(4, age=8, age_band="Childhood"),
        character(5),
    ]
    wedding = scene(0).model_copy(update={"goal1": "Invite an aunt to the Wedding"})
    context._inputs = {"characters": people, "scenes": [wedding, scene(1)]}
    sizes, refused = _run(context)
    # of 2 × 30 triples: 2 with one persona and 2 with one name in each scene, and the child's 10 in one of them
    assert refused == {"same_persona": 4, "same_name": 4, "child_in_adult_scene": 10}
    assert sizes == [42]
    assert context.made(REFUSED.name).height == 18


def test_rules_that_refuse_every_pairing_end_the_stage_and_say_so() -> None:
    context = _context("conflicts.pairings={en: 60, zh: 0}")
    context._inputs = {"characters": [character(n, name="Bo") for n in range(300)], "scenes": [scene(1)]}
    with pytest.raises(
        NothingLeft, match=r"1 scenes and 300 characters in all; pairing_rules.yaml refuses \d+ pairings"
    ):
        STAGE.prepare(context)


def test_a_profile_may_do_without_the_rules() -> None:
    context = _context("conflicts.pairings={en: 2, zh: 0}", "conflicts.rules=[]")
    context._inputs = {"characters": [character(1, name="Bo"), character(2, name="Bo")], "scenes": [scene(1)]}
    assert _run(context) == ([2], {})


@pytest.mark.parametrize("names", [("Bo Lund", "Bo Lund"), ("Bo Lund", "bo Hart")])
def test_two_who_share_a_given_or_full_name_do_not_meet(names: tuple[str, str]) -> None:
    context = _context("conflicts.pairings={en: 2, zh: 0}")
    people = [character(number, name=name, given_name=name.split()[0]) for number, name in enumerate(names)]
    context._inputs = {"characters": people, "scenes": [scene(1)]}
    with pytest.raises(NothingLeft, match=r"refuses 2 pairings"):
        STAGE.prepare(context)


def test_words_of_the_rules_are_found_as_words_in_either_language() -> None:
    context = _context()
    texts = {
        "en": ["ask the boss for a day off", "embossed letters", "Marry her", "sing in a barn", "a BAR in town"],
        "zh": ["想升职", "说说学校", "去酒吧"],
    }
    for language, goals in texts.items():
        rows = [
            scene(number, language).model_copy(update={"goal2": goal, "location": ""})
            for number, goal in enumerate(goals)
        ]
        context._inputs = {"scenes": rows}
        found = find_adult_scenes(context.read("scenes", columns=SCENE_COLUMNS), language)  # type: ignore[arg-type]
        assert found == {f"scene_{language}_{number}" for number in ({0, 2, 4} if language == "en" else {0, 2})}


def test_a_child_may_meet_anybody_in_any_other_scene() -> None:
    context = _context()
    context._inputs = {"scenes": [scene(1)], "characters": [character(1, age=7, age_band="Childhood"), character(2)]}
    scenes, people = (
        context.read("scenes", columns=SCENE_COLUMNS),
        context.read("characters", columns=CHARACTER_COLUMNS),
    )
    refuse = make_refusal(["child_in_adult_scene"], scenes, people, "en")
    assert pairing_rules().child_bands == ["Childhood"]
    assert refuse("scene_en_1", "character_en_1", "character_en_2") is None
