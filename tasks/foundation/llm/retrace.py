"""From a row of the ledger back to the replies of its calls, as the cache keeps them: the first, then each re-ask.

The ledger does not say under which keys the replies are; but its moment is that of the last one, each re-ask is made of
the call before it, and the request's id is a hash over the key of the first. So the calls are undone one by one until
the id is met. Reads only: a cache that is not there is not made, and a run may be writing to it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tasks.foundation.errors import StoreError
from tasks.foundation.ids import canonical_json, content_id
from tasks.foundation.llm.cache import COLUMNS, CachedReply, format_time
from tasks.foundation.llm.request import key_of

MOST_CALLS = 20
"""Calls of one request that are looked for."""

_ALL = f"select {', '.join(COLUMNS)} from replies"


@dataclass(frozen=True, slots=True)
class KeptReplies:
    """The reply cache at a path, to be looked into."""

    path: Path

    @property
    def is_there(self) -> bool:
        return self.path.is_file()

    def get(self, key: str) -> CachedReply | None:
        """The reply of the call with this key, or None. StoreError for a file that cannot be read."""
        return next(iter(self._find("where key = ?", key)), None)

    def stored_at(self, stage: str, moment: datetime) -> list[CachedReply]:
        """The replies of a stage that came at a moment, to the microsecond. StoreError as `get`."""
        return self._find("where stage = ? and created_at = ?", stage, format_time(moment))

    def _find(self, where: str, *values: str) -> list[CachedReply]:
        if not self.is_there:
            return []
        try:
            with closing(sqlite3.connect(f"file:{quote(str(self.path))}?mode=ro", uri=True)) as connection:
                return [CachedReply.from_row(row) for row in connection.execute(f"{_ALL} {where}", values)]
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise StoreError(f"The reply cache {self.path} cannot be read: {error}.") from None


def retrace(replies: KeptReplies, call: Mapping[str, Any]) -> list[CachedReply]:
    """The replies of a row of `llm_calls`, first to last; empty where the cache has not all of them (any more)."""
    for last in replies.stored_at(call["stage"], call["created_at"]):
        if found := _walk_back(replies, call, last, MOST_CALLS):
            return found
    return []


def _walk_back(replies: KeptReplies, call: Mapping[str, Any], last: CachedReply, most: int) -> list[CachedReply]:
    """The replies up to `last`, if they begin with the request's first call."""
    if content_id("call", call["stage"], call["row_key"], call["purpose"], last.key) == call["request_id"]:
        return [last]
    for text in calls_before(last.request) if most else ():
        before = replies.get(key_of(text))
        if before is not None and (found := _walk_back(replies, call, before, most - 1)):
            return [*found, last]
    return []


def calls_before(request: str) -> Iterator[str]:
    """What the call may have been that this one, as canonical JSON, is the re-ask of (see `chain.next_call`): with half
    the tokens; without the complaint at the end of the last message, which may hold several; without the last messages,
    the reply and the complaint. What takes away less comes first, or a call between would be passed over."""
    try:
        whole = json.loads(request)
        messages, to = whole["call"]["messages"], whole["to"]
        yield _with(whole, to={**to, "max_tokens": to["max_tokens"] // 2})
        *earlier, last = messages
        parts = last["content"].split("\n\n")
        for place in range(len(parts) - 1, max(0, len(parts) - MOST_CALLS), -1):
            yield _with(whole, messages=[*earlier, {**last, "content": "\n\n".join(parts[:place])}])
        if len(messages) > 2 and (messages[-2]["role"], messages[-1]["role"]) == ("assistant", "user"):
            yield _with(whole, messages=messages[:-2])
        if len(messages) > 1:
            yield _with(whole, messages=messages[:-1])
    except (ValueError, KeyError, TypeError, IndexError):
        return


def _with(whole: Mapping[str, Any], **changes: Any) -> str:
    call = {**whole["call"], **{name: value for name, value in changes.items() if name == "messages"}}
    return canonical_json({"call": call, "to": changes.get("to", whole["to"])})
