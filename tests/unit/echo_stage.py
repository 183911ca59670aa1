"""A small stage for tests of the run: it asks a scripted model for a topic a row and writes scenes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from tasks.foundation.ids import content_id
from tasks.foundation.llm.request import Message
from tasks.foundation.stage import Asker, Finished, Prepared, Rows, Stage, StageContext
from tasks.foundation.store.accounting import Accounting
from tasks.foundation.tables import Table
from tasks.foundation.tables.operations import Reject
from tasks.foundation.tables.personas import Duplicate
from tasks.foundation.tables.scenes import Pairing, Scene
from tasks.foundation.tables.types import Row

KEYS = [f"row{number:02d}" for number in range(10)]


class Topic(BaseModel):
    topic: str = Field(max_length=40)


class Note(Row):
    pairing_id: str
    topic: str


class EchoPrompt:
    """As a Prompt, without a file."""

    path = "echo/topic"
    fingerprint = "echo"
    reply_model = Topic
    limits = frozenset({"goal"})

    def render(self, language: str, inputs: BaseModel, limits: object) -> tuple[Message, ...]:
        return (Message("user", f"{language} {inputs!r}"),)


class Inputs(BaseModel):
    key: str


def prepare(context: StageContext) -> Prepared:
    pairings = [
        Pairing(pairing_id=key, scene_id="s", character1_id="a", character2_id="b", language="en") for key in KEYS
    ]
    reject = Reject(
        stage="curation", row_key="x:1", kind="parse", reason="bad", retryable=False, attempts=0, payload=None
    )
    duplicate = Duplicate(table_name="pairings", row_id="r", duplicate_of="row00", cosine=None, method="exact")
    return Prepared(
        items=KEYS,
        rows={"pairings": pairings, "rejects": [reject], "duplicates": [duplicate]},
        accounting=Accounting(2, 0, {"duplicate": 1}, {"parse": 1}),
    )


def briefs(context: StageContext, keys: Sequence[str]) -> Mapping[str, Any]:
    known = set(context.made("pairings")["pairing_id"])
    return {key: key for key in keys if key in known}


async def work(context: StageContext, brief: Any, ask: Asker) -> Rows:
    reply = await ask(
        EchoPrompt(),  # type: ignore[arg-type]
        Inputs(key=brief),
        language="en",
        alias="scripted-a",
        purpose="distil",
        temperature=0.0,
        max_tokens=100,
    )
    return {"notes": [Note(pairing_id=brief, topic=reply.topic)]}


def finish(context: StageContext) -> Finished:
    notes = context.made("notes").to_dicts()
    kept = [note for note in notes if note["pairing_id"] != "row09"]
    scenes = [
        Scene(
            scene_id=content_id("scene", note["pairing_id"]),
            seed_id=note["pairing_id"],
            language="en",
            goal1="a",
            goal2="b",
            goal_type="advice",
            time="now",
            location="here",
            topic=note["topic"],
            atmosphere="calm",
            domain="home",
        )
        for note in kept
    ]
    dropped = len(notes) - len(kept)
    return Finished({"scenes": scenes}, {"unwanted": dropped} if dropped else {})


STAGE = Stage(
    name="curation",
    reads=(),
    prepare=prepare,
    prepared=("pairings", "duplicates"),
    load_items=briefs,
    work=work,
    worked=("notes",),
    finish=finish,
    finished=("scenes",),
    drafts=(Table("notes", Note, ("pairing_id",), "one row per item"),),
    prompts=(EchoPrompt(),),  # type: ignore[arg-type]
    roles=lambda settings: {"distiller": ["scripted-a"]},
)
