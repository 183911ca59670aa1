"""A stage with as many items as COLLOQUY_BENCH_ROWS says: one small question each, one note from each answer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from tasks.foundation.llm.request import Message
from tasks.foundation.stage import Asker, Prepared, Rows, Stage, StageContext
from tasks.foundation.tables import Row, Table


class Note(Row):
    key: str = Field(description="the item")
    topic: str = Field(description="what the model said")


class Topic(BaseModel):
    topic: str = Field(max_length=40)


class Inputs(BaseModel):
    key: str


class ShortPrompt:
    path = "bench/topic"
    fingerprint = "bench"
    reply_model = Topic
    limits = frozenset[str]()

    def render(self, language: str, inputs: BaseModel, limits: object) -> tuple[Message, ...]:
        return (Message("user", f"{language} {inputs!r}"),)


def prepare(context: StageContext) -> Prepared:
    rows = int(os.environ["COLLOQUY_BENCH_ROWS"])
    return Prepared(items=[f"row{number:07d}" for number in range(rows)])


def briefs(context: StageContext, keys: Sequence[str]) -> Mapping[str, Any]:
    return {key: key for key in keys}


async def work(context: StageContext, brief: Any, ask: Asker) -> Rows:
    reply = await ask(
        ShortPrompt(),  # type: ignore[arg-type]
        Inputs(key=brief),
        language="en",
        alias="scripted-a",
        purpose="distil",
        temperature=0.0,
        max_tokens=100,
    )
    return {"notes": [Note(key=brief, topic=reply.topic)]}


STAGE = Stage(
    name="curation",
    reads=(),
    prepare=prepare,
    load_items=briefs,
    work=work,
    worked=("notes",),
    drafts=(Table("notes", Note, ("key",), "one row per item"),),
    prompts=(ShortPrompt(),),  # type: ignore[arg-type]
    roles=lambda settings: {"distiller": ["scripted-a"]},
)
