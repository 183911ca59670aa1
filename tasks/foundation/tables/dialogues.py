"""Rows of synthesis, voting and curation: dialogues, their labels, the votes on them, the benchmark."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from tasks.foundation.tables.types import Float64, Int32, Json, Language, Row, Score10, Table

Speaker = Annotated[Int32, Field(ge=1, le=2)]
TurnIndex = Annotated[Int32, Field(ge=1)]
Outcome = Literal["unanimous", "majority", "manual", "rejected"]
AwarenessTask = Literal["goal", "persona", "scene", "utterance"]


class Dialogue(Row):
    dialogue_id: str = Field(description="content id over the pairing")
    pairing_id: str = Field(description="the selected pairing it was written for")
    language: Language = Field(description="language of the dialogue")
    speaker1: str = Field(description="name of participant 1, who speaks the odd turns")
    speaker2: str = Field(description="name of participant 2, who speaks the even turns")
    turn_count: Int32 = Field(description="number of utterances", ge=1)
    target_turns: Int32 | None = Field(description="number that the writer was asked for; null: any within the bounds")
    workflow: list[str] = Field(description="the flow of information, step by step")
    summary1: str = Field(description="the talk from participant 1's side")
    summary2: str = Field(description="the talk from participant 2's side")
    goal_completion: Score10 = Field(description="how far both reached their goals, 10 best")
    goal_completion_reason: str = Field(description="why")
    stop_reason: Literal["ended", "max_turns"] = Field(description="why the dialogue stops where it does")
    writer: str = Field(description="alias of the model that wrote it")
    guards: list[str] = Field(description="guards that fired: mended, or drawn again for; may be empty")


class Stance(Row):
    aspect: str = Field(description="aspect or event concerned")
    viewpoint: str = Field(description="viewpoint expressed")


class Strategy(Row):
    description: str = Field(description="what the speaker does")
    type: str = Field(description="what it does to the course of the talk")


class Utterance(Row):
    dialogue_id: str = Field(description="the dialogue")
    turn_index: TurnIndex = Field(description="1-based turn")
    speaker: Speaker = Field(description="participant 1 or 2")
    text: str = Field(description="what is said")
    intent: str = Field(description="what the speaker wants with it")
    sentiment: Literal["Positive", "Negative", "Neutral"] = Field(description="sentiment")
    emotion: str = Field(description="one of seven emotions, or another word")
    stance: list[Stance] = Field(description="stances taken; may be empty")
    strategy: Strategy = Field(description="dialogue strategy")


class Review(Row):
    dialogue_id: str = Field(description="the dialogue")
    element: str = Field(description="path of the label: goal.goal1, persona.1.hobby, utterance.3.emotion …")
    annotator: str = Field(description="alias of the annotator")
    family: str = Field(description="the annotator's model family")
    action: Literal["keep", "edit", "reject"] | None = Field(
        description="the annotator's answer; null: its reply could not be read"
    )
    proposed: Json | None = Field(description="the value it proposes; null unless edit")
    reason: str | None = Field(description="why; null: none given")


class Vote(Row):
    dialogue_id: str = Field(description="the dialogue")
    element: str = Field(description="path of the label")
    voter: str = Field(description="alias of the panel member")
    family: str = Field(description="the voter's model family")
    candidates: Json = Field(description="the candidates, shuffled as shown")
    presentation: Int32 = Field(description="order of the candidates: 0, a shuffle; 1, that shuffle reversed", ge=0)
    candidate: Int32 | None = Field(description="index chosen, in `candidates`; null: abstained or unreadable")
    reason: str | None = Field(description="why; null: none given")


class Verdict(Row):
    dialogue_id: str = Field(description="the dialogue")
    element: str = Field(description="path of the label")
    outcome: Outcome = Field(description="how it was decided")
    value: Json | None = Field(description="the decided value; null only when rejected; manual: the original")
    pending: bool = Field(description="manual and not yet reviewed by a human")
    changed: bool = Field(description="the value differs from the original")
    votes_for: Int32 = Field(description="votes (or keeps) for the outcome", ge=0)
    votes_cast: Int32 = Field(description="readable votes (or reviews)", ge=0)
    panel: Int32 | None = Field(description="size of the panel that voted; null: no vote was needed")


class HumanReview(Row):
    dialogue_id: str = Field(description="the dialogue")
    element: str = Field(description="path of the label")
    reviewer: str = Field(description="who reviewed")
    action: Literal["keep", "edit", "reject"] = Field(description="the reviewer's answer")
    proposed: Json | None = Field(description="the value proposed; null unless edit")
    value_hash: str = Field(description="hash of the value that was shown: an answer to an old value is void")
    seconds: Float64 = Field(description="time spent, seconds", ge=0)
    created_at: datetime = Field(description="UTC")


class AwarenessItem(Row):
    item_id: str = Field(description="content id over dialogue, task and turn")
    task: AwarenessTask = Field(description="element awareness task")
    language: Language = Field(description="language of the dialogue")
    dialogue_id: str = Field(description="the dialogue")
    goal_type: str | None = Field(
        default=None, description="goal type of the dialogue's scene; null: an import does not say"
    )
    dialogue_text: str = Field(description="the whole dialogue, one 'name: text' line a turn")
    turn_index: TurnIndex | None = Field(
        description="the utterance asked about; null unless utterance, and where an import does not say which"
    )
    utterance_text: str | None = Field(description="its text; null unless utterance")
    gold: Json = Field(description="the verified labels of the task in the item's language; rejected ones are left out")
    instruction: str | None = Field(
        default=None, description="how the published benchmark asks for them; null unless imported from it"
    )
    source: Literal["build", "import"] = Field(description="made by this build, or imported")


class InteractionEpisode(Row):
    episode_id: str = Field(description="content id over the dialogue")
    language: Language = Field(description="language of the episode")
    dialogue_id: str = Field(description="the dialogue whose prelude it replays")
    speaker1: str = Field(description="name of participant 1")
    speaker2: str = Field(description="name of participant 2")
    background1: str = Field(description="what is known of participant 1")
    background2: str = Field(description="what is known of participant 2")
    goal1: str = Field(description="goal of participant 1")
    goal2: str = Field(description="goal of participant 2")
    goal_type: str | None = Field(description="one of the ten goal types; null: an import does not say")
    topic: str = Field(description="topic")
    time: str = Field(description="when")
    location: str = Field(description="where")
    talkway: str = Field(description="mode of the talk")
    relationship: str = Field(description="relation of the two")
    familiarity: Score10 = Field(description="0 strangers … 10 close for many years")
    source: Literal["build", "import"] = Field(description="made by this build, or imported")


TABLES = (
    Table("dialogues", Dialogue, ("dialogue_id",), "one row per synthesised dialogue"),
    Table("utterances", Utterance, ("dialogue_id", "turn_index"), "one row per turn of a dialogue"),
    Table("reviews", Review, ("dialogue_id", "element", "annotator"), "one row per label and annotator"),
    Table("votes", Vote, ("dialogue_id", "element", "voter"), "one row per disputed label and panel member"),
    Table("vote_repeats", Vote, ("dialogue_id", "element", "voter"), "one row per label voted on twice and voter"),
    Table("verdicts", Verdict, ("dialogue_id", "element"), "one row per label"),
    Table("human_reviews", HumanReview, ("dialogue_id", "element", "reviewer"), "one row per label and reviewer"),
    Table("awareness_items", AwarenessItem, ("item_id",), "one row per element awareness item"),
    Table("interaction_episodes", InteractionEpisode, ("episode_id",), "one row per interaction episode"),
)
