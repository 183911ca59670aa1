"""From a model's text to a checked value: the corpus of ugly replies and properties over all texts."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tasks.foundation.llm import mend, objects, reply
from tasks.foundation.llm.reply import BadReply, read, schema_of
from tasks.foundation.settings.strict_yaml import load_yaml

CASES = load_yaml((Path(__file__).parents[1] / "data" / "ugly_replies.yaml").read_text(encoding="utf-8"))


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


MODELS: dict[str, type[BaseModel]] = {"Verdict": Verdict, "Nested": Nested}


def text_of(case: dict[str, Any]) -> str:
    return case["text"] if "text" in case else "".join(piece * times for piece, times in case["pieces"])


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_an_ugly_reply_reads_or_fails_as_the_corpus_says(case: dict[str, Any]) -> None:
    model, finish = MODELS[case.get("model", "Verdict")], case.get("finish", "stop")
    if "fails" in case:
        with pytest.raises(BadReply) as trouble:
            read(text_of(case), model, finish)
        assert trouble.value.kind == case["fails"]
        assert trouble.value.sentence
    else:
        assert read(text_of(case), model, finish) == model(**case["reads"])


def test_the_corpus_has_no_case_twice() -> None:
    assert len({case["name"] for case in CASES}) == len(CASES) >= 130
    inputs = [(text_of(case), case.get("finish"), case.get("model")) for case in CASES]
    assert len(set(inputs)) == len(inputs)


def test_the_sentence_for_the_reask_names_the_field_and_what_was_found() -> None:
    with pytest.raises(BadReply) as trouble:
        read('{"label": "agree", "score": 11}', Verdict, "stop")
    assert "score" in trouble.value.sentence and "11" in trouble.value.sentence


def test_a_sentence_never_grows_with_the_reply() -> None:
    with pytest.raises(BadReply) as trouble:
        read(json.dumps({"label": "x" * 100_000, "score": "y" * 100_000}), Verdict, "stop")
    assert len(trouble.value.sentence) < 1000


def test_a_comma_too_many_is_mended() -> None:
    assert read('{"label": "agree", "score": 7,}', Verdict, "stop") == Verdict(label="agree", score=7)


def test_plain_text_loses_reasoning_and_invisible_edges_only() -> None:
    assert read("\ufeff<think>hm</think> Hello {you}\n", None, "stop") == "Hello {you}"


SPOKEN = "Take the early train; it is quieter."
THOUGHT = 'She hates crowds. Perhaps {"label": "agree", "score": 9}?'

MARKED = {
    "tags": f"<think>\n{THOUGHT}\n</think>\n\n{SPOKEN}",
    "tags of another name": f"<Reasoning>{THOUGHT}</Reasoning>{SPOKEN}",
    "only the closing tag": f"{THOUGHT}</think>{SPOKEN}",
    "gemma": f"<|channel>thought\n{THOUGHT}<channel|>{SPOKEN}<turn|>",
    "gemma without thoughts": f"<|channel>thought\n<channel|>{SPOKEN}",
    "harmony": f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{SPOKEN}"
    "<|return|>",
    "harmony in three channels": f"<|start|>assistant<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant"
    f"<|channel|>commentary to=functions.x <|constrain|>json<|message|>{THOUGHT}<|call|><|start|>assistant"
    f"<|channel|>final <|constrain|>json<|message|>{SPOKEN}",
    "harmony without its tokens": f"analysis{THOUGHT}assistantfinal{SPOKEN}",
    "harmony without its tokens, in lower case": f"analysisthey ask.assistantcommentaryHm.assistantfinal{SPOKEN}",
    "bars": f"|startthink|{THOUGHT}|endthink|{SPOKEN}",
    "mistral": f"[THINK]{THOUGHT}[/THINK]{SPOKEN}</s>",
    "cohere": f"<|START_THINKING|>{THOUGHT}<|END_THINKING|><|START_RESPONSE|>{SPOKEN}<|END_RESPONSE|>",
    "steps of thought": f"<|begin_of_thought|>{THOUGHT}<|end_of_thought|><|begin_of_solution|>{SPOKEN}"
    "<|end_of_solution|>",
    "a final response": f"Steps: {THOUGHT} [BEGIN FINAL RESPONSE]{SPOKEN}[END FINAL RESPONSE]",
    "end of turn": f"{SPOKEN}<|im_end|>",
    "end of turn and another turn": f"{SPOKEN}<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nAnd the late one?",
    "end of turn of gemma": f"{SPOKEN}<end_of_turn>\n<start_of_turn>user\nThanks",
    "end of text": f"{SPOKEN}<|endoftext|>Human: next",
    "begin and end of sentence": f"<s>{SPOKEN}</s>",
    "deepseek's": f"{SPOKEN}<｜end▁of▁sentence｜><｜User｜>more",
    "the template's head": f"<|im_start|>assistant\n{SPOKEN}<|im_end|>\n",
    "the template's head of llama": f"<|start_header_id|>assistant<|end_header_id|>\n\n{SPOKEN}",
    "a request for more": f"{SPOKEN} [INST] And then? [/INST] Then home.",
    "a private part": f"<|inner_prefix|>{THOUGHT}<|inner_suffix|>{SPOKEN}",
    "a notepad": f"<scratchpad>{THOUGHT}</scratchpad>\n{SPOKEN}",
    "an end of a name of its own": f"{SPOKEN}<|role_end|>",
    "an end in wide bars and padding": f"{SPOKEN}<｜end▁of▁turn｜><pad><pad>",
    "thoughts after the answer": f"{SPOKEN}\n<think>{THOUGHT}",
    "nothing": SPOKEN,
}


@pytest.mark.parametrize("name", MARKED)
def test_reasoning_and_control_tokens_are_no_part_of_what_is_said(name: str) -> None:
    assert read(MARKED[name], None, "stop") == SPOKEN
    verdict = '{"label": "disagree", "score": 2}'
    assert read(MARKED[name].replace(SPOKEN, verdict), Verdict, "stop") == Verdict(label="disagree", score=2)


@pytest.mark.parametrize("text", [f"<think>{THOUGHT}", f"<|channel>thought\n{THOUGHT}", f"analysis“{THOUGHT}”", "</s>"])
def test_a_reply_of_thoughts_alone_is_unreadable_and_said_to_be_so(text: str) -> None:
    for model in (None, Verdict):
        with pytest.raises(BadReply, match="reasoning and no answer") as trouble:
            read(text, model, "stop")
        assert trouble.value.kind == "unreadable"


@pytest.mark.parametrize(
    "text",
    [
        "She wrote: I think <think> is a tag",
        "Use <reasoning> where you must, he said.",
        "analysis of the year: good",
        "I work as an assistantfinally done with it",
        "Analysis shows a final assistant at work.",
        "I < you > me, |think| of it",
        "the <b>early</b> train, not the <s>late</s> one",
    ],
)
def test_a_tag_that_is_talked_about_is_text(text: str) -> None:
    assert read(text, None, "stop") == text


def test_a_tag_in_a_json_text_is_data_and_an_unclosed_one_before_an_object_is_not() -> None:
    quoting = {"label": "agree", "score": 7, "reason": "it wrote <|im_end|> and <think>"}
    assert read(json.dumps(quoting), Verdict, "stop") == Verdict(**quoting)
    with pytest.raises(BadReply):
        read(f"Let me see <think> {THOUGHT}", Verdict, "stop")


@pytest.mark.parametrize(
    ("text", "finish", "kind"),
    [("", "stop", "unreadable"), ("<think>a</think>", "stop", "unreadable"), ("Half a sen", "length", "truncated")],
)
def test_empty_or_cut_off_text_is_a_failure(text: str, finish: str, kind: str) -> None:
    with pytest.raises(BadReply) as trouble:
        read(text, None, finish)
    assert trouble.value.kind == kind


# Work


class Counting:
    """A compiled pattern that adds up how many characters it went over."""

    def __init__(self, pattern: re.Pattern[str], work: list[int]) -> None:
        self._pattern = pattern
        self._work = work

    def match(self, text: str, at: int = 0) -> re.Match[str] | None:
        return self._counted(self._pattern.match(text, at), at, missed=at)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self._counted(self._pattern.fullmatch(text), 0, missed=len(text))

    def search(self, text: str, at: int = 0) -> re.Match[str] | None:
        return self._counted(self._pattern.search(text, at), at, missed=len(text))

    def finditer(self, text: str, at: int = 0) -> Iterator[re.Match[str]]:
        while found := self.search(text, at):
            yield found
            at = found.end()

    def sub(self, replacement: Any, text: str) -> str:
        self._work[0] += len(text)
        return self._pattern.sub(replacement, text)

    def _counted(self, found: re.Match[str] | None, at: int, missed: int) -> re.Match[str] | None:
        self._work[0] += 1 + (found.end() if found else missed) - at
        return found


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the characters that the patterns and parsers of a reading go over."""
    counted = [0]
    for module in (mend, objects, reply):
        for name, pattern in list(vars(module).items()):
            if isinstance(pattern, re.Pattern):
                monkeypatch.setattr(module, name, Counting(pattern, counted))
    for quote, pattern in list(mend._INSIDE.items()):
        monkeypatch.setitem(mend._INSIDE, quote, Counting(pattern, counted))
    parsed = objects._parse

    def counting_parsed(source: str, pairs: Any) -> Any:
        counted[0] += len(source)
        return parsed(source, pairs)

    monkeypatch.setattr(objects, "_parse", counting_parsed)
    return counted


