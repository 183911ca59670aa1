"""One request: what was sent, exactly; what came back, exactly, and each time it was asked again; and what it took.

The last prompt and reply are in `replies`, with the build. What was sent and answered before a re-ask, and the
parameters that went along, only the reply cache knows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.foundation.errors import StoreError
from tasks.foundation.llm.cache import CachedReply
from tasks.foundation.llm.reply import said_in
from tasks.foundation.llm.retrace import retrace
from tasks.foundation.tables import TABLES
from tasks.report.questions import Record
from tasks.viewer.reading import NotThere, Reading
from tasks.viewer.rows import find_asked_rows
from tasks.viewer.texts import parse


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call that was answered. `reply` is the text as it came; `said` the same without the model's thoughts, where
    it has any in its text. `parameters` are what went along; `schema` what the reply was to be like."""

    messages: tuple[Message, ...]
    reply: str
    said: str | None
    finish_reason: str
    usage: Mapping[str, int | None]
    parameters: Mapping[str, Any]
    schema: Any
    model_reported: str | None
    latency_seconds: float
    created_at: str
    paid_by: str
    """The stage run that paid for it."""
    batched: bool
    key: str


@dataclass(frozen=True, slots=True)
class RequestPage:
    """`calls`: its rows in the ledger, the newest revision first; `messages` and `reply`: the last ones, as the build
    has them (None: it has none); `attempts`: all of them, first to last, as the cache has them; `lacking` says why
    there are none. `rows`: those it was made for."""

    request_id: str
    calls: tuple[Record, ...]
    messages: tuple[Message, ...] | None
    reply: str | None
    attempts: tuple[Attempt, ...]
    lacking: str | None
    rows: tuple[tuple[str, Record], ...]


def read_request(reading: Reading, request_id: str) -> RequestPage:
    """A request by its id, or by the key (64 hex digits) of one of its calls in the reply cache. NotThere for one that
    the build did not make."""
    if re.fullmatch("[0-9a-f]{64}", request_id):
        kept = reading.replies.get(request_id)
        if kept is None:
            raise NotThere(f"the reply cache has no call with the key {request_id}")
        request_id = kept.request_id
    columns = ", ".join(TABLES["llm_calls"].columns)
    calls = reading.rows(
        f"select {columns} from llm_calls where request_id = ? order by revision desc, row_key", [request_id]
    )
    if not calls:
        raise NotThere(
            f"llm_calls of build {reading.build!r} has no request {request_id[:80]!r}. It may be of another build; "
            "an id is call_ and 16 hex digits"
        )
    kept_row = reading.one("select prompt, reply from replies where request_id = ? limit 1", [request_id])
    attempts, lacking = _attempts(reading, calls)
    return RequestPage(
        request_id=request_id,
        calls=tuple(calls),
        messages=_messages(parse(kept_row["prompt"])) if kept_row else None,
        reply=kept_row["reply"] if kept_row else None,
        attempts=tuple(attempts),
        lacking=lacking,
        rows=tuple(find_asked_rows(reading, calls[0])),
    )


def _attempts(reading: Reading, calls: list[Record]) -> tuple[list[Attempt], str | None]:
    """The calls as the cache has them; else why there are none."""
    if not reading.replies.is_there:
        return [], (
            f"The reply cache ({reading.replies.path}) is not there: it was removed, or this build was made "
            "elsewhere. So only the last prompt and reply are known, not the parameters nor what was asked before."
        )
    try:
        found = next((chain for call in calls if (chain := retrace(reading.replies, call))), [])
    except StoreError as error:
        return [], str(error)
    if found:
        return [_attempt(one) for one in found], None
    if all(call["finish_reason"] is None for call in calls):
        return [], "No provider has answered it, so there is no reply to keep."
    return [], (
        "The reply cache does not have its replies: they were pruned, or this build was made elsewhere. So only the "
        "last prompt and reply are known, not the parameters nor what was asked before."
    )


def _attempt(kept: CachedReply) -> Attempt:
    request = json.loads(kept.request)
    call, to = request["call"], request["to"]
    said = said_in(kept.reply.text)
    usage = kept.reply.usage
    return Attempt(
        messages=_messages(call["messages"]) or (),
        reply=kept.reply.text,
        said=said if said.strip() != kept.reply.text.strip() else None,
        finish_reason=kept.reply.finish_reason,
        usage={
            "prompt": usage.prompt_tokens,
            "of them cached": usage.cached_tokens,
            "completion": usage.completion_tokens,
            "of them reasoning": usage.reasoning_tokens,
        },
        parameters={
            **{name: value for name, value in to.items() if name not in ("schema", "model")},
            **{f"model.{name}": value for name, value in _of_model(to.get("model")).items()},
            **{name: value for name, value in call.items() if name != "messages"},
        },
        schema=to.get("schema"),
        model_reported=kept.reply.model_reported,
        latency_seconds=kept.reply.latency_seconds,
        created_at=kept.created_at.isoformat(),
        paid_by=kept.run_id,
        batched=kept.batched,
        key=kept.key,
    )


def _of_model(model: Any) -> Mapping[str, Any]:
    return model if isinstance(model, Mapping) else {"name": model}


def _messages(found: Any) -> tuple[Message, ...] | None:
    if not isinstance(found, list):
        return None
    plain = (message for message in found if isinstance(message, Mapping))
    return tuple(Message(str(message.get("role", "message")), str(message.get("content", ""))) for message in plain)
