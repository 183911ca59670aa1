"""The awareness stage: predictions in the gold's shape, and what becomes of unreadable replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.awareness.prediction import shape_prediction
from tasks.awareness.prompts import PROMPTS
from tasks.awareness.task import STAGE
from tasks.curation.gold import make_goal_gold, make_persona_gold, make_scene_gold, make_utterance_gold
from tasks.curation.settle import Settled
from tasks.foundation.demo.elements import collect_labels
from tasks.foundation.demo.records import Record
from tasks.foundation.errors import ModelError
from tasks.foundation.ids import canonical_json
from tasks.foundation.llm.request import RawReply, Usage
from tests.unit.dialogue_rows import character, conflict, dialogue, scene
from tests.unit.evaluation_build import Bench, Models, item, texts, use

TARGET = "scripted-c"
GOLD = {
    "goal": {"goal": {"goal1": "GOLD-ONE", "goal2": "b", "goal_completion": 3, "reason": "c"}},
    "persona": {"persona": {"participant1": {"name": "GOLD-ONE"}, "participant2": {}}},
    "scene": {"scene": {"topic": "GOLD-ONE"}},
    "utterance": {"person": "Ben", "content": "No new one.", "intent": "GOLD-ONE"},
}


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    models = Models()
    use(models, monkeypatch)
    return models


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def _give_items(bench: Bench, *languages: str) -> None:
    items = [item(task, canonical_json(gold), language) for language in languages for task, gold in GOLD.items()]
    await bench.give("curation", {"awareness_items": items})


def _keys(value: Any) -> Any:
    """The shape of labels: keys at every level, and what kind of value is there."""
    if isinstance(value, dict):
        return {key: _keys(inner) for key, inner in value.items()}
    return type(value).__name__


def test_a_prediction_has_the_shape_of_the_gold() -> None:
    row, utterances = dialogue(0)
    record = Record(row, tuple(utterances), conflict(0), scene(0), character(0), character(1))
    labels = {path: Settled(value) for path, value in collect_labels(record).items()}
    golds = {
        "goal": make_goal_gold(labels),
        "persona": make_persona_gold(labels, "en"),
        "scene": make_scene_gold(labels, "en"),
        "utterance": make_utterance_gold(record, labels, 1),
    }
    for task, gold in golds.items():
        as_reply = json.loads(json.dumps(gold))
        for persona in as_reply.get("persona", {}).values():
            persona["big_five"] = {trait.lower(): level for trait, level in persona["big_five"]}
        reply = PROMPTS[task].reply_model.model_validate_json(json.dumps(as_reply), strict=True)  # type: ignore[arg-type]
        prediction = shape_prediction(task, reply, "en")  # type: ignore[arg-type]
        assert prediction == json.loads(json.dumps(gold))
        assert _keys(prediction) == _keys(json.loads(json.dumps(gold)))


def test_a_familiar_emotion_in_another_spelling_is_the_same_label() -> None:
    reply = {
        "person": "Ben",
        "content": "No.",
        "intent": "refuse",
        "sentiment": "Negative",
        "emotion": "愤怒",
        "stance": [],
        "strategy": {"description": "plain", "type": "sharpens"},
    }
    model = PROMPTS["utterance"].reply_model.model_validate(reply)
    assert shape_prediction("utterance", model, "en")["emotion"] == "Anger"
    assert shape_prediction("utterance", model, "zh")["emotion"] == "愤怒"


async def test_every_task_is_asked_once_in_the_items_language_and_shows_no_gold(models: Models, bench: Bench) -> None:
    await _give_items(bench, "en", "zh")
    commit = await bench.run(STAGE, TARGET)
    assert commit is not None and commit.accounting.n_produced == 8
    assert len(models.calls) == 8, "one request an item"
    assert not any("GOLD-ONE" in texts(call) for call in models.calls)
    assert sum("参与者" in texts(call) or "说话人" in texts(call) for call in models.calls) == 4
    assert {call.temperature for call in models.calls} == {0.0}
    rows = bench.rows("select item_id, target, sample, prediction, raw from awareness_predictions order by all")
    assert len(rows) == 8
    assert {row["target"] for row in rows} == {TARGET}
    by_item = {row["item_id"]: json.loads(row["prediction"]) for row in rows}
    assert set(by_item["item_goal_zh"]["goal"]) == {"goal1", "goal2", "goal_completion", "reason"}
    assert [pair[0] for pair in by_item["item_persona_en"]["persona"]["participant2"]["big_five"]] == [
        *("Openness", "Conscientiousness", "Extraversion", "Agreeableness", "Neuroticism")
    ]


async def test_the_reply_is_kept_as_it_came_beside_the_labels(models: Models, bench: Bench) -> None:
    await bench.give("curation", {"awareness_items": [item("goal", "{}")]})
    labels = {"goal1": "a", "goal2": "b", "goal_completion": 7, "reason": "c"}
    models.answer = lambda call: f"<think>hm</think> Sure: {json.dumps({'goal': labels})} Done."
    await bench.run(STAGE, TARGET)
    (row,) = bench.rows("select * from awareness_predictions")
    assert json.loads(row["prediction"]) == {"goal": labels}
    assert row["raw"].startswith("<think>hm</think> Sure: {") and row["raw"].endswith("Done.")


async def test_labels_may_be_as_long_as_a_target_likes(models: Models, bench: Bench) -> None:
    await bench.give("curation", {"awareness_items": [item("goal", "{}")]})
    labels = {"goal1": "a reason " * 300, "goal2": "b", "goal_completion": 7, "reason": "and another " * 200}
    models.answer = lambda call: json.dumps({"goal": labels})
    await bench.run(STAGE, TARGET)
    (row,) = bench.rows("select prediction from awareness_predictions")
    kept = json.loads(row["prediction"])["goal"]
    assert {name: str(value).strip() for name, value in kept.items()} == {n: str(v).strip() for n, v in labels.items()}
    assert len(models.calls) == 1, "it is not asked again"


async def test_an_unreadable_reply_is_an_answer_with_no_prediction(models: Models, bench: Bench) -> None:
    await bench.give("curation", {"awareness_items": [item("goal", "{}")]})
    models.answer = lambda call: f"I think they want ovens ({len(models.calls)})."
    commit = await bench.run(STAGE, TARGET)
    assert commit is not None and not commit.partial
    assert (commit.accounting.n_produced, commit.accounting.n_failed) == (1, 0)
    assert len(models.calls) == 3, "asked, and asked again llm.max_reasks = 2 times"
    (row,) = bench.rows("select * from awareness_predictions")
    assert (row["prediction"], row["raw"]) == (None, "I think they want ovens (3).")


async def test_a_score_out_of_range_is_no_prediction_and_never_clamped(models: Models, bench: Bench) -> None:
    await bench.give("curation", {"awareness_items": [item("goal", "{}")]})
    reply = json.dumps({"goal": {"goal1": "a", "goal2": "b", "goal_completion": 11, "reason": "c"}})
    models.answer = lambda call: reply
    await bench.run(STAGE, TARGET)
    (row,) = bench.rows("select * from awareness_predictions")
    assert (row["prediction"], row["raw"]) == (None, reply)


async def test_a_vendors_content_filter_leaves_an_empty_answer(models: Models, bench: Bench) -> None:
    await bench.give("curation", {"awareness_items": [item("goal", "{}")]})
    models.answer = lambda call: RawReply("", Usage(), "content_filter")
    await bench.run(STAGE, TARGET)
    (row,) = bench.rows("select * from awareness_predictions")
    assert (row["prediction"], row["raw"]) == (None, "")


async def test_what_is_not_the_targets_answer_is_a_reject(models: Models, bench: Bench) -> None:
    await _give_items(bench, "en")
    failing: dict[str, Exception] = {
        "utterance 2": ModelError("timeout", "slow"),
        "What was the scene": ModelError("refused", "HTTP 400: unknown parameter"),
    }
    models.answer = lambda call: next((error for mark, error in failing.items() if mark in texts(call)), None)
    commit = await bench.run(STAGE, TARGET)
    assert commit is not None and commit.partial
    assert commit.accounting.failed == {"refused": 1, "timeout": 1}
    assert commit.rows("awareness_predictions") == 2
    failing.clear()
    models.calls.clear()
    again = await bench.run(STAGE, TARGET)
    assert again is not None and again.rows("awareness_predictions") == 3
    assert len(models.calls) == 1, "only what may pass is asked again"


async def test_samples_are_rows_of_their_own(models: Models, bench: Bench) -> None:
    await bench.give("curation", {"awareness_items": [item("goal", "{}")]})
    await bench.run(STAGE, TARGET, "awareness.samples=2")
    assert [row["sample"] for row in bench.rows("select sample from awareness_predictions order by all")] == [0, 1]
    assert {call.sample for call in models.calls} == {0, 1}


async def test_a_second_target_adds_a_commit_and_leaves_the_first_alone(models: Models, bench: Bench) -> None:
    await _give_items(bench, "en")
    both = "awareness.targets=[scripted-c, scripted-b]"
    await bench.run(STAGE, "scripted-c")
    assert await bench.run(STAGE, "scripted-b", both) is not None
    assert await bench.run(STAGE, "scripted-c", both) is None, "the first is still up to date"
    counts = bench.rows("select target, count(*) as n from awareness_predictions group by all order by all")
    assert counts == [{"target": "scripted-b", "n": 4}, {"target": "scripted-c", "n": 4}]
