"""The least and the most that a whole dialogue holds, with everything that was decided before it."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import create_model

from tasks.foundation.demo.elements import Kind, kind_of, plain_data, reviewed_labels, value_type
from tasks.foundation.demo.records import Record
from tasks.foundation.planning.estimate import View
from tasks.foundation.planning.extremes import compact, largest


def records(view: View, language: str) -> tuple[Record, Record] | None:
    """The shortest and the longest record of a language; None where a table it takes is not known."""
    tables = ("dialogues", "utterances", "conflicts", "scenes", "characters")
    kinds = [view.kind(table, language) for table in tables]
    if any(kind is None for kind in kinds):
        return None
    return _record([kind.short for kind in kinds if kind]), _record([kind.long for kind in kinds if kind])


def _record(rows: list[Any]) -> Record:
    dialogue, utterance, conflict, scene, character = rows
    turns = (
        utterance.model_copy(update={"turn_index": turn, "speaker": 2 - turn % 2})
        for turn in range(1, dialogue.turn_count + 1)
    )
    return Record(dialogue, tuple(turns), conflict, scene, character, character)


def longest_labels(record: Record) -> dict[str, Any]:
    """The reviewed labels by path, each as it is or as the longest value that a reviewer may put in its place."""
    language = record.dialogue.language
    return {
        path: max(value, _longest_value(kind_of(path), language), key=lambda one: len(compact(one)))
        for path, value in reviewed_labels(record).items()
    }


@cache
def _longest_value(kind: Kind, language: str) -> Any:
    fields: dict[str, Any] = {"value": (value_type(kind), ...)}
    return plain_data(largest(create_model("Edit", **fields), language))["value"]
