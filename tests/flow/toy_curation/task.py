"""Asks two questions a pairing and keeps the answers as scenes; `finish` drops some."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from tasks.foundation.errors import ModelError
from tasks.foundation.ids import content_id
from tasks.foundation.llm.providers.scripted import from_schema
from tasks.foundation.llm.request import Message, ProviderCall
from tasks.foundation.stage import Asker, Finished, Prepared, Rows, Stage, StageContext
from tasks.foundation.tables import Table
from tasks.foundation.tables.scenes import Scene
from tasks.foundation.tables.types import Row

WORDS = ("goal", "topic")


class Topic(BaseModel):
    topic: str = Field(max_length=40)


class Note(Row):
    pairing_id: str
    goal: str
    topic: str


class Question(BaseModel):
    key: str
    word: str


class ToyPrompt:
    """As a Prompt, without a file."""

    path = "toy/topic"
    fingerprint = "toy"
    reply_model = Topic
    limits = frozenset[str]()

    def render(self, language: str, inputs: BaseModel, limits: object) -> tuple[Message, ...]:
        return (Message("user", f"{language} {inputs!r}"),)


def prepare(context: StageContext) -> Prepared:
    return Prepared(context.read("pairings")["pairing_id"].to_list())


def briefs(context: StageContext, keys: Sequence[str]) -> Mapping[str, Any]:
    return {key: key for key in keys}


async def work(context: StageContext, brief: Any, ask: Asker) -> Rows:
    answers = {}
    for word in WORDS:
        reply = await ask(
            ToyPrompt(),  # type: ignore[arg-type]
            Question(key=brief, word=word),
            language="en",
            alias=context.settings.voting.arbiter,
            purpose=word,
            temperature=0.0,
            max_tokens=100,
        )
        answers[word] = reply.topic
    return {"notes": [Note(pairing_id=brief, **answers)]}


def finish(context: StageContext) -> Finished:
    notes = context.made("notes").to_dicts()
    kept = [note for note in notes if not note["pairing_id"].endswith("3")]
    dropped = len(notes) - len(kept)
    return Finished({"scenes": [_scene(note) for note in kept]}, {"unwanted": dropped} if dropped else {})


def _scene(note: Mapping[str, str]) -> Scene:
    return Scene(
        scene_id=content_id("scene", note["pairing_id"]),
        seed_id=note["pairing_id"],
        language="en",
        goal1=note["goal"],
        goal2="b",
        goal_type="advice",
        time="now",
        location="here",
        topic=note["topic"],
        atmosphere="calm",
        domain="home",
    )


def answer(call: ProviderCall) -> str:
    """Any values; TOY_DOWN=sevens fails the rows whose number ends in 7, TOY_DOWN=all every row.

    What is asked is appended to the file TOY_ASKED names, so that a test sees what a process asked for.
    """
    down = os.environ.get("TOY_DOWN")
    if asked := os.environ.get("TOY_ASKED"):
        with Path(asked).open("a", encoding="utf-8") as file:
            file.write(f"{call.messages[0].content}\n")
    if down == "all" or (down == "sevens" and "7'" in call.messages[0].content):
        raise ModelError("server", "503: the toy provider is down")
    return from_schema(call)


STAGE = Stage(
    name="curation",
    reads=("pairings",),
    prepare=prepare,
    load_items=briefs,
    work=work,
    worked=("notes",),
    finish=finish,
    finished=("scenes",),
    drafts=(Table("notes", Note, ("pairing_id",), "one row per item"),),
    prompts=(ToyPrompt(),),  # type: ignore[arg-type]
    roles=lambda settings: {"distiller": [settings.voting.arbiter]},
)
