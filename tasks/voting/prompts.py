"""The review and the vote: inputs, and reply models made for the labels in question.

Both prompts share their system message and the dialogue, so that a local model reads those only once.
In a review every alternative of the schema joins certain elements with their own value type: an edit
always has the type of the label it changes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, ClassVar, Literal, Union

from pydantic import BaseModel, Discriminator, Field, Tag, TypeAdapter, create_model

from tasks.foundation.demo.elements import (
    CATALOGUE,
    NUMBERED,
    ElementKind,
    find_kind,
    make_value_type,
    path_of,
    show_value,
)
from tasks.foundation.demo.records import Record, write_transcript
from tasks.foundation.ids import canonical_json
from tasks.foundation.llm.prompts import Inputs, Prompt
from tasks.foundation.settings.taxonomies import taxonomy
from tasks.foundation.texts.replies import PartsReply, Remark, ReplyModel, asked
from tasks.voting.ballots import REJECT, Ballot

MOST_CHANGES = 12
"""No review lists more changes; a model that would change more names the gravest. Unlisted labels stay."""

CANDIDATE: Any = asked(
    "the number of the candidate that fits best; null: undecided", "最合适的候选编号；null 为无法判断"
)
ELEMENT: Any = asked("the label in question", "所指的标签")
ACTION: Any = asked("edit: put the label right; reject: remove it", "edit 为改正，reject 为删去")
VALUE: Any = asked("what the label should be; only of an edit", "应有的标签，仅 edit 需要")
REASON: Any = asked("why", "理由")
CHANGES: Any = asked("the labels that are wrong, the gravest first", "有误的标签，最严重的在前")


class ReviewReply(PartsReply):
    """The labels an annotator would change; `review_reply` gives `changes` its type."""

    listed: ClassVar[str] = "changes"

    changes: list[Any] = CHANGES


class Choice(ReplyModel):
    """One vote; `vote_reply` bounds `candidate` by the number of candidates. Null: abstains."""

    reason: Remark = REASON
    candidate: int | None = CANDIDATE


class ReviewInputs(Inputs):
    age_bands: list[str]
    familiarity_scale: list[str]
    talkways: list[str]
    sentiments: list[str]
    emotions: list[str]
    dialogue: str
    labels: list[str]
    most_changes: int


class VoteInputs(Inputs):
    age_bands: list[str]
    familiarity_scale: list[str]
    talkways: list[str]
    sentiments: list[str]
    emotions: list[str]
    dialogue: str
    questions: list[str]


@cache
def make_review_reply(paths: tuple[str, ...], most: int) -> type[BaseModel]:
    """At most `most` changes to any of `paths`: an edit with a value of the element's type, or a rejection."""
    by_type: dict[str, tuple[ElementKind, list[str]]] = {}
    for path in paths:
        kind = find_kind(path)
        by_type.setdefault(_type_name(kind), (kind, []))[1].append(path)
    options: list[Any] = [
        Annotated[_make_edit(kind, group), Tag(str(place))] for place, (kind, group) in enumerate(by_type.values())
    ]
    options.append(Annotated[_make_rejection(paths), Tag(REJECT)])
    place_of = {path: str(place) for place, (_, group) in enumerate(by_type.values()) for path in group}

    def option_of(change: Any) -> str | None:
        plain = change.model_dump() if isinstance(change, BaseModel) else change if isinstance(change, dict) else {}
        return REJECT if plain.get("action") == REJECT else place_of.get(str(plain.get("element")))

    union: Any = Union[tuple(options)]  # noqa: UP007
    either = Annotated[union, Discriminator(option_of), Field(json_schema_extra=_as_any_of)]
    changes: Any = Annotated[GenericAlias(list, (either,)), Field(max_length=most)]
    return create_model("ReviewReply", __base__=ReviewReply, changes=(changes, CHANGES))


@cache
def _type_name(kind: ElementKind) -> str:
    return canonical_json(TypeAdapter(make_value_type(kind)).json_schema())


def _make_edit(kind: ElementKind, paths: Sequence[str]) -> type[BaseModel]:
    fields: dict[str, Any] = {
        "element": (Literal[tuple(paths)], ELEMENT),
        "action": (Literal["edit"], ACTION),
        "value": (
            make_value_type(kind),
            VALUE,
        ),
        "reason": (Remark, REASON),
    }
    return create_model("Edit", __base__=ReplyModel, **fields)


