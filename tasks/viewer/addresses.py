"""The addresses of the pages. One names a build and what is looked at, so it means the same next year; the null parts
of a key are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from tasks.foundation.tables import TABLES
from tasks.foundation.tables.operations import OVERVIEW
from tasks.foundation.tables.references import table_of_id
from tasks.metrics.catalogue import METRICS

HOME = "/"

CELL_KEY = TABLES["metrics"].key


def _path(*parts: str) -> str:
    return "/" + "/".join(quote(part, safe="") for part in parts)


def _query(values: Mapping[str, Any]) -> str:
    given = {name: str(value) for name, value in values.items() if value not in (None, "")}
    return f"?{urlencode(given)}" if given else ""


def of_build(build: str) -> str:
    return _path("builds", build)


def tables(build: str) -> str:
    return _path("builds", build, "tables")


def table(build: str, name: str, **query: Any) -> str:
    return _path("builds", build, "tables", name) + _query(query)


def row(build: str, name: str, record: Mapping[str, Any]) -> str:
    """The page of a row as a row; `record` has its key."""
    key = (TABLES | OVERVIEW)[name].key
    return _path("builds", build, "tables", name, "row") + _query({column: record[column] for column in key})


def cell(build: str, record: Mapping[str, Any], **query: Any) -> str:
    """What a row of `metrics` rests on."""
    return _path("builds", build, "cell") + _query({**{name: record.get(name) for name in CELL_KEY}, **query})


def listed(build: str, name: str, **query: Any) -> str:
    return _path("builds", build, "lists", name) + _query(query)


def conversation(build: str, conversation_id: str, turn: int | None = None) -> str:
    return _path("builds", build, "conversations", conversation_id) + (f"#turn-{turn}" if turn is not None else "")


def interaction(build: str, interaction_id: str, turn: int | None = None) -> str:
    return _path("builds", build, "interactions", interaction_id) + (f"#turn-{turn}" if turn is not None else "")


def dialogue(build: str, dialogue_id: str, turn: int | None = None) -> str:
    return _path("builds", build, "dialogues", dialogue_id) + (f"#turn-{turn}" if turn is not None else "")


def item(build: str, item_id: str, target: str | None = None, sample: int | None = None) -> str:
    return _path("builds", build, "items", item_id) + _query({"target": target, "sample": sample})


def request(build: str, request_id: str) -> str:
    return _path("builds", build, "requests", request_id)


def of_id(build: str, content_id: str) -> str | None:
    """The page of whatever has this id; None for what is no content id."""
    return _path("builds", build, "id", content_id) if table_of_id(content_id) else None


def best(build: str, name: str, record: Mapping[str, Any]) -> str:
    """The page that shows a row best: among what was said around it, where there is such a page."""
    turn = record.get("turn_index")
    if name == "metrics" and record.get("metric") in METRICS:
        return cell(build, record)
    if name in ("llm_calls", "replies"):
        return request(build, record["request_id"])
    if name in ("awareness_items", "awareness_predictions", "awareness_scores"):
        return item(build, record["item_id"], record.get("target"), record.get("sample"))
    if name in ("conversations", "conversation_turns", "turn_judgements", "final_intent_judgements", "human_ratings"):
        return conversation(build, record["conversation_id"], turn)
    if name in ("interactions", "interaction_turns", "interaction_scores"):
        return interaction(build, record["interaction_id"], turn)
    if name in ("dialogues", "utterances"):
        return dialogue(build, record["dialogue_id"], turn)
    if name in ("reviews", "votes", "verdicts", "vote_repeats", "human_reviews"):
        return dialogue(build, record["dialogue_id"]) + f"#{quote(record['element'])}"
    return row(build, name, record)
