"""A reply as a row of the cache: what is written of it, and what a look-up reads again."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from tasks.foundation.llm.request import MOST_TOKENS, RawReply, Usage

COLUMNS = (
    "key",
    "request",
    "reply",
    "finish_reason",
    "usage",
    "model_reported",
    "seed_sent",
    "latency_seconds",
    "run_id",
    "request_id",
    "stage",
    "alias",
    "created_at",
    "batched",
)

FOUND = (
    *("reply", "finish_reason", "usage", "model_reported", "seed_sent", "latency_seconds"),
    *("run_id", "request_id", "created_at"),
)
"""The columns that a look-up reads."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One completed physical call. `request` is its JSON; `run_id` and `request_id` say who paid for it, `batched` at
    which price."""

    key: str
    request: str
    reply: RawReply
    run_id: str
    request_id: str
    stage: str
    alias: str
    created_at: datetime
    batched: bool = False


@dataclass(frozen=True, slots=True)
class CachedReply:
    """What a look-up finds: the reply as it came, who paid for it and when (UTC)."""

    reply: RawReply
    run_id: str
    request_id: str
    created_at: datetime


def row_of(entry: Entry) -> tuple[Any, ...]:
    """The entry as `COLUMNS` have it. ValueError for usage that could not be read again."""
    reply, usage = entry.reply, entry.reply.usage
    return (
        entry.key,
        entry.request,
        reply.text,
        reply.finish_reason,
        _usage_text(usage),
        reply.model_reported,
        reply.seed_sent,
        reply.latency_seconds,
        entry.run_id,
        entry.request_id,
        entry.stage,
        entry.alias,
        text_of(entry.created_at),
        int(entry.batched),
    )


def cached(row: tuple[Any, ...]) -> CachedReply:
    """The reply of a row of `FOUND`. ValueError or TypeError for a row that is none of ours."""
    text, finish_reason, usage, model_reported, seed_sent, latency, run_id, request_id, created_at = row
    reply = RawReply(text, usage_in(usage), finish_reason, model_reported, seed_sent, latency)
    return CachedReply(reply, run_id, request_id, datetime.fromisoformat(created_at))


def _usage_text(usage: Usage) -> str:
    """The usage as JSON. Raises ValueError for one that could not be read again."""
    text = json.dumps(astuple(usage))
    usage_in(text)
    return text


def usage_in(text: str) -> Usage:
    """The usage that a row keeps as JSON. Raises ValueError for anything else."""
    counts = json.loads(text)
    if not isinstance(counts, list) or len(counts) != len(fields(Usage)) or not all(map(_is_count, counts)):
        raise ValueError(f"expected the tokens of a call, found {text[:200]!r}")
    return Usage(*counts)


def _is_count(value: Any) -> bool:
    return value is None or (type(value) is int and 0 <= value <= MOST_TOKENS)


def text_of(moment: datetime) -> str:
    """UTC in one fixed width, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