ANSWER = '{"label": "agree", "score": 7}'
HOSTILE = [
    *("{", "[", '{"a":', "{'a':", '[{"a":', '"', "'", "\\", "`", "<", "</", "}", ",", " ", "\u200b", "\ud800"),
    *("<think>", "</think>", "<think></think>", "<think><think></think>", '<think></think>{"a', "<|channel|>"),
    *("{}", '{"a"}', '{"a":1}', '{"a":1,}', "{a:", "{ ", '{"', "{'", "{“", '{"a":"', '{"a": {', "{'a':'}", ANSWER),
]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("", ANSWER),
        (ANSWER, ""),
        ('{"label": "agree", "score": 7, "reason": "', '"}'),
        ("{'label': 'agree', 'score': 7, 'reason': '", "'}"),
        ('{"label": "agree", /*', '*/ "score": 7}'),
        ('{"label": "agree", "score": 7, "x": [', ",]}"),
    ],
)
def test_a_reading_takes_work_in_proportion_to_the_length(piece: str, before: str, after: str, work: list[int]) -> None:
    spent = []
    for length in (2_000, 8_000):
        work[0] = 0
        with contextlib.suppress(BadReply):
            read(before + piece * (length // len(piece)) + after, Verdict, "stop")
        spent.append(work[0])
    assert spent[1] <= 5 * spent[0] + 1_000, "four times the text must not take more than about four times the work"


@pytest.mark.parametrize("piece", ["{", "[", '{"a":', '"', "\\", "<think>", "{'a':'"])
def test_a_hostile_megabyte_is_read_to_its_end(piece: str) -> None:
    with pytest.raises(BadReply):
        read(piece * (1_000_000 // len(piece)), Verdict, "stop")


@pytest.mark.parametrize("depth", [*range(80, 120, 3), *range(170, 230, 7), *range(300, 1100, 37)])
@pytest.mark.parametrize("extra", ["", ","])
def test_nesting_of_any_depth_reads_or_fails_cleanly(depth: int, extra: str) -> None:
    text = f'{{"label": "agree", "score": 7, "x": {"[" * depth}{"]" * depth}{extra}}}'
    with contextlib.suppress(BadReply):
        assert read(text, Verdict, "stop") == Verdict(label="agree", score=7)


# Properties

TOKENS = [
    *("{", "}", "[", "]", '"', "'", "“", "”", "‘", "’", "「", "」", "\\", "/", "//", "/*", "*/", "#", "`", "```json"),
    *(":", "：", ",", "，", "،", "<think>", "</think>", "&quot;", "...", "\u200b", "\u200d", "\ufeff", "\ud800", "\n"),
    *("7", "7.5", "-1", "７", "1e400", "NaN", "None", "true", "null", "undefined", "é", "好", "👍", "\x00", " "),
    *("label", "score", "reason", "agree", "disagree"),
]
SNIPPETS = ['{"label": "agree", "score": 10}', "{'label': 'agree', 'score': 10}", '", "score": 10, "x": "', "\\", "}"]


@given(
    st.lists(st.sampled_from([*TOKENS, *SNIPPETS, " "]), max_size=40).map("".join), st.sampled_from(["stop", "length"])
)
def test_any_text_reads_or_fails_cleanly(text: str, finish: str) -> None:
    for model in (Verdict, Nested, None):
        try:
            value = read(text, model, finish)
        except BadReply as trouble:
            assert trouble.sentence
        else:
            assert not isinstance(value, Verdict) or 1 <= value.score <= 10


@given(st.text(), st.sampled_from(["stop", "length", "content_filter"]))
def test_any_unicode_reads_or_fails_cleanly(text: str, finish: str) -> None:
    for model in (Verdict, None):
        try:
            read(text, model, finish)
        except BadReply as trouble:
            assert trouble.sentence


@given(st.text(alphabet="{}[]\"'\\:,01.eaglnrsctobd \n`\ud800\u200b", max_size=60))
def test_any_broken_json_reads_or_fails_cleanly(text: str) -> None:
    try:
        value = read('{"label": "agree", "score": 7, ' + text, Verdict, "stop")
    except BadReply:
        return
    assert 1 <= value.score <= 10


texts = st.text(st.characters(codec="utf-8", exclude_characters="\u200b\u200c\u200d\u2060\ufeff\u00ad"), max_size=40)
hostile_texts = st.lists(st.sampled_from([*SNIPPETS, "</think>", "he said ", "'", '"', "```", "\n", "//"])).map("".join)
verdicts = st.fixed_dictionaries(
    {"label": st.sampled_from(["agree", "disagree", "unsure"]), "score": st.integers(1, 10)},
    optional={"confidence": st.none() | st.floats(0, 1), "reason": texts | hostile_texts},
)


def escaped(text: str, quote: str, close: str) -> str:
    """`text` as a string in these quotes, with JSON's escapes and those of the quotes."""
    inner = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"')
    return quote + inner.replace(quote, f"\\{quote}").replace(close, f"\\{close}" if close != quote else close) + close


def as_json(sent: dict[str, Any]) -> str:
    return json.dumps(sent, ensure_ascii=False)


def as_ascii(sent: dict[str, Any]) -> str:
    return json.dumps(sent, indent=2)


def in_quotes(quote: str, close: str, colon: str, comma: str, end: str) -> Callable[[dict[str, Any]], str]:
    def write(sent: dict[str, Any]) -> str:
        def value(part: Any) -> str:
            return escaped(part, quote, close) if isinstance(part, str) else str(part)

        fields = [f"{quote}{key}{close}{colon}{value(part)}" for key, part in sent.items()]
        return "{" + comma.join(fields) + end + "}"

    return write


WRITERS: dict[str, Callable[[dict[str, Any]], str]] = {
    "JSON": as_json,
    "ASCII": as_ascii,
    "single quotes": in_quotes("'", "'", ": ", ", ", ""),
    "trailing comma": in_quotes('"', '"', ":", ",", ", "),
    "comments": in_quotes('"', '"', ": /* it's */ ", ', // a 5" one\n', " # end\n"),
    "typographic": in_quotes("“", "”", "：", "，", ""),
    "corners": in_quotes("「", "」", "：", "，", "，"),
    "invisible": in_quotes('"', '"', "\u200b:\ufeff", "\u200b,", ",\u200b"),
}


@given(
    sent=verdicts,
    write=st.sampled_from(sorted(WRITERS)),
    before=st.text(st.characters(codec="utf-8", exclude_characters='{}"<◁['), max_size=30),
    after=st.text(st.characters(codec="utf-8", exclude_characters='{}"<◁]'), max_size=30),
    around=st.sampled_from(
        ["{}", "```json\n{}\n```", "[{}]", "<think>{{'score': 10}}</think>{}", "A set {{a, b}}: {}", "> {}"]
    ),
)
def test_a_valid_object_survives_whatever_is_written_around_it_and_however_it_is_punctuated(
    sent: dict[str, Any], write: str, before: str, after: str, around: str
) -> None:
    text = f"{before}\n{around.format(WRITERS[write](sent))}\n{after}"
    assert read(text, Verdict, "stop") == Verdict(**sent)


@given(sent=verdicts, write=st.sampled_from(sorted(WRITERS)), before=st.sampled_from(["", "```json\n", "Well: ", "["]))
def test_no_part_of_an_answer_is_taken_for_another_answer(sent: dict[str, Any], write: str, before: str) -> None:
    whole = before + WRITERS[write](sent)
    for end in range(len(whole)):
        for finish, kinds in (("stop", {"unreadable"}), ("length", {"truncated"})):
            with pytest.raises(BadReply) as trouble:
                read(whole[:end], Verdict, finish)
            assert trouble.value.kind in kinds


keys = st.from_regex(r"[\w -]{1,9}", fullmatch=True)
json_objects = st.dictionaries(
    keys,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@given(json_objects, st.booleans(), st.sampled_from([None, 1]))
def test_what_is_json_already_is_mended_into_itself(sent: dict[str, Any], ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(sent, ensure_ascii=ascii_only, indent=indent)
    assert mend.mend_object(f"{text} and more", 0) == (sent, len(text))


@given(st.text("0123456789.,-+eE/ %~_x()７٧−\n", max_size=6), st.sampled_from(["'", '"']))
def test_whatever_stands_where_a_number_should_is_read_as_that_number_or_not_at_all(junk: str, quote: str) -> None:
    text = f"{{{quote}label{quote}: 'agree', {quote}score{quote}: {junk}}}"
    try:
        value = read(text, Verdict, "stop")
    except BadReply:
        return
    assert json.loads(junk.replace("７", "7").strip(" ,\n")) == value.score


@given(st.one_of(st.integers(), st.floats(), st.text(), st.booleans(), st.none()))
def test_no_score_is_ever_changed_to_fit(score: Any) -> None:
    text = json.dumps({"label": "agree", "score": score})
    whole = isinstance(score, int | float) and not isinstance(score, bool) and score in range(1, 11)
    if whole:
        assert read(text, Verdict, "stop").score == score
    else:
        with pytest.raises(BadReply) as trouble:
            read(text, Verdict, "stop")
        assert trouble.value.kind == "invalid"


@given(st.lists(st.dictionaries(keys, st.text(max_size=10), min_size=1, max_size=3), max_size=4))
def test_every_top_level_object_is_found_in_order(sent: list[dict[str, str]]) -> None:
    text = " and ".join(json.dumps(item) for item in sent)
    found = list(objects.find_objects(text))
    assert [candidate.value for candidate in found] == sent
    assert [json.loads(text[candidate.start : candidate.end]) for candidate in found] == sent


# Schemas


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
