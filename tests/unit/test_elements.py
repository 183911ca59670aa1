"""The element system: paths, types, labels, comparison."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tasks.foundation.demo.elements import (
    CATALOGUE,
    canonical_emotion,
    check_value,
    collect_labels,
    collect_reviewed_labels,
    comparison_key,
    find_kind,
    make_value_type,
    number_of,
    path_of,
    value_hash,
)
from tasks.foundation.demo.records import FACTS, collect_facts, describe, load_records, write_transcript
from tasks.foundation.texts.replies import LIMIT
from tests.unit.dialogue_rows import FakeContext, character, dialogue, world


def _record():
    tables = world([dialogue(0, turns=4)])
    return load_records(FakeContext(tables).read, ["dialogue_en_0"])["dialogue_en_0"]


def test_the_catalogue_holds_the_23_evaluated_elements_and_33_in_all_beside_reason_and_text() -> None:
    evaluated = [kind for kind in CATALOGUE if kind.evaluated]
    per_group = {group: sum(kind.group == group for kind in evaluated) for group in {k.group for k in evaluated}}
    assert per_group == {"goal": 3, "persona": 9, "scene": 6, "utterance": 5}
    assert len([kind for kind in CATALOGUE if kind.name not in ("reason", "text")]) == 33


def test_a_dialogue_of_four_turns_has_a_label_for_every_element() -> None:
    # goal 5, persona 2 × 15, scene 9, utterances 4 × 6; reviewed: 4 + 2 × 9 + 6 + 24
    record = _record()
    assert len(collect_labels(record)) == 5 + 30 + 9 + 24
    assert len(collect_reviewed_labels(record)) == 4 + 18 + 6 + 24
    assert collect_labels(record)["persona.1.age"] == "Adulthood"
    assert collect_labels(record)["scene.summary"] == ["She asks about the oven.", "She offers an oven."]


def test_every_label_as_made_is_a_value_of_its_element() -> None:
    for path, value in collect_labels(_record()).items():
        assert check_value(path, value) == value


@pytest.mark.parametrize("kind", CATALOGUE, ids=lambda kind: f"{kind.group}.{kind.name}")
def test_every_path_leads_back_to_its_element(kind) -> None:
    number = 2 if kind.group in ("persona", "utterance") else None
    assert find_kind(path_of(kind, number)) == kind
    assert number_of(path_of(kind, number)) == number


@pytest.mark.parametrize(
    "path", ["goal", "goal.1.goal1", "persona.hobby", "persona.3.hobby", "utterance.0.text", "scene.smell", ""]
)
def test_a_path_that_names_no_element_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="path of an element"):
        find_kind(path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("scene.familiarity", 11),
        ("scene.familiarity", "4"),
        ("scene.familiarity", 7.5),
        ("scene.familiarity", True),
        ("scene.talkway", "telepathy"),
        ("persona.1.gender", "female"),
        ("persona.2.big_five", {"openness": "High"}),
        ("scene.summary", ["only one side"]),
        ("utterance.2.stance", [{"aspect": "a", "viewpoint": "b"}] * 4),
        ("goal.goal1", "   "),
    ],
)
def test_a_value_that_the_element_cannot_have_is_refused(path: str, value: object) -> None:
    with pytest.raises(ValueError):
        check_value(path, value)


def test_the_seven_emotions_have_one_name_in_every_spelling() -> None:
    assert [canonical_emotion(word) for word in ("愤怒", "anger", " FEAR ", "wistful")] == [
        "Anger",
        "Anger",
        "Fear",
        "wistful",
    ]
    assert check_value("utterance.1.emotion", "悲伤") == "Sadness"


def test_every_value_type_has_a_schema_with_bounds_on_texts_and_lists() -> None:
    def unbounded(schema: object) -> bool:
        if isinstance(schema, list):
            return any(map(unbounded, schema))
        if not isinstance(schema, dict):
            return False
        free = schema.get("type") == "string" and not {LIMIT, "enum", "const"} & schema.keys()
        endless = schema.get("type") == "array" and "maxItems" not in schema
        return free or endless or any(map(unbounded, schema.values()))

    for kind in CATALOGUE:
        assert not unbounded(TypeAdapter(make_value_type(kind)).json_schema()), kind


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_a_comparison_key_is_stable_under_folding(value: object) -> None:
    key = comparison_key(value)
    assert comparison_key(json.loads(key)) == key


def test_case_width_and_spaces_make_no_difference_but_words_do() -> None:
    assert comparison_key({"a": ["Ｆｅｅｌｓ  Fine "]}) == comparison_key({"a": ["feels fine"]})
    assert comparison_key("feels fine") != comparison_key("feels finer")
    assert value_hash('"Fear"') != value_hash('"fear"')


def test_a_record_joins_the_rows_of_its_dialogue_only() -> None:
    tables = world([dialogue(0), dialogue(1), dialogue(0, "zh")])
    found = load_records(FakeContext(tables).read, ["dialogue_zh_0", "dialogue_en_1"])
    assert list(found) == ["dialogue_zh_0", "dialogue_en_1"]
    assert found["dialogue_en_1"].scene.scene_id == "scene_en_1"
    assert [turn.turn_index for turn in found["dialogue_zh_0"].utterances] == [1, 2, 3, 4]
    assert found["dialogue_zh_0"].character2.character_id == "character_zh_1"


def test_a_person_is_described_in_the_language_with_every_fact_that_is_known() -> None:
    english = describe(collect_facts(character(1)), "en").splitlines()
    assert len(english) == len(FACTS)
    assert english[:3] == ["Name: Ada 1", "Gender: female", "Age: 34"]
    assert "Character traits: openness High, conscientiousness Low" in describe(collect_facts(character(1)), "en")
    chinese = describe(collect_facts(character(1, "zh")), "zh")
    assert "性别：女" in chinese
    assert "年龄段：成年" in chinese
    assert "道德观：关怀" in chinese
    assert describe({"name": "Ada", "hobby": None, "moral_values": []}, "en") == "Name: Ada"


def test_a_transcript_numbers_its_turns_when_asked() -> None:
    turns = [(1, "Hello."), (2, "Hi.")]
    assert write_transcript(("Ada", "Ben"), turns, "en") == "Ada: Hello.\nBen: Hi."
    assert write_transcript(("Ada", "Ben"), turns, "en", numbered=True) == "1. Ada: Hello.\n2. Ben: Hi."
    assert write_transcript(("邵沐晴", "A"), [(1, "你好。")], "zh", numbered=True) == "1. 邵沐晴：你好。"
