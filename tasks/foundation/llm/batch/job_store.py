"""The batch jobs of this machine and what is in them: one SQLite file (WAL, synchronous=FULL).

`jobs` has a row for each job: `intended` before the provider hears of it, `submitted` once its id is
known, `ended` when everything it answered is in `items`. `items` has a row for each request under way
or answered, under the key of the call; so a key is in one job at most, also with several processes.
Answers stay for a day after their job and until the reply cache has them. No keys of accounts, and no
prompts, are stored.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from tasks.foundation.errors import ModelError, ModelUnavailable, StoreError
from tasks.foundation.llm.batch import Refusal, Result
from tasks.foundation.llm.cache import open_database
from tasks.foundation.llm.failures import ProviderFailure
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.request import RawReply, Usage

KEPT = timedelta(days=1)
"""How long an answer that is in the reply cache stays here too: another process may still wait for it."""

_AT_ONCE = 500

_SCHEMA = """
create table if not exists jobs (
    tag text primary key,
    provider text not null,
    base_url text,
    api_key_env text,
    api_version text,
    model text not null,
    requests integer not null,
    state text not null,
    job_id text,
    outcome text,
    error_kind text,
    error text,
    created_at text not null,
    ended_at text
);
create table if not exists items (
    key text primary key,
    tag text not null references jobs (tag),
    state text not null,
    reply text,
    error_kind text,
    error text
) without rowid;
create index if not exists items_by_tag on items (tag);
"""


Endpoint = tuple[str, str | None, str | None, str | None]
"""Provider, base URL, name of the key's environment variable, API version: who can be asked about a job."""

_JOB_COLUMNS = (
    "tag, provider, base_url, api_key_env, api_version, model, requests, state, created_at, job_id, outcome,"
    " error_kind, error"
)

_KEPT = ("text", "finish_reason", "model_reported", "latency_seconds")
"""Of a reply, beside its usage; the seed sent is the call's."""


@dataclass(frozen=True, slots=True)
class Job:
    """One row of `jobs`."""

    tag: str
    """Our own name of the job, which it carries at the provider, too."""
    provider: str
    base_url: str | None
    api_key_env: str | None
    api_version: str | None
    model: str
    requests: int = 0
    state: Literal["intended", "submitted", "ended"] = "intended"
    created_at: str | None = None
    job_id: str | None = None
    """The provider's name of the job, once it has taken it."""
    outcome: str | None = None
    failure: Refusal | None = None
    """Why the requests that it did not answer have no reply; None: they are sent anew."""

    @property
    def endpoint(self) -> Endpoint:
        return self.provider, self.base_url, self.api_key_env, self.api_version

    @property
    def name(self) -> str:
        """What messages call it: the provider's id, or our tag before there is one."""
        return self.job_id or self.tag

    def spec(self) -> ModelSpec:
        """Enough of the model to ask its endpoint about the job."""
        return ModelSpec(
            alias=self.model,
            provider=self.provider,
            name=self.model,
            family="unknown",
            base_url=self.base_url,
            api_key_env=self.api_key_env,
            api_version=self.api_version,
        )


@dataclass(frozen=True, slots=True)
class Item:
    """Where one request is: in the job `tag`, waiting, answered or failed."""

    tag: str
    outcome: RawReply | Refusal | None

    @property
    def is_waiting(self) -> bool:
        return self.outcome is None

    @property
    def failed(self) -> bool:
        return not self.is_waiting and not isinstance(self.outcome, RawReply)


