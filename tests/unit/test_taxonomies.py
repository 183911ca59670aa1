"""Label sets in two languages: whole, shown in the language of the text, stored under one name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError, create_model

from flows import chain
from tasks.awareness.prediction import shape_prediction
from tasks.awareness.prompts import PROMPTS
from tasks.curation.gold import make_persona_gold, make_scene_gold, make_utterance_gold
from tasks.curation.settle import Settled
from tasks.foundation import CONFIGS
from tasks.foundation.demo.elements import collect_labels, show_value
from tasks.foundation.demo.records import Record
from tasks.foundation.errors import ConfigError
from tasks.foundation.llm.reply import schema_of
from tasks.foundation.settings import load_settings, taxonomies
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.texts.replies import Manner, ReplyModel, bind, list_names, suggest_names
from tests.unit.dialogue_rows import character, conflict, dialogue, scene

NAMES = sorted(path.stem for path in (CONFIGS / "taxonomies").glob("*.yaml"))
LABELS = [(name, label.name) for name in NAMES for label in taxonomy(name).labels]
LATIN = re.compile("[A-Za-z]")
LIMITS = load_settings("test").text_limits


@pytest.mark.parametrize("name", NAMES)
def test_every_label_has_a_name_and_a_definition_in_chinese(name: str) -> None:
    for label in taxonomy(name).labels:
        assert not LATIN.search(label.zh), label
        assert re.search("[一-鿿]", label.definition_zh), label
        assert not re.search("[,;!?()]", label.definition_zh), f"full-width signs: {label.definition_zh}"


def test_a_label_without_its_chinese_definition_is_refused_where_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taxonomies").mkdir()
    text = (CONFIGS / "taxonomies" / "sentiment.yaml").read_text()
    (tmp_path / "taxonomies" / "feeling.yaml").write_text(text.replace("两者都不是", "neither"))
    monkeypatch.setattr(taxonomies, "CONFIGS", tmp_path)
    with pytest.raises(ConfigError, match="Neutral: expected definition in Chinese too, as definition_zh"):
        taxonomy("feeling")


@given(st.sampled_from(LABELS), st.sampled_from(["en", "zh"]), st.sampled_from(["", " ", "  "]))
def test_what_a_language_shows_is_read_as_the_stored_name(label: tuple[str, str], language: str, around: str) -> None:
    name, stored = label
    shown = around + taxonomy(name).show(stored, language) + around
    assert taxonomy(name).find(shown) == stored
    assert TypeAdapter(list_names(name)).validate_json(json.dumps(shown), strict=True) == stored


@given(st.sampled_from(NAMES), st.text(max_size=8))
def test_a_word_that_is_no_label_is_refused(name: str, word: str) -> None:
    if taxonomy(name).find(word) is None:
        with pytest.raises(ValidationError):
            TypeAdapter(list_names(name)).validate_python(word)


@pytest.mark.parametrize("make", [list_names, suggest_names])
def test_a_schema_lists_the_names_of_its_language(make: Any) -> None:
    model = create_model("Reply", __base__=ReplyModel, talkway=(make("talkway"), ...))
    for language in ("en", "zh"):
        found = schema_of(bind(model, Manner(LIMITS, language)))["properties"]["talkway"]
        assert found["enum"] == [label.shown(language) for label in taxonomy("talkway").labels]
        assert set(found) == {"type", "enum"}


@pytest.mark.parametrize("stage", [stage for stage in chain.chain() if stage.prompts], ids=lambda stage: stage.name)
def test_no_chinese_prompt_asks_for_a_label_by_its_english_name(stage: Any) -> None:
    english = {label for name, label in LABELS if LATIN.search(label)}
    for prompt in stage.prompts:
        if prompt.reply_model is not None:
            asked = _list_values(schema_of(bind(prompt.reply_model, Manner(LIMITS, "zh"))))
            assert asked & english == set(), prompt.name


def _list_values(part: Any) -> set[str]:
    if isinstance(part, list):
        return {value for each in part for value in _list_values(each)}
    if not isinstance(part, dict):
        return set()
    own = {str(value) for value in part.get("enum", ()) if isinstance(value, str)}
    return own | {value for each in part.values() for value in _list_values(each)}


def _record() -> Record:
    row, utterances = dialogue(0)
    return Record(row, tuple(utterances), conflict(0), scene(0), character(0), character(1))


def test_gold_of_chinese_items_has_the_labels_of_the_original() -> None:
    record = _record()
    record.dialogue.__dict__["language"] = "zh"
    labels = {path: Settled(value) for path, value in collect_labels(record).items()}
    two = make_persona_gold(labels, "zh")["persona"]["participant2"]
    assert (two["gender"], two["age"]) == ("女", "成年")
    assert two["big_five"] == [
        ["开放性", "高"],
        ["尽责性", "低"],
        ["外向性", "高"],
        ["宜人性", "低"],
        ["神经质", "高"],
    ]
    assert make_scene_gold(labels, "zh")["scene"]["talkway"] == "电话"
    said = make_utterance_gold(record, labels, 2)
    assert (said["sentiment"], said["emotion"]) == ("中性", "恐惧")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_target_may_name_a_label_in_either_language(language: str) -> None:
    """A Chinese item answered with 'M' or 'Positive' is read as 男 and 正向."""
    person = {
        **dict.fromkeys(("name", "education", "occupation", "culture", "speaking_style", "hobby"), "x"),
        "gender": taxonomy("gender").show("M", language),
        "age": taxonomy("age_band").show("Youth", language),
        "big_five": dict.fromkeys(taxonomy("big_five").names, taxonomy("level").show("Low", language)),
    }
    reply = PROMPTS["persona"].reply_model.model_validate(  # type: ignore[union-attr]
        {"persona": {"participant1": person, "participant2": person}}
    )
    found = shape_prediction("persona", reply, "zh")["persona"]["participant1"]
    assert (found["gender"], found["age"], found["big_five"][0]) == ("男", "青年", ["开放性", "低"])


@given(st.sampled_from(["en", "zh"]), st.text(max_size=6))
def test_a_free_emotion_stays_as_it_is(language: str, word: str) -> None:
    if word not in taxonomy("utterance_emotion").names:
        assert show_value("emotion", word, language) == word
