"""A chat's earlier messages, and replies that are words all the same: what `ItemAsker` adds for conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tasks.foundation.errors import ModelError
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.engine import Engine
from tasks.foundation.llm.models import load_models
from tasks.foundation.llm.request import Message, RawReply, Usage
from tasks.foundation.llm.sending import Patience
from tasks.foundation.run.asking import ItemAsker
from tasks.foundation.settings import load_settings
from tests.fakes.scripted import ScriptedProvider


class Nothing(BaseModel):
    pass


class TwoParts:
    """As a Prompt, without a file."""

    fingerprint = "two"
    reply_model = None

    def render(self, language: str, inputs: BaseModel, limits: object) -> tuple[Message, ...]:
        return (Message("system", "be kind"), Message("user", "third"))

    def defuse(self, language: str, message: Message) -> Message:
        return message


async def ask(tmp_path: Path, provider: ScriptedProvider, max_reasks: int = 0, **more: Any) -> Any:
    tmp_path.mkdir(exist_ok=True)
    cache = ReplyCache(tmp_path / "replies.sqlite")
    given = {"scripted": provider}
    engine = Engine(load_models(), cache, run_id="r", max_reasks=max_reasks, patience=Patience(1), providers=given)
    asker = ItemAsker(engine, "conversation", "key", load_settings("test"))
    try:
        return await asker(
            TwoParts(),  # type: ignore[arg-type]
            Nothing(),
            language="en",
            alias="scripted-a",
            purpose="generation",
            temperature=0.0,
            max_tokens=10,
            **more,
        )
    finally:
        cache.close()


async def test_earlier_messages_stand_between_the_system_message_and_the_last_one(tmp_path: Path) -> None:
    provider = ScriptedProvider(["fine"])
    history = (Message("user", "first"), Message("assistant", "second"))
    assert await ask(tmp_path, provider, history=history) == "fine"
    assert [(part.role, part.content) for part in provider.calls[0].messages] == [
        ("system", "be kind"),
        ("user", "first"),
        ("assistant", "second"),
        ("user", "third"),
    ]


async def test_without_a_history_the_messages_are_the_prompts_own(tmp_path: Path) -> None:
    provider = ScriptedProvider(["fine"])
    await ask(tmp_path, provider)
    assert [part.content for part in provider.calls[0].messages] == ["be kind", "third"]


def refusal(text: str) -> RawReply:
    return RawReply(text, Usage(1, 0, 1, 0), "refusal")


async def test_a_refusal_in_words_is_the_text_that_was_asked_for(tmp_path: Path) -> None:
    said = await ask(tmp_path, ScriptedProvider([refusal("<think>no</think>I would rather not.")]))
    assert said == "I would rather not."


async def test_a_refusal_without_words_or_of_a_form_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as wordless:
        await ask(tmp_path, ScriptedProvider([refusal("")]))
    with pytest.raises(ModelError) as form:
        await ask(tmp_path, ScriptedProvider([refusal("I would rather not.")]), reply=Nothing)
    assert wordless.value.kind == form.value.kind == "refused"


def cut(text: str) -> RawReply:
    return RawReply(text, Usage(1, 0, 1, 0), "length")


async def test_a_text_that_stays_cut_off_is_the_text_a_reader_would_see(tmp_path: Path) -> None:
    assert await ask(tmp_path, ScriptedProvider([cut("First I")]), max_reasks=0) == "First I"
    longer = ScriptedProvider([cut("First I"), cut("First I would")])
    assert await ask(tmp_path / "longer", longer, max_reasks=1) == "First I would"


async def test_thoughts_that_are_cut_off_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as found:
        await ask(tmp_path, ScriptedProvider([cut("<think>They seem")]))
    assert found.value.kind == "truncated"