class JobStore:
    """The jobs at `path`. Usable from any thread; several processes may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        with self._trouble("opened"):
            self._connection = open_database(path, _SCHEMA)

    def claim(self, job: Job, keys: Collection[str]) -> set[str]:
        """Those of `keys` that are in no job and have no answer; they are now in `job`, as intended.

        The job is not stored when there are none.
        """
        with self._transaction() as connection:
            taken = {key for key, item in self._items(connection, keys) if not item.failed}
            mine = set(keys) - taken
            if mine:
                connection.execute(
                    "insert into jobs (tag, provider, base_url, api_key_env, api_version, model, requests, state,"
                    " created_at) values (?, ?, ?, ?, ?, ?, ?, 'intended', ?)",
                    (job.tag, *job.endpoint, job.model, len(mine), _now()),
                )
                connection.executemany(
                    "insert or replace into items (key, tag, state) values (?, ?, 'waiting')",
                    [(key, job.tag) for key in mine],
                )
        return mine

    def mark_submitted(self, tag: str, job_id: str) -> None:
        """The provider has taken the job."""
        with self._transaction() as connection:
            connection.execute(
                "update jobs set state = 'submitted', job_id = ? where tag = ? and state = 'intended'", (job_id, tag)
            )

    def drop(self, tag: str) -> None:
        """The provider has certainly not taken the job: its requests are free again."""
        with self._transaction() as connection:
            connection.execute("delete from items where tag = ? and state = 'waiting'", (tag,))
            connection.execute("delete from jobs where tag = ? and state = 'intended'", (tag,))

    def keep(self, tag: str, results: Iterable[Result]) -> None:
        """Keeps what came back of a job. What is here already stays as it is."""
        rows = [(*_encode_item(result.outcome), result.key, tag) for result in results if result.outcome is not None]
        with self._transaction() as connection:
            connection.executemany(
                "update items set state = ?, reply = ?, error_kind = ?, error = ?"
                " where key = ? and tag = ? and state = 'waiting'",
                rows,
            )

    def end(self, tag: str, outcome: str, failure: Refusal | None = None) -> None:
        """Everything the job gave has landed: what it did not answer is free again."""
        kind, text = _encode_refusal(failure)
        with self._transaction() as connection:
            connection.execute("delete from items where tag = ? and state = 'waiting'", (tag,))
            connection.execute(
                "update jobs set state = 'ended', outcome = ?, error_kind = ?, error = ?, ended_at = ?"
                " where tag = ? and state <> 'ended'",
                (outcome, kind, text, _now(), tag),
            )

    def job(self, tag: str) -> Job | None:
        with self._reading() as connection:
            row = connection.execute(f"select {_JOB_COLUMNS} from jobs where tag = ?", (tag,)).fetchone()
        return None if row is None else _decode_job(row)

    def open_jobs(self) -> list[Job]:
        """Jobs that have not ended, oldest first."""
        with self._reading() as connection:
            query = f"select {_JOB_COLUMNS} from jobs where state <> 'ended' order by created_at"
            return [_decode_job(row) for row in connection.execute(query)]

    def keys_of(self, tag: str) -> set[str]:
        with self._reading() as connection:
            return {key for (key,) in connection.execute("select key from items where tag = ?", (tag,))}

    def items(self, keys: Collection[str]) -> dict[str, Item]:
        """Where these requests are; those that are in no job are left out."""
        with self._reading() as connection:
            return dict(self._items(connection, keys))

    def prune(self, is_cached: Callable[[str], bool], now: datetime) -> int:
        """Forgets the answers of jobs that ended a day ago, where the reply cache has them, and old failures."""
        with self._reading() as connection:
            rows = connection.execute(
                "select key, items.state from items join jobs using (tag) where ended_at < ?", (_text(now - KEPT),)
            ).fetchall()
        done = [(key,) for key, state in rows if state == "failed" or is_cached(key)]
        with self._transaction() as connection:
            connection.executemany("delete from items where key = ?", done)
        return len(done)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @staticmethod
    def _items(connection: sqlite3.Connection, keys: Collection[str]) -> Iterator[tuple[str, Item]]:
        every = list(keys)
        for start in range(0, len(every), _AT_ONCE):
            chunk = every[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(chunk))
            query = f"select key, tag, state, reply, error_kind, error from items where key in ({marks})"
            for key, tag, *columns in connection.execute(query, chunk):
                yield key, Item(tag, _decode_item(*columns))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._trouble("written"), self._lock:
            self._connection.execute("begin immediate")
            try:
                yield self._connection
                self._connection.execute("commit")
            except BaseException:
                self._connection.execute("rollback")
                raise

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._trouble("read"), self._lock:
            yield self._connection

    @contextmanager
    def _trouble(self, what: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"The list of batch jobs {self.path} cannot be {what}: {error}. Check the disk's free space and"
                " permissions; jobs at the provider go on, and what was stored before is safe."
            ) from error


def _decode_job(row: tuple[Any, ...]) -> Job:
    """The job of a row of `_JOB_COLUMNS`."""
    *values, kind, text = row
    return replace(Job(*values), failure=_decode_refusal(kind, text))


def _encode_item(outcome: RawReply | Refusal) -> tuple[str, str | None, str | None, str | None]:
    """State, reply, error kind and error of an item."""
    if isinstance(outcome, RawReply):
        kept = {name: getattr(outcome, name) for name in _KEPT} | {"usage": asdict(outcome.usage)}
        return "answered", json.dumps(kept), None, None
    return "failed", None, *_encode_refusal(outcome)


def _decode_item(state: str, reply: str | None, kind: Any, text: Any) -> RawReply | Refusal | None:
    """`_encode_item` read back; None: the request waits."""
    if state == "answered":
        kept = json.loads(reply or "{}")
        return RawReply(**(kept | {"usage": Usage(**kept["usage"])}))
    return _decode_refusal(kind, text) if state == "failed" else None


def _encode_refusal(refusal: Refusal | None) -> tuple[str | None, str | None]:
    """Kind and text; ModelUnavailable has no kind."""
    if refusal is None:
        return None, None
    return (refusal.kind if isinstance(refusal, ModelError) else None), str(refusal)


def _decode_refusal(kind: Any, text: Any) -> Refusal | None:
    """`_encode_refusal` read back."""
    if text is None:
        return None
    return ModelUnavailable(text) if kind is None else ProviderFailure(kind, text)


def _now() -> str:
    return _text(datetime.now(UTC))


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
