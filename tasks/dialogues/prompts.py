"""Writing a dialogue and analysing it: inputs, and the replies they are checked against.

`annotate` and `epilogue` share their system message and the dialogue, so that a local model reads
those only once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

from tasks.foundation.demo.elements import MOST_STANCES, WORKFLOW_STEPS, Sentiment, StanceValue, StrategyValue
from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.tables.types import Score10
from tasks.foundation.texts.replies import Label, Limit, PartsReply, ReplyModel, Summary, Word, asked


class WrittenTurn(ReplyModel):
    """An utterance as it came, also without words or far too long: it is asked for again alone."""

    speaker: Literal[1, 2] = asked("the participant who speaks", "说话的参与者")
    text: Annotated[str, Limit("utterance", held=False)] = asked("what is said", "说出的话")


TURNS: Any = asked("the utterances in order", "依次的发言")


class WrittenDialogue(ReplyModel):
    """What `written_dialogue` makes, with its own bounds on the number of turns."""

    turns: list[WrittenTurn] = TURNS


class WrittenUtterance(ReplyModel):
    """One utterance of a dialogue, written again."""

    text: Annotated[str, Field(min_length=1), Limit("utterance", held=False)] = asked("what is said", "说出的话")


class UtteranceLabels(ReplyModel):
    intent: Label = asked("what the speaker wants to bring about with it", "说话人想借这番话达到什么")
    sentiment: Sentiment = asked("the tone of what is said", "话语的情感倾向")
    emotion: Word = asked("one of the emotions, or another single word", "情绪之一，或另一个词")
    stance: list[StanceValue] = asked("positions taken; may be empty", "所持的立场，可为空", max_length=MOST_STANCES)
    strategy: StrategyValue = asked("how it is said, and to what effect", "如何去说，起什么作用")


class Epilogue(ReplyModel):
    workflow: list[Label] = asked(
        "steps of how information passed between the two",
        "信息在两人之间传递的步骤",
        min_length=WORKFLOW_STEPS[0],
        max_length=WORKFLOW_STEPS[1],
    )
    summary1: Summary = asked("the talk from the side of participant 1", "从参与者1的角度概括谈话")
    summary2: Summary = asked("the talk from the side of participant 2", "从参与者2的角度概括谈话")
    reason: Summary = asked("how far each came, and why", "双方各达成到什么程度，为什么")
    goal_completion: Score10 = asked("how far both reached their goals, 10 fully", "双方目标的完成度，10 为完全达成")


@cache
def make_dialogue_reply(min_turns: int, max_turns: int) -> type[BaseModel]:
    """A dialogue of so many turns."""
    turns: Any = Annotated[list[WrittenTurn], Field(min_length=min_turns, max_length=max_turns)]
    return create_model("WrittenDialogue", __base__=WrittenDialogue, turns=(turns, TURNS))


@cache
def make_labels_reply(turns: tuple[int, ...]) -> type[PartsReply]:
    """Labels for each of `turns`, by name: none can be repeated or swapped."""
    fields: dict[str, Any] = {
        name_turn_field(turn): (UtteranceLabels, asked(f"labels of utterance {turn}", f"第{turn}次发言的标签"))
        for turn in turns
    }
    return create_model("LabelsOfTurns", __base__=PartsReply, **fields)


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


class SpeakInputs(Inputs):
    """`partner_background`: empty where the two do not know each other well enough."""

    name: str
    background: str
    goal: str
    partner: str
    partner_background: str
    relationship: str
    familiarity: str
    talkway: str
    setting: list[str]
    dialogue: str
    turn: int
    max_turns: int
    target_turns: int | None
    may_end: bool


class AnalysisInputs(Inputs):
    sentiments: list[str]
    emotions: list[str]
    goal1: str
    goal2: str
    dialogue: str


class AnnotateInputs(AnalysisInputs):
    """`turns`: see `name_turns`."""

    turns: str


class RewriteInputs(Inputs):
    """`text`: the utterance of `turn`, which is far too long; empty where it has no words."""

    participant1: str
    participant2: str
    goal1: str
    goal2: str
    dialogue: str
    turn: int
    name: str
    text: str


WRITE: Prompt[WriteInputs, BaseModel] = Prompt(
    "dialogues/write", inputs=WriteInputs, reply=lambda: make_dialogue_reply(2, 60)
)
REWRITE = Prompt("dialogues/rewrite", inputs=RewriteInputs, reply=WrittenUtterance)
SPEAK = Prompt("dialogues/speak", inputs=SpeakInputs, reply=WrittenUtterance)
ANNOTATE: Prompt[AnnotateInputs, PartsReply] = Prompt(
    "dialogues/annotate", inputs=AnnotateInputs, reply=lambda: make_labels_reply((1, 2))
)
EPILOGUE = Prompt("dialogues/epilogue", inputs=AnalysisInputs, reply=Epilogue)


def name_turns(turns: Sequence[int], language: str) -> str:
    """'utterances 1 to 6', 'utterances 3, 5', 'utterance 7'; '第1至6次发言' …"""
    in_a_row = len(turns) > 2 and turns[-1] - turns[0] == len(turns) - 1
    if language == "zh":
        named = f"{turns[0]}至{turns[-1]}" if in_a_row else "、".join(map(str, turns))
        return f"第{named}次发言"
    named = f"{turns[0]} to {turns[-1]}" if in_a_row else ", ".join(map(str, turns))
    return f"utterance{'s' if len(turns) > 1 else ''} {named}"


def describe_familiarity(familiarity: int, language: str) -> str:
    """'4 of 10: have met a few times'; between two steps, both are named."""
    labels = sorted(taxonomy("familiarity").labels, key=lambda label: int(label.name))
    below = [label for label in labels if int(label.name) <= familiarity][-1:]
    above = [label for label in labels if int(label.name) >= familiarity][:1]
    words = list(dict.fromkeys(label.defined(language) for label in (*below, *above)))
    return f"{familiarity}/10（{' – '.join(words)}）" if language == "zh" else f"{familiarity}/10 ({' – '.join(words)})"
