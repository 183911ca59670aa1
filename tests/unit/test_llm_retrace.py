"""A request's calls are found again in the cache, in their order, however it was asked again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tasks.foundation.errors import StoreError
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.request import Message, Outcome
from tasks.foundation.llm.retrace import KeptReplies, calls_before, retrace
from tests.unit.test_llm_engine import GOOD, engine, failure, reply, request

BAD, EMPTY, CUT = reply("no JSON"), reply(""), reply('{"score": ', "length")
PARAGRAPHS = (Message("system", "s"), Message("user", "one\n\ntwo\n\nthree"))


@pytest.fixture
async def cache(tmp_path: Path) -> AsyncIterator[ReplyCache]:
    with ReplyCache(tmp_path / "replies ?#.sqlite") as cache:
        yield cache


def traced(cache: ReplyCache, outcome: Outcome) -> list[str]:
    return [found.reply.text for found in retrace(KeptReplies(cache.path), outcome.record.model_dump())]


@pytest.mark.parametrize(
    "replies",
    [
        [reply(GOOD)],
        [BAD, reply(GOOD)],
        [EMPTY, reply(GOOD)],
        [CUT, reply(GOOD)],
        [BAD, EMPTY, reply(GOOD)],
        [EMPTY, BAD, reply(GOOD)],
        [CUT, BAD, reply(GOOD)],
        [EMPTY, EMPTY, reply(GOOD)],
        [BAD, CUT, BAD],
    ],
    ids=lambda replies: " ".join(one.text or "empty" for one in replies),
)
@pytest.mark.parametrize("alias", ["judge", "wordy"])
async def test_every_reply_of_a_request_is_found_in_its_order(
    cache: ReplyCache, replies: list[Any], alias: str
) -> None:
    asked = request(alias=alias, messages=PARAGRAPHS)
    outcome = await engine(cache, replies).ask(asked)
    assert traced(cache, outcome) == [one.text for one in replies]
    again = await engine(cache, [], run_id="run-2").ask(asked)
    assert again.record.from_cache and traced(cache, again) == [one.text for one in replies]


async def test_a_text_that_was_asked_for_again_is_found(cache: ReplyCache) -> None:
    outcome = await engine(cache, [EMPTY, reply("words")]).ask(request(reply=None))
    assert traced(cache, outcome) == ["", "words"]


async def test_replies_that_another_row_has_paid_for_are_this_rows_too(cache: ReplyCache) -> None:
    await engine(cache, [BAD, reply(GOOD)]).ask(request())
    outcome = await engine(cache, []).ask(request(row_key="row-2"))
    assert traced(cache, outcome) == ["no JSON", GOOD]


async def test_a_request_whose_re_ask_failed_has_the_replies_before_it(cache: ReplyCache) -> None:
    outcome = await engine(cache, [BAD, failure("refused")]).ask(request())
    assert outcome.error is not None and traced(cache, outcome) == ["no JSON"]


async def test_what_no_provider_answered_has_no_reply(cache: ReplyCache) -> None:
    outcome = await engine(cache, [failure("refused")]).ask(request())
    assert traced(cache, outcome) == []


async def test_what_was_pruned_is_not_half_shown(cache: ReplyCache) -> None:
    outcome = await engine(cache, [BAD, reply(GOOD)]).ask(request())
    cache.prune(stage="voting")
    assert traced(cache, outcome) == []


async def test_a_cache_that_is_gone_is_not_made_and_one_that_is_none_is_told_of(tmp_path: Path) -> None:
    gone, other = KeptReplies(tmp_path / "replies.sqlite"), tmp_path / "other.sqlite"
    assert not gone.is_there and gone.get("k") is None
    assert list(tmp_path.iterdir()) == []
    other.write_text("no database, but as long as the head of one " * 10)
    with pytest.raises(StoreError, match="cannot be read"):
        KeptReplies(other).get("k")


@pytest.mark.parametrize("text", ["", "[]", '{"call": 1}', '{"call": {"messages": []}, "to": {"max_tokens": 1}}'])
def test_what_is_no_call_has_none_before_it(text: str) -> None:
    assert not [one for one in calls_before(text) if '"content"' in one]
