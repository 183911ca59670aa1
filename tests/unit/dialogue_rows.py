"""Small rows from characters to verdicts, and a context and asker that need no run, for stage tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tasks.foundation.errors import ModelError
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.run.context import select_rows
from tasks.foundation.settings import load_settings
from tasks.foundation.stage import Rows, Stage
from tasks.foundation.tables import TABLES, Row, Table
from tasks.foundation.tables.dialogues import Dialogue, Stance, Strategy, Utterance
from tasks.foundation.tables.personas import BigFive, Character
from tasks.foundation.tables.scenes import Conflict, Pairing, Scene
from tasks.foundation.texts.encoder import Encoder
from tests.fakes.asker import FakeAsker

FAMILIES = {"scripted-a": "a", "scripted-b": "b", "scripted-c": "c", "twin-of-a": "a", "twin-of-b": "b"}


def model(alias: str) -> ModelSpec:
    return ModelSpec(alias=alias, provider="scripted", name="unused:unused", family=FAMILIES[alias])


def character(number: int, language: str = "en", **changes: Any) -> Character:
    plain: dict[str, Any] = {
        "character_id": f"character_{language}_{number}",
        "language": language,
        "persona_id": None,
        "inspired_by": "notes.txt:1",
        "name": (name := changes.get("name", f"Ada {number}" if language == "en" else f"王芳{number}")),
        "given_name": name,
        "gender": "F",
        "age": 34,
        "age_band": "Adulthood",
        "big_five": BigFive(
            openness="High", conscientiousness="Low", extraversion="High", agreeableness="Low", neuroticism="High"
        ),
        "moral_values": ["care"],
        "social_skill": "tact",
        "personal_values": ["security"],
        "decision_style": "rational",
        "background": "Grew up by a harbour.",
        "hobby": "rowing",
        "education": "vocational school",
        "occupation": "baker",
        "culture": "coastal",
        "relationship": "a sister",
        "speaking_style": "short sentences",
    }
    return Character(**{**plain, **changes})


def scene(number: int, language: str = "en", goal_type: str = "advice") -> Scene:
    return Scene(
        scene_id=f"scene_{language}_{number}",
        seed_id=f"seed_{language}_{number}",
        language=language,  # type: ignore[arg-type]
        goal1="find out whether the oven can be mended",
        goal2="sell a new oven",
        goal_type=goal_type,
        time="early morning",
        location="a bakery",
        topic="a broken oven",
        atmosphere="hurried",
        domain="work",
    )


def pairing(number: int, language: str = "en") -> Pairing:
    return Pairing(
        pairing_id=f"pairing_{language}_{number}",
        scene_id=f"scene_{language}_{number}",
        character1_id=f"character_{language}_{2 * number}",
        character2_id=f"character_{language}_{2 * number + 1}",
        language=language,  # type: ignore[arg-type]
    )


def conflict(number: int, language: str = "en", rank: int | None = 0) -> Conflict:
    return Conflict(
        pairing_id=f"pairing_{language}_{number}",
        reasoning="fits",
        identity_ok=True,
        goal_ok=True,
        partner_ok=True,
        objection=None,
        first_verdict=True,
        final_reasoning="fits",
        final_identity_ok=True,
        final_goal_ok=True,
        final_partner_ok=True,
        final_objection=None,
        reflection="still fits",
        is_coherent=True,
        relationship="customer and dealer",
        familiarity=4,
        talkway="phone call",
        selected=rank is not None,
        selection_rank=rank,
    )


def dialogue(number: int, language: str = "en", turns: int = 4) -> tuple[Dialogue, list[Utterance]]:
    people = [character(2 * number, language), character(2 * number + 1, language)]
    row = Dialogue(
        dialogue_id=f"dialogue_{language}_{number}",
        pairing_id=f"pairing_{language}_{number}",
        language=language,  # type: ignore[arg-type]
        speaker1=people[0].name,
        speaker2=people[1].name,
        turn_count=turns,
        target_turns=None,
        workflow=["one asks", "the other answers"],
        summary1="She asks about the oven.",
        summary2="She offers an oven.",
        goal_completion=6,
        goal_completion_reason="only one got what she wanted",
        stop_reason="ended",
        writer="scripted-a",
        guards=[],
    )
    return row, [utterance(row.dialogue_id, turn) for turn in range(1, turns + 1)]


def utterance(dialogue_id: str, turn: int, emotion: str = "Fear") -> Utterance:
    return Utterance(
        dialogue_id=dialogue_id,
        turn_index=turn,
        speaker=1 if turn % 2 else 2,
        text=f"This is what is said in turn {turn}.",
        intent="ask",
        sentiment="Neutral",
        emotion=emotion,
        stance=[Stance(aspect="the oven", viewpoint="too old")],
        strategy=Strategy(description="asks plainly", type="steers"),
    )


def world(dialogues: Sequence[tuple[Dialogue, list[Utterance]]]) -> dict[str, list[Row]]:
    """The tables behind `dialogues` (numbered as `dialogue` numbers them)."""
    tables: dict[str, list[Row]] = {name: [] for name in ("dialogues", "utterances", "pairings")}
    tables |= {name: [] for name in ("conflicts", "scenes", "characters")}
    for row, utterances in dialogues:
        language, number = row.language, int(row.dialogue_id.rsplit("_", 1)[1])
        tables["dialogues"].append(row)
        tables["utterances"] += utterances
        tables["pairings"].append(pairing(number, language))
        tables["conflicts"].append(conflict(number, language, rank=number))
        tables["scenes"].append(scene(number, language))
        tables["characters"] += [character(2 * number, language), character(2 * number + 1, language)]
    return tables


class FakeContext:
    """A `StageContext` over rows in memory; what a step makes is added with `keep`."""

    def __init__(self, tables: Mapping[str, Sequence[Row]], *overrides: str, drafts: Sequence[Table] = ()) -> None:
        self.settings = load_settings("test", overrides)
        self._inputs = tables
        self._made: dict[str, list[Row]] = {}
        self._drafts = {draft.name: draft for draft in drafts}
        self.member: str | None = None

    def model(self, alias: str) -> ModelSpec:
        return model(alias)

    def read(self, table: str, where: pl.Expr | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        return select_rows(self._frame(table, self._inputs.get(table, ())), where, columns)

    def made(self, table: str, where: pl.Expr | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        return select_rows(self._frame(table, self._made.get(table, ())), where, columns)

    def encoder(self) -> Encoder:
        raise AssertionError("these stages encode nothing")

    def keep(self, rows: Rows) -> None:
        for table, more in rows.items():
            self._made.setdefault(table, []).extend(more)

    def _frame(self, name: str, rows: Sequence[Row]) -> pl.DataFrame:
        table = self._drafts.get(name) or TABLES[name]
        in_key_order = sorted(rows, key=lambda row: [getattr(row, column) for column in table.key])
        frame = pl.from_arrow(table.arrow(in_key_order))
        assert isinstance(frame, pl.DataFrame)
        return frame


def prepared(stage: Stage, context: FakeContext) -> list[str]:
    """Runs `prepare`, keeps its rows, gives the items."""
    made = stage.prepare(context)
    context.keep(made.rows)
    return list(made.items)


async def worked(stage: Stage, context: FakeContext, ask: FakeAsker, items: Sequence[str]) -> dict[str, str]:
    """Works all items, keeps their rows; the kind of failure of those that failed, by item."""
    assert stage.load_items is not None
    assert stage.work is not None
    loaded = stage.load_items(context, items)
    failed = {}
    for item in items:
        try:
            context.keep(await stage.work(context, loaded[item], ask))
        except ModelError as error:
            failed[item] = error.kind
    return failed
