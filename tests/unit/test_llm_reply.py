"""From a model's text to a checked value: the corpus of ugly replies and properties over all texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tasks.foundation.llm.reply import BadReply, find_objects, read, schema_of

CASES = yaml.safe_load((Path(__file__).parents[1] / "data" / "ugly_replies.yaml").read_text(encoding="utf-8"))


class Verdict(BaseModel):
    label: Literal["agree", "disagree", "unsure"]
    score: int = Field(ge=1, le=10)
    confidence: float | None = Field(default=None, ge=0, le=1)
    reason: str = ""


class Node(BaseModel):
    name: str
    children: list[Node] = []


class Nested(BaseModel):
    title: str
    verdict: Verdict
    verdicts: list[Verdict]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_an_ugly_reply_reads_or_fails_as_the_corpus_says(case: dict[str, Any]) -> None:
    if "fails" in case:
        with pytest.raises(BadReply) as trouble:
            read(case["text"], Verdict, case.get("finish", "stop"))
        assert trouble.value.kind == case["fails"]
        assert trouble.value.sentence
    else:
        value = read(case["text"], Verdict, case.get("finish", "stop")).value
        assert value == Verdict(**case["reads"])


def test_the_corpus_has_at_least_forty_cases_with_different_names() -> None:
    assert len({case["name"] for case in CASES}) == len(CASES) >= 40


def test_the_sentence_for_the_reask_names_the_field_and_what_was_found() -> None:
    with pytest.raises(BadReply) as trouble:
        read('{"label": "agree", "score": 11}', Verdict, "stop")
    assert "score" in trouble.value.sentence and "11" in trouble.value.sentence


def test_a_sentence_never_grows_with_the_reply() -> None:
    with pytest.raises(BadReply) as trouble:
        read(json.dumps({"label": "x" * 100_000, "score": "y" * 100_000}), Verdict, "stop")
    assert len(trouble.value.sentence) < 1000


def test_a_repair_is_told_apart_from_a_clean_reply() -> None:
    assert read('{"label": "agree", "score": 7,}', Verdict, "stop").repaired
    assert not read('{"label": "agree", "score": 7}', Verdict, "stop").repaired


def test_plain_text_loses_reasoning_and_invisible_edges_only() -> None:
    assert read("\ufeff<think>hm</think> Hello {you}\n", None, "stop").value == "Hello {you}"


@pytest.mark.parametrize(
    ("text", "finish", "kind"),
    [("", "stop", "unreadable"), ("<think>a</think>", "stop", "unreadable"), ("Half a sen", "length", "truncated")],
)
def test_empty_or_cut_off_text_is_a_failure(text: str, finish: str, kind: str) -> None:
    with pytest.raises(BadReply) as trouble:
        read(text, None, finish)
    assert trouble.value.kind == kind


def test_deep_nesting_and_huge_numbers_are_failures_rather_than_crashes() -> None:
    for text in ('{"a":' * 100_000, '{"score": ' + "9" * 10_000 + "}", '{"a":' * 5000 + "1" + "}" * 5000):
        with pytest.raises(BadReply):
            read(text, Verdict, "stop")


@given(st.text(), st.sampled_from(["stop", "length", "content_filter"]))
def test_any_text_reads_or_fails_cleanly(text: str, finish: str) -> None:
    for model in (Verdict, None):
        try:
            read(text, model, finish)
        except BadReply as trouble:
            assert trouble.sentence


@given(st.text(alphabet="{}[]\"'\\:,01.eaglnrsctobd \n`\ud800\u200b", max_size=60))
def test_any_broken_json_reads_or_fails_cleanly(text: str) -> None:
    try:
        value = read('{"label": "agree", "score": 7, ' + text, Verdict, "stop").value
    except BadReply:
        return
    assert 1 <= value.score <= 10


@given(
    label=st.sampled_from(["agree", "disagree", "unsure"]),
    score=st.integers(1, 10),
    reason=st.text(st.characters(codec="utf-8", exclude_characters="\u200b\u200c\u200d\u2060\ufeff\u00ad")),
    before=st.text(st.characters(codec="utf-8", exclude_characters='{}"<'), max_size=30),
    after=st.text(st.characters(codec="utf-8", exclude_characters='{}"<'), max_size=30),
    ascii_only=st.booleans(),
)
def test_a_valid_object_survives_any_prose_around_it(
    label: str, score: int, reason: str, before: str, after: str, ascii_only: bool
) -> None:
    sent = {"label": label, "score": score, "reason": reason.replace("<", "")}
    text = f"{before}\n{json.dumps(sent, ensure_ascii=ascii_only)}\n{after}"
    assert read(text, Verdict, "stop").value == Verdict(**sent)


@given(st.one_of(st.integers(), st.floats(), st.text(), st.booleans(), st.none()))
def test_no_score_is_ever_changed_to_fit(score: Any) -> None:
    text = json.dumps({"label": "agree", "score": score})
    whole = isinstance(score, int | float) and not isinstance(score, bool) and score in range(1, 11)
    if whole:
        assert read(text, Verdict, "stop").value.score == score
    else:
        with pytest.raises(BadReply) as trouble:
            read(text, Verdict, "stop")
        assert trouble.value.kind == "invalid"


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=10), min_size=1, max_size=3), max_size=4))
def test_every_top_level_object_is_found_in_order(objects: list[dict[str, str]]) -> None:
    text = " and ".join(json.dumps(item) for item in objects)
    assert [json.loads(found.source) for found in find_objects(text)] == objects


def test_a_schema_is_inlined_closed_and_without_titles() -> None:
    schema = schema_of(Nested)
    assert "$defs" not in schema and "$ref" not in json.dumps(schema)
    assert schema["additionalProperties"] is False
    assert schema["properties"]["verdict"]["additionalProperties"] is False
    assert schema["properties"]["verdicts"]["items"]["properties"]["score"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 10,
    }
    assert schema["properties"]["title"] == {"type": "string"}


def test_a_model_that_holds_itself_keeps_its_definitions() -> None:
    schema = schema_of(Node)
    assert schema["$defs"]["Node"]["additionalProperties"] is False


def test_a_schema_is_the_same_each_time() -> None:
    first = json.dumps(schema_of(Nested))
    schema_of.cache_clear()
    assert json.dumps(schema_of(Nested)) == first
