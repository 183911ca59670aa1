"""Texts within limits, and replies of parts: what is kept, cut, and asked for again."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.errors import ModelError
from tasks.foundation.llm.reply import BadReply, read, schema_of
from tasks.foundation.settings import load_settings
from tasks.foundation.texts.replies import Goal, Limit, Manner, PartsReply, Remark, ReplyModel, asked, bind, cut_text
from tests.fakes.asker import FakeAsker

LIMITS = load_settings("test").text_limits  # goal: 200 characters, remark: 12 words


class Note(ReplyModel):
    goal: Goal = asked("a goal", "目标")
    why: Remark = asked("why", "理由")


class Notes(PartsReply):
    one: Note = asked("the first", "其一")
    two: Note = asked("the second", "其二")
    three: Note = asked("the third", "其三")


class Listed(PartsReply):
    listed: ClassVar[str] = "notes"

    notes: list[Note] = asked("notes", "笔记", max_length=4)


ENGLISH, CHINESE = Manner(LIMITS, "en"), Manner(LIMITS, "zh")
GOOD = {"goal": "g", "why": "w"}
BAD = {"goal": "g"}


@pytest.mark.parametrize(("n", "left", "cut"), [(200, 200, 0), (300, 300, 0), (301, 300, 1), (5000, 300, 1)])
def test_a_text_up_to_half_over_its_limit_stays_and_one_beyond_is_cut_and_counted(n: int, left: int, cut: int) -> None:
    fields: list[str] = []
    reply = read(json.dumps({"goal": "x" * n, "why": "w"}), bind(Note, ENGLISH), "stop", fields)
    assert (len(reply.goal), fields) == (left, ["goal"] * cut)


def test_limits_in_words_and_meanings_are_told_in_the_language() -> None:
    english, chinese = (schema_of(bind(Note, manner))["properties"]["why"] for manner in (ENGLISH, CHINESE))
    assert english == {"type": "string", "minLength": 1, "maxLength": 120, "description": "why"}
    assert chinese == {"type": "string", "minLength": 1, "maxLength": 48, "description": "理由"}
    assert "maxLength" not in schema_of(Note)["properties"]["why"], "unbound models have no limits"


def test_a_limit_that_does_not_hold_is_told_all_the_same() -> None:
    class Said(ReplyModel):
        text: Limited = asked("said", "所说")

    reply = read(json.dumps({"text": "x" * 5000}), bind(Said, ENGLISH), "stop")
    assert len(reply.text) == 5000
    assert schema_of(bind(Said, ENGLISH))["properties"]["text"]["maxLength"] == 400


Limited = Annotated[str, Limit("goal", held=False, times=2)]

WORDS = st.lists(st.text("abcdé'-", min_size=1, max_size=9), min_size=1, max_size=40).map(" ".join)


@given(WORDS, st.integers(10, 80))
def test_a_cut_text_is_a_beginning_that_ends_with_a_word(text: str, most: int) -> None:
    cut = cut_text(text, most)
    assert text.startswith(cut) and 0 < len(cut) <= most
    if len(text) > most:
        assert text[len(cut)] == " ", "no word is parted"
    else:
        assert cut == text


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("He came. He saw. He left again.", 20, "He came. He saw."),
        ("Yes. But then she talked on and on without end", 30, "Yes. But then she talked on"),
        ("他来了。他看见了。他又走了很远", 10, "他来了。他看见了。"),
        ("他走了很远很远的路才到家", 6, "他走了很远很"),
        ("one, two, three", 9, "one, two"),
        ("Donaudampfschifffahrt", 5, "Donau"),
    ],
)
def test_a_text_is_cut_at_a_sentence_or_a_word(text: str, most: int, expected: str) -> None:
    assert cut_text(text, most) == expected


# Parts


def test_good_parts_are_kept_and_none_is_made_up() -> None:
    reply = read(json.dumps({"one": GOOD, "two": BAD}), bind(Notes, ENGLISH), "stop")
    assert isinstance(reply, Notes) and list(reply.parts) == ["one"]
    with pytest.raises(BadReply) as trouble:
        read(json.dumps({"one": BAD, "two": BAD}), bind(Notes, ENGLISH), "stop")
    assert trouble.value.kind == "invalid"


def test_what_was_cut_is_counted_in_the_parts_that_are_kept() -> None:
    long = {"goal": "x" * 999, "why": "w"}
    fields: list[str] = []
    read(json.dumps({"one": long, "two": {**long, "why": 3}, "three": long}), bind(Notes, ENGLISH), "stop", fields)
    assert fields == ["goal", "goal"]


@pytest.mark.parametrize("length", range(1, 130))
def test_wherever_a_reply_is_cut_off_the_parts_before_it_stand(length: int) -> None:
    whole = json.dumps({name: {"goal": "a, b {c}", "why": 'so "it" is'} for name in ("one", "two", "three")})
    if length >= len(whole):
        return
    try:
        kept = list(read(whole[:length], bind(Notes, ENGLISH), "length").parts)
    except BadReply as trouble:
        assert trouble.kind == "truncated"
        kept = []
    assert kept == ["one", "two", "three"][: whole[:length].count('is"}')]


def test_of_a_list_the_good_items_are_kept_and_the_lost_ones_are_told() -> None:
    reply = read(json.dumps({"notes": [GOOD, BAD, GOOD]}), bind(Listed, ENGLISH), "stop")
    assert (len(reply.notes), reply.lost) == (2, [BAD])
    cut_off = read(json.dumps({"notes": [GOOD, GOOD, GOOD]})[:-20], bind(Listed, ENGLISH), "length")
    assert (len(cut_off.notes), cut_off.lost) == (2, [None])
    assert read(json.dumps({"notes": []}), bind(Listed, ENGLISH), "stop").lost == []
    with pytest.raises(BadReply):
        read(json.dumps({"notes": [BAD]}), bind(Listed, ENGLISH), "stop")


def _ask_in_parts(*answers: Any, reasks: int = 2) -> tuple[dict[str, str], list[tuple[str, ...]]]:
    """What came of the parts a, b and c, and what was asked for each time; an answer is what comes, or an error."""
    asked_for: list[tuple[str, ...]] = []
    waiting = iter(answers)

    async def ask(some: tuple[str, ...]) -> dict[str, str]:
        asked_for.append(some)
        answer = next(waiting)
        if isinstance(answer, Exception):
            raise answer
        return {part: part.upper() for part in answer}

    asker = FakeAsker(settings=load_settings("test", [f"llm.max_reasks={reasks}"]))
    return asyncio.run(asker.in_parts("abc", ask)), asked_for


def test_missing_parts_are_asked_for_alone_and_as_often_as_a_reply_would_be() -> None:
    assert _ask_in_parts("ac", "b") == ({"a": "A", "b": "B", "c": "C"}, [("a", "b", "c"), ("b",)])
    found, asked_for = _ask_in_parts("a", "b", "", reasks=2)
    assert (set(found), asked_for) == ({"a", "b"}, [("a", "b", "c"), ("b", "c"), ("c",)])
    assert _ask_in_parts("a", reasks=0)[1] == [("a", "b", "c")]


def test_what_was_found_stays_when_the_rest_cannot_be_had_but_not_when_it_may_come_later() -> None:
    assert set(_ask_in_parts("ab", ModelError("invalid", "no"))[0]) == {"a", "b"}
    for answers in ((ModelError("invalid", "no"),), ("ab", ModelError("timeout", "slow"))):
        with pytest.raises(ModelError):
            _ask_in_parts(*answers)
