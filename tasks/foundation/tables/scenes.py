"""Rows of the scenes stage (seed dialogues, distilled goals and scenes) and of the conflicts stage."""

from __future__ import annotations

from pydantic import Field

from tasks.foundation.tables.types import Int32, Int64, Language, Row, Score10, Table


class SeedTurn(Row):
    speaker: str = Field(description="name or label of who speaks")
    text: str = Field(description="what is said; Chinese text re-joined")


class SeedDialogue(Row):
    seed_id: str = Field(description="content id over corpus and turns")
    corpus: str = Field(description="soda, lccc or the configured name of a jsonl corpus")
    split: str = Field(description="split of the source; 'all' where it has none")
    source_index: Int64 = Field(description="0-based row of the source file or split", ge=0)
    language: Language = Field(description="as the row or its source names it, else that of the texts")
    turns: list[SeedTurn] = Field(description="the dialogue")
    turn_count: Int32 = Field(description="number of turns", ge=1)
    narrative: str | None = Field(description="the source's one-paragraph story; null: none")
    licence: str = Field(description="licence of the source")


class Scene(Row):
    scene_id: str = Field(description="content id over the seed")
    seed_id: str = Field(description="the seed dialogue it was distilled from")
    language: Language = Field(description="language of the texts")
    goal1: str = Field(description="goal of participant 1, without names from the seed")
    goal2: str = Field(description="goal of participant 2, without names from the seed")
    goal_type: str = Field(description="one of the ten goal types of configs/taxonomies/goal_type.yaml")
    time: str = Field(description="when the conversation takes place")
    location: str = Field(description="where, and in what surroundings")
    topic: str = Field(description="what it is about")
    atmosphere: str = Field(description="mood of the scene")
    domain: str = Field(description="area of life")


class Pairing(Row):
    pairing_id: str = Field(description="content id over scene and both characters")
    scene_id: str = Field(description="the scene")
    character1_id: str = Field(description="participant 1")
    character2_id: str = Field(description="participant 2")
    language: Language = Field(description="language of scene and characters")


class Conflict(Row):
    pairing_id: str = Field(description="the pairing that was assessed")
    reasoning: str | None = Field(description="why each check holds or not, a line each; null: reply unreadable")
    identity_ok: bool | None = Field(description="no contradiction in identity; null: reply unreadable")
    goal_ok: bool | None = Field(description="goals fit the personas; null: reply unreadable")
    partner_ok: bool | None = Field(description="the two could have this talk; null: reply unreadable")
    objection: str | None = Field(
        description="why it is not coherent although every check holds; null: nothing of the kind, or reply unreadable"
    )
    first_verdict: bool | None = Field(
        description="verdict before reflection: every check holds, and no objection; null: reply unreadable"
    )
    reflection: str | None = Field(description="the assessor's second thoughts; null: reply unreadable")
    final_reasoning: str | None = Field(description="as reasoning, after reflection; null: reply unreadable")
    final_identity_ok: bool | None = Field(description="as identity_ok, after reflection; null: reply unreadable")
    final_goal_ok: bool | None = Field(description="as goal_ok, after reflection; null: reply unreadable")
    final_partner_ok: bool | None = Field(description="as partner_ok, after reflection; null: reply unreadable")
    final_objection: str | None = Field(description="as objection, after reflection; null: likewise")
    is_coherent: bool | None = Field(description="verdict after reflection, from its checks; null: reply unreadable")
    relationship: str | None = Field(description="relation of the two; null: not coherent or unreadable")
    familiarity: Score10 | None = Field(description="0 strangers … 10 close for many years; null: likewise")
    talkway: str | None = Field(description="mode of the talk; null: not coherent or unreadable")
    selected: bool = Field(description="goes on to dialogue synthesis")
    selection_rank: Int32 | None = Field(description="0-based order of selection; null: not selected")


TABLES = (
    Table("seed_dialogues", SeedDialogue, ("seed_id",), "one row per usable seed dialogue"),
    Table("scenes", Scene, ("scene_id",), "one row per distilled pair of goals and their scene"),
    Table("pairings", Pairing, ("pairing_id",), "one row per scene with two characters"),
    Table("conflicts", Conflict, ("pairing_id",), "one row per assessed pairing"),
)