def _make_rejection(paths: Sequence[str]) -> type[BaseModel]:
    fields: dict[str, Any] = {
        "element": (Literal[tuple(paths)], ELEMENT),
        "action": (Literal["reject"], ACTION),
        "reason": (Remark, REASON),
    }
    return create_model("Rejection", __base__=ReplyModel, **fields)


def _as_any_of(schema: dict[str, Any]) -> None:
    """Vendors know `anyOf`; pydantic writes `oneOf` for a tagged union."""
    schema["anyOf"] = schema.pop("oneOf")


@cache
def make_vote_reply(candidates: tuple[int, ...]) -> type[PartsReply]:
    """One choice a question; `candidates` says how many each question has."""
    fields: dict[str, Any] = {}
    for number, count in enumerate(candidates, start=1):
        index: Any = Annotated[int, Field(ge=0, le=count - 1)]
        fields[name_question_field(number)] = (
            create_model("Choice", __base__=Choice, candidate=(index | None, CANDIDATE)),
            asked(f"the vote on question {number}", f"对问题{number}的投票"),
        )
    return create_model("VoteReply", __base__=PartsReply, **fields)


def name_question_field(number: int) -> str:
    return f"question_{number}"


EVERY_PATH = tuple(path_of(kind, 1 if kind.group in NUMBERED else None) for kind in CATALOGUE if kind.reviewed)
"""One label of each kind that is reviewed."""

REVIEW: Prompt[ReviewInputs, BaseModel] = Prompt(
    "voting/review", inputs=ReviewInputs, reply=lambda: make_review_reply(EVERY_PATH, MOST_CHANGES)
)
VOTE: Prompt[VoteInputs, PartsReply] = Prompt("voting/vote", inputs=VoteInputs, reply=lambda: make_vote_reply((2, 3)))


def limit_changes(labels: int, max_tokens: int, remark_words: int) -> int:
    """How many changes a review of so many labels may list."""
    return min(labels, MOST_CHANGES, max(1, max_tokens // _count_tokens(76, remark_words)))


def limit_votes(max_tokens: int, remark_words: int) -> int:
    """How many labels one request may put to the vote."""
    return max(1, max_tokens // _count_tokens(26, remark_words))


def _count_tokens(bare: int, remark_words: int) -> int:
    """Room in `voting.max_tokens` for one change or vote with its reason: what a request asks for must fit its budget.
    Chinese takes two tokens for what is a word in English."""
    return bare + 2 * remark_words


def make_review_inputs(record: Record, labels: dict[str, Any], most: int) -> ReviewInputs:
    """A dialogue with some of its labels. An utterance's text is a label too, read in the dialogue itself."""
    shown = {path: show_value(find_kind(path).name, value, record.dialogue.language) for path, value in labels.items()}
    lines = [f"{path} = {canonical_json(value)}" for path, value in shown.items() if find_kind(path).name != "text"]
    return ReviewInputs(**_write_definitions(record), labels=lines, most_changes=most)


def make_vote_inputs(record: Record, ballots: Sequence[Ballot]) -> VoteInputs:
    """A dialogue with the disputed labels and their candidates; nothing says who proposed what."""
    questions = [_write_question(number, ballot, record) for number, ballot in enumerate(ballots, start=1)]
    return VoteInputs(**_write_definitions(record), questions=questions)


def _write_question(number: int, ballot: Ballot, record: Record) -> str:
    language, name = record.dialogue.language, find_kind(ballot.path).name
    rejection = "（删去该标签）" if language == "zh" else "(remove the label)"
    shown = [
        rejection if one == REJECT else canonical_json(show_value(name, json.loads(one), language))
        for one in ballot.candidates
    ]
    lines = [f"  {index}: {candidate}" for index, candidate in enumerate(shown)]
    return "\n".join([f"{name_question_field(number)}: {ballot.path}", *lines])


def _write_definitions(record: Record) -> dict[str, Any]:
    language = record.dialogue.language
    turns = [(turn.speaker, turn.text) for turn in record.utterances]
    return {
        "age_bands": taxonomy("age_band").describe(language),
        "familiarity_scale": taxonomy("familiarity").describe(language),
        "talkways": taxonomy("talkway").describe(language),
        "sentiments": taxonomy("sentiment").describe(language),
        "emotions": taxonomy("utterance_emotion").describe(language),
        "dialogue": write_transcript(record.names, turns, language, numbered=True),
    }
