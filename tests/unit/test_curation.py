"""Settling labels, gold shapes, sampling, and what is taken out of the benchmark."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.curation.gold import (
    make_goal_gold,
    make_persona_gold,
    make_scene_gold,
    make_utterance_gold,
    write_background,
    write_dialogue,
)
from tasks.curation.sample import sample_ids, sample_utterances
from tasks.curation.settle import Settled, explain_exclusion, settle, settle_all
from tasks.curation.task import STAGE
from tasks.foundation.demo.elements import collect_reviewed_labels, value_hash
from tasks.foundation.demo.records import Record, load_records
from tasks.foundation.errors import ColloquyError, TableError
from tasks.foundation.ids import canonical_json
from tasks.foundation.tables import TABLES, Row
from tasks.foundation.tables.dialogues import HumanReview, Verdict
from tests.unit.dialogue_rows import FakeContext, dialogue, utterance, world

MANUAL = "manual"
REJECTED = "rejected"


def verdict(element: str, value: Any, outcome: str = "unanimous", dialogue_id: str = "dialogue_en_0") -> Verdict:
    rejected = outcome == REJECTED
    return Verdict(
        dialogue_id=dialogue_id,
        element=element,
        outcome=outcome,  # type: ignore[arg-type]
        value=None if rejected else canonical_json(value),
        pending=outcome == MANUAL,
        changed=rejected,
        votes_for=2,
        votes_cast=2,
        panel=3 if outcome != "unanimous" else None,
    )


def human(reviewer: str, action: str, proposed: Any = None, shown: Any = "Fear", element: str = "utterance.1.emotion"):
    return HumanReview(
        dialogue_id="dialogue_en_0",
        element=element,
        reviewer=reviewer,
        action=action,  # type: ignore[arg-type]
        proposed=canonical_json(proposed) if action == "edit" else None,
        value_hash=value_hash(canonical_json(shown)),
        seconds=1.0,
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
    )


def _record(number: int = 0, language: str = "en", **world_changes: Any) -> Record:
    tables = world([dialogue(number, language)]) | world_changes
    name = f"dialogue_{language}_{number}"
    return load_records(FakeContext(tables).read, [name])[name]


def _settled(record: Record, **changes: Settled) -> dict[str, Settled]:
    """All labels as made, with changes by path (dots written as __)."""
    labels = {path: Settled(value) for path, value in collect_reviewed_labels(record).items()}
    return labels | {path.replace("__", "."): label for path, label in changes.items()}


GONE = Settled(None, rejected=True)


# Human answers


EMOTION = verdict("utterance.1.emotion", "Fear", MANUAL)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([], Settled("Fear", pending=True)),
        ([human("x", "keep")], Settled("Fear")),
        ([human("x", "edit", "Anger")], Settled("Anger")),
        ([human("x", "edit", "愤怒"), human("y", "edit", "anger")], Settled("Anger")),
        ([human("x", "reject"), human("y", "reject"), human("z", "keep")], GONE),
        ([human("x", "keep"), human("y", "edit", "Anger")], Settled("Fear", pending=True)),  # 1 of 2
        ([human("x", "keep"), human("y", "edit", " FEAR"), human("z", "reject")], Settled("Fear")),  # 2 of 3
        ([human("x", "edit", "Anger", shown="Joy")], Settled("Fear", pending=True)),  # answers another value
        ([human("x", "reject", shown="Joy"), human("y", "keep")], Settled("Fear")),
    ],
)
def test_a_majority_of_the_reviewers_who_saw_this_value_settles_it(
    answers: list[HumanReview], expected: Settled
) -> None:
    assert settle(EMOTION, answers) == expected
    assert settle(EMOTION, answers[::-1]) == expected


def test_people_do_not_overrule_what_the_panel_decided() -> None:
    answers = [human("x", "reject"), human("y", "reject")]
    assert settle(verdict("utterance.1.emotion", "Fear", "majority"), answers) == Settled("Fear")
    assert settle(verdict("utterance.1.emotion", "Fear", REJECTED), [human("x", "keep")]) == GONE


def test_a_human_edit_that_the_element_cannot_have_names_its_row() -> None:
    answers = [human("x", "edit", "telepathy", shown="email", element="scene.talkway")]
    with pytest.raises(TableError, match=r"dialogue_en_0, element scene\.talkway, reviewer 'x'"):
        settle(verdict("scene.talkway", "email", MANUAL), answers)


def test_labels_are_settled_each_with_its_own_answers() -> None:
    other = verdict("utterance.2.emotion", "Fear", MANUAL)
    settled = settle_all([EMOTION, other], [human("x", "edit", "Anger")])
    assert settled["dialogue_en_0"] == {
        "utterance.1.emotion": Settled("Anger"),
        "utterance.2.emotion": Settled("Fear", pending=True),
    }


# What takes a dialogue out


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("goal.goal1", "rejected_goal"),
        ("goal.goal2", "rejected_goal"),
        ("scene.familiarity", "rejected_scene"),
        ("scene.workflow", "rejected_scene"),
        ("utterance.3.text", "rejected_utterance_text"),
        ("goal.goal_completion", None),
        ("goal.reason", None),
        ("persona.1.name", None),
        ("utterance.3.intent", None),
    ],
)
def test_only_goals_scene_and_texts_take_a_dialogue_out(path: str, reason: str | None) -> None:
    found = explain_exclusion(_settled(_record()) | {path: GONE})
    assert (found[0] if found else None) == reason
    assert found is None or path in found[1]


# Gold


def test_gold_has_the_shapes_of_the_test_cases() -> None:
    record = _record()
    labels = _settled(record)
    assert make_goal_gold(labels) == {
        "goal": {
            "goal1": "find out whether the oven can be mended",
            "goal2": "sell a new oven",
            "goal_completion": 6,
            "reason": "only one got what she wanted",
        }
    }
    assert make_persona_gold(labels, "en")["persona"]["participant2"] == {
        "name": "Ada 1",
        "gender": "F",
        "age": "Adulthood",
        "big_five": [
            ["Openness", "High"],
            ["Conscientiousness", "Low"],
            ["Extraversion", "High"],
            ["Agreeableness", "Low"],
            ["Neuroticism", "High"],
        ],
        "education": "vocational school",
        "occupation": "baker",
        "culture": "coastal",
        "speaking_style": "short sentences",
        "hobby": "rowing",
    }
    assert make_scene_gold(labels, "en") == {
        "scene": {
            "topic": "a broken oven",
            "relationship": "customer and dealer",
            "familiarity": 4,
            "talkway": "phone call",
            "workflow": ["one asks", "the other answers"],
            "summary": ["She asks about the oven.", "She offers an oven."],
        }
    }
    assert make_utterance_gold(record, labels, 2) == {
        "person": "Ada 1",
        "content": "This is what is said in turn 2.",
        "intent": "ask",
        "sentiment": "Neutral",
        "emotion": "Fear",
        "stance": [{"aspect": "the oven", "viewpoint": "too old"}],
        "strategy": {"description": "asks plainly", "type": "steers"},
    }


def test_rejected_labels_are_left_out_of_gold_and_the_reason_goes_with_its_score() -> None:
    record = _record()
    labels = _settled(
        record, goal__goal_completion=GONE, persona__1__big_five=GONE, utterance__2__stance=GONE, persona__2__age=GONE
    )
    assert set(make_goal_gold(labels)["goal"]) == {"goal1", "goal2"}
    people = make_persona_gold(labels, "en")["persona"]
    assert "big_five" not in people["participant1"]
    assert "age" not in people["participant2"]
    assert "stance" not in make_utterance_gold(record, labels, 2)


def test_a_verified_text_replaces_what_was_written() -> None:
    record = _record()
    labels = _settled(record, utterance__2__text=Settled("Put right."))
    assert write_dialogue(record, labels).splitlines()[:2] == [
        "Ada 0: This is what is said in turn 1.",
        "Ada 1: Put right.",
    ]
    assert make_utterance_gold(record, labels, 2)["content"] == "Put right."


def test_a_background_is_the_character_with_its_verified_labels() -> None:
    record = _record()
    labels = _settled(record, persona__1__hobby=Settled("sailing"), persona__1__culture=GONE, persona__2__age=GONE)
    one, two = write_background(record, labels, 1), write_background(record, labels, 2)
    assert "Hobbies: sailing" in one
    assert "coastal" not in one
    assert "Life so far: Grew up by a harbour." in one
    assert "Age: 34" in one
    assert "Age" not in two
    older = write_background(record, _settled(record, persona__1__age=Settled("Old age")), 1)
    assert "Age group: Old age" in older
    assert "34" not in older
    assert "爱好：rowing" in write_background(_record(language="zh"), _settled(_record(language="zh")), 1)


# Sampling


def test_utterances_are_spread_over_emotions_one_a_dialogue() -> None:
    # eight dialogues each offer Fear three times and Joy once: four of each are taken
    emotions = {f"d{number}": {1: "fear", 2: "fear", 3: "joy", 4: "fear"} for number in range(8)}
    chosen = sample_utterances(emotions, 8, seed=4)
    assert len({dialogue_id for dialogue_id, _ in chosen}) == 8
    assert Counter(emotions[name][turn] for name, turn in chosen) == {"fear": 4, "joy": 4}
    assert sample_utterances(emotions | {"empty": {}}, 99, seed=4) == sample_utterances(emotions, 8, seed=4)


@given(st.permutations([f"d{number}" for number in range(9)]), st.integers(0, 12), st.integers(0, 3))
def test_samples_do_not_depend_on_row_order(ids: list[str], count: int, seed: int) -> None:
    chosen = sample_ids(ids, count, seed, "goal")
    assert chosen == sample_ids(sorted(ids), count, seed, "goal")
    assert len(set(chosen)) == len(chosen) == min(count, 9)


def test_tasks_draw_their_dialogues_independently() -> None:
    ids = [f"d{number}" for number in range(50)]
    assert sample_ids(ids, 5, 0, "goal") != sample_ids(ids, 5, 0, "scene")


# The stage


def _tables(*dialogues, rejected: dict[str, str] | None = None) -> dict[str, list[Row]]:
    """Dialogues whose labels all stand, but for one rejected path in some of them."""
    tables = world(dialogues)
    found = load_records(FakeContext(tables).read, [row.dialogue_id for row, _ in dialogues])
    tables["verdicts"] = [
        verdict(path, value, REJECTED if (rejected or {}).get(name) == path else "unanimous", name)
        for name, record in found.items()
        for path, value in collect_reviewed_labels(record).items()
    ]
    return tables


def _prepare(tables: dict[str, list[Row]], *overrides: str):
    prepared = STAGE.prepare(FakeContext(tables, *overrides))
    prepared.accounting.check("curation")
    for table in ("awareness_items", "interaction_episodes", "rejects"):
        TABLES[table].arrow(prepared.rows[table])
    return prepared


def test_every_verified_dialogue_gives_four_items_and_an_episode_when_there_is_room() -> None:
    prepared = _prepare(_tables(dialogue(0), dialogue(1), dialogue(0, "zh")))
    items, episodes = prepared.rows["awareness_items"], prepared.rows["interaction_episodes"]
    assert Counter((item.task, item.language) for item in items) == {
        (task, language): count
        for task in ("goal", "persona", "scene", "utterance")
        for language, count in (("en", 2), ("zh", 1))
    }
    assert len(episodes) == 3
    assert len({item.item_id for item in items}) == 12
    assert prepared.items == []
    assert (prepared.accounting.n_in, prepared.accounting.n_produced, prepared.accounting.filtered) == (3, 3, {})


@pytest.mark.parametrize("path", ["goal.goal2", "scene.topic", "utterance.1.text"])
def test_where_all_are_taken_out_the_least_rejected_stay_only_if_the_setting_says_so(path: str) -> None:
    tables = _tables(dialogue(0), rejected={"dialogue_en_0": path})
    with pytest.raises(ColloquyError, match=r"none of 1 dialogues stands \(rejected_\w+ 1\)"):
        _prepare(tables, "curation.if_none=fail")
    kept = _prepare(tables, "curation.if_none=keep 2")
    assert kept.rows["rejects"] == [] and kept.accounting.n_produced == 1
    (episode,) = kept.rows["interaction_episodes"]
    assert episode.goal2 and episode.topic
    name = path.rpartition(".")[2]
    golds = {item.task: json.loads(item.gold) for item in kept.rows["awareness_items"]}
    assert set(golds) == {"goal", "persona", "scene", "utterance"}
    assert name == "text" or name not in golds[path.partition(".")[0]][path.partition(".")[0]]


@pytest.mark.parametrize("path", ["goal.goal2", "scene.topic", "utterance.1.text"])
def test_a_planted_reject_takes_its_dialogue_and_no_other_out(path: str) -> None:
    prepared = _prepare(_tables(dialogue(0), dialogue(1), rejected={"dialogue_en_0": path}))
    rows = (*prepared.rows["awareness_items"], *prepared.rows["interaction_episodes"])
    assert {row.dialogue_id for row in rows} == {"dialogue_en_1"}
    (reject,) = prepared.rows["rejects"]
    assert (reject.row_key, reject.kind, reject.retryable) == ("dialogue_en_0", "filter", False)
    assert path in reject.reason
    assert prepared.accounting.n_filtered == 1
    assert prepared.accounting.n_produced == 1


def test_a_rejected_label_elsewhere_leaves_the_dialogue_in() -> None:
    prepared = _prepare(_tables(dialogue(0), rejected={"dialogue_en_0": "persona.1.hobby"}))
    (item,) = [item for item in prepared.rows["awareness_items"] if item.task == "persona"]
    assert "hobby" not in json.loads(item.gold)["persona"]["participant1"]
    assert "hobby" in json.loads(item.gold)["persona"]["participant2"]


def test_a_human_answer_changes_the_gold() -> None:
    tables = _tables(dialogue(0))
    tables["verdicts"] = [
        verdict(one.element, json.loads(one.value), MANUAL) if one.element == "goal.goal_completion" else one
        for one in tables["verdicts"]
    ]

    def completion(tables) -> int:
        items = _prepare(tables).rows["awareness_items"]
        return json.loads(next(item.gold for item in items if item.task == "goal"))["goal"]["goal_completion"]

    assert completion(tables) == 6
    answers = [human("x", "edit", 3, shown=6, element="goal.goal_completion")]
    assert completion(tables | {"human_reviews": answers}) == 3


def test_a_dialogue_without_verdicts_is_filtered_by_name() -> None:
    tables = _tables(dialogue(0), dialogue(1))
    tables["verdicts"] = [one for one in tables["verdicts"] if one.dialogue_id != "dialogue_en_1"]
    prepared = _prepare(tables)
    assert prepared.accounting.filtered == {"no_verdict": 1}
    assert [reject.row_key for reject in prepared.rows["rejects"]] == ["dialogue_en_1"]


def test_what_was_not_drawn_is_counted_and_is_no_reject() -> None:
    tables = _tables(*(dialogue(number) for number in range(12)))
    prepared = _prepare(tables, "curation.items_per_task={en: 1, zh: 1}", "curation.episodes={en: 1, zh: 0}")
    used = {row.dialogue_id for row in (*prepared.rows["awareness_items"], *prepared.rows["interaction_episodes"])}
    assert len(prepared.rows["awareness_items"]) == 4
    assert prepared.accounting.filtered == {"not_sampled": 12 - len(used)}
    assert prepared.rows["rejects"] == []


def test_an_utterance_without_any_standing_label_is_not_asked_about() -> None:
    talk, _ = dialogue(0, turns=1)
    tables = _tables((talk, [utterance(talk.dialogue_id, 1)]))
    names = ("intent", "sentiment", "emotion", "stance", "strategy")
    tables["verdicts"] = [
        verdict(one.element, None, REJECTED) if one.element in {f"utterance.1.{name}" for name in names} else one
        for one in tables["verdicts"]
    ]
    tasks = [item.task for item in _prepare(tables).rows["awareness_items"]]
    assert tasks == ["goal", "persona", "scene"]


def test_the_same_verdicts_give_the_same_benchmark_whatever_their_order() -> None:
    tables = _tables(dialogue(0), dialogue(1))
    assert _prepare(tables).rows == _prepare(tables | {"verdicts": tables["verdicts"][::-1]}).rows
