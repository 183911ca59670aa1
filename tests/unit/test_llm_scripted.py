"""The scripted provider: replies in order, by name, or made up from any schema."""

from __future__ import annotations

import json
from dataclasses import replace
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tasks.foundation.errors import ConfigError
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.providers import scripted
from tasks.foundation.llm.providers.scripted import from_schema
from tasks.foundation.llm.reply import read, schema_of
from tasks.foundation.llm.request import Message, ProviderCall
from tests.fakes.scripted import ScriptedProvider

SPEC = ModelSpec("s", "scripted", "tasks.foundation.llm.providers.scripted:from_schema", "a")


class Mood(Enum):
    calm = "calm"
    tense = "tense"


class Turn(BaseModel):
    speaker: Literal["Ann", "Bob"]
    text: str = Field(min_length=30, max_length=60)


class Tree(BaseModel):
    name: str
    branches: list[Tree] = Field(default=[], max_length=2)


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(gt=0, lt=10)


class Dog(BaseModel):
    kind: Literal["dog"]
    weight: float = Field(ge=0.5, le=0.6)


class Everything(BaseModel):
    mood: Mood
    turns: list[Turn] = Field(min_length=4, max_length=6)
    note: str | None
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    either: int | str
    flags: dict[str, bool]
    labels: set[Literal["a", "b", "c"]] = Field(min_length=2)
    short: str = Field(max_length=3)
    negative: int = Field(le=-5)
    tree: Tree


def call(schema: Any, **changes: Any) -> ProviderCall:
    base = ProviderCall(SPEC, (Message("user", "hello"),), schema, "x", 0.0, 100, None, 0)
    return replace(base, **changes)


@given(st.integers(0, 10_000))
def test_any_schema_is_filled_with_values_that_validate(sample: int) -> None:
    text = from_schema(call(schema_of(Everything), sample=sample))
    assert isinstance(read(text, Everything, "stop"), Everything)


def test_the_same_call_gets_the_same_reply_and_another_sample_another() -> None:
    schema = schema_of(Everything)
    assert from_schema(call(schema)) == from_schema(call(schema))
    assert from_schema(call(schema)) != from_schema(call(schema, sample=1))
    assert from_schema(call(schema)) != from_schema(call(schema, seed=1))


def test_two_voices_answer_differently() -> None:
    schema = schema_of(Everything)
    other = replace(SPEC, extra_body={"voice": "b"})
    assert from_schema(call(schema)) != from_schema(call(schema, model=other))


def test_without_a_schema_it_writes_two_sentences() -> None:
    assert from_schema(call(None)).count(".") == 2


def test_a_pattern_is_refused_rather_than_guessed() -> None:
    with pytest.raises(ConfigError, match="pattern"):
        from_schema(call({"type": "object", "properties": {"x": {"type": "string", "pattern": "^a+$"}}}))


async def test_a_list_that_runs_out_raises() -> None:
    provider = ScriptedProvider(["one"])
    assert (await provider.call(call(None))).text == "one"
    with pytest.raises(AssertionError, match="ran out"):
        await provider.call(call(None))


async def test_an_exception_in_the_list_is_raised() -> None:
    with pytest.raises(TimeoutError):
        await ScriptedProvider([TimeoutError()]).call(call(None))


async def test_the_models_name_finds_the_callable() -> None:
    reply = await scripted.ScriptedProvider(SPEC).call(call(schema_of(Turn)))
    assert json.loads(reply.text)["speaker"] in ("Ann", "Bob")
    assert reply.usage.completion_tokens and reply.finish_reason == "stop"


@pytest.mark.parametrize("name", ["nothing", "no.such.module:f", "json:no_such", "json:__name__"])
async def test_a_name_that_is_no_callable_is_a_config_error(name: str) -> None:
    with pytest.raises(ConfigError):
        await scripted.ScriptedProvider(SPEC).call(call(None, model=replace(SPEC, name=name)))
