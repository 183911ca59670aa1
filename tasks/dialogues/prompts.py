"""Writing a dialogue and analysing it: inputs, and the replies they are checked against.

`annotate` and `epilogue` share their system message and the dialogue, so that a local model reads
those only once.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

from tasks.foundation.demo.elements import MOST_STANCES, WORKFLOW_STEPS, ReplyModel, StanceValue, StrategyValue
from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.types import Score10


class WrittenTurn(ReplyModel):
    speaker: Literal[1, 2]
    text: str = Field(min_length=1, max_length=400)


class WrittenDialogue(ReplyModel):
    """What `written_dialogue` makes, with its own bounds on the number of turns."""

    turns: list[WrittenTurn]


class UtteranceLabels(ReplyModel):
    intent: str = Field(min_length=1, max_length=120)
    sentiment: Literal["Positive", "Negative", "Neutral"]
    emotion: str = Field(min_length=1, max_length=30)
    stance: list[StanceValue] = Field(max_length=MOST_STANCES)
    strategy: StrategyValue


class Epilogue(ReplyModel):
    workflow: list[Annotated[str, Field(min_length=1, max_length=120)]] = Field(
        min_length=WORKFLOW_STEPS[0], max_length=WORKFLOW_STEPS[1]
    )
    summary1: str = Field(min_length=1, max_length=240)
    summary2: str = Field(min_length=1, max_length=240)
    reason: str = Field(min_length=1, max_length=240)
    goal_completion: Score10


@cache
def make_dialogue_reply(min_turns: int, max_turns: int) -> type[BaseModel]:
    """A dialogue of so many turns."""
    turns: Any = (list[WrittenTurn], Field(min_length=min_turns, max_length=max_turns))
    return create_model("WrittenDialogue", __base__=WrittenDialogue, turns=turns)


@cache
def make_labels_reply(first: int, last: int) -> type[BaseModel]:
    """Labels for each of the turns `first` to `last`, by name: none can be missed, repeated or swapped."""
    fields: dict[str, Any] = {name_turn_field(turn): (UtteranceLabels, ...) for turn in range(first, last + 1)}
    return create_model("LabelsOfTurns", __base__=ReplyModel, **fields)


def name_turn_field(turn: int) -> str:
    return f"turn_{turn}"


class WriteInputs(Inputs):
    participant1: str
    participant2: str
    goal1: str
    goal2: str
    relationship: str
    familiarity: str
    talkway: str
    setting: list[str]
    min_turns: int
    max_turns: int
    target_turns: int | None


class AnalysisInputs(Inputs):
    sentiments: list[str]
    emotions: list[str]
    goal1: str
    goal2: str
    dialogue: str


class AnnotateInputs(AnalysisInputs):
    first: int
    last: int


WRITE: Prompt[WriteInputs, WrittenDialogue] = Prompt("dialogues/write", inputs=WriteInputs)
ANNOTATE: Prompt[AnnotateInputs, ReplyModel] = Prompt("dialogues/annotate", inputs=AnnotateInputs)
EPILOGUE = Prompt("dialogues/epilogue", inputs=AnalysisInputs, reply=Epilogue)


def describe_familiarity(familiarity: int, language: str) -> str:
    """'4 of 10: have met a few times'; between two steps, both are named."""
    labels = sorted(taxonomy("familiarity").labels, key=lambda label: int(label.name))
    below = [label for label in labels if int(label.name) <= familiarity][-1:]
    above = [label for label in labels if int(label.name) >= familiarity][:1]
    words = list(dict.fromkeys(label.zh if language == "zh" else label.definition for label in (*below, *above)))
    return f"{familiarity}/10（{' – '.join(words)}）" if language == "zh" else f"{familiarity}/10 ({' – '.join(words)})"


def describe_talkway(talkway: str, language: str) -> str:
    """The mode of talk as its prompt shows it."""
    return next((x.shown(language) for x in taxonomy("talkway").labels if x.name == talkway), talkway)


def list_labels(taxonomy_name: str, language: str) -> list[str]:
    """'Fear: worry about a threat' …; in Chinese the stored English name with the Chinese one."""
    labels = taxonomy(taxonomy_name).labels
    return [x.shown("zh") if language == "zh" else f"{x.name}: {x.definition}" for x in labels]
