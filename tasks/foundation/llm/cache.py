"""Every reply that was paid for, kept under the key of the call that got it.

One SQLite file (WAL, synchronous=FULL) that several processes may share: the reply that is stored is the reply, also
for who bought another. One thread writes, together what has come meanwhile; `put` returns when its reply is on disk.
Errors are never stored; replies that turned out unreadable are, for they were paid for and a replay must walk the same
path. Requests and replies are packed (see packing); rows of a file that an earlier version has written hold theirs as
they are, and are read as well.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tasks.foundation.errors import StoreError
from tasks.foundation.llm.claims import Claims
from tasks.foundation.llm.packing import SCHEMA as PACKING_SCHEMA
from tasks.foundation.llm.packing import Packing, PackingError
from tasks.foundation.llm.request import MOST_TOKENS, RawReply, Usage
from tasks.foundation.store.files import private_file, private_folder

BATCH_REPLIES = 64
GATHER_SECONDS = 0.003
"""So long the first of a batch waits for others: each commit costs a flush of the disk."""
PAGE_BYTES = 8192
"""Of a new file: packed replies of a kilobyte or two leave less of a page empty than of the usual 4,096 bytes."""
BUSY_SECONDS = 60.0
"""How long another process may hold the file."""

_SCHEMA = """
create table if not exists replies (
    key text primary key,
    request text not null,
    reply text not null,
    finish_reason text not null,
    usage text not null,
    model_reported text,
    seed_sent integer,
    latency_seconds real not null,
    run_id text not null,
    request_id text not null,
    stage text not null,
    alias text not null,
    created_at text not null,
    batched integer not null default 0
) without rowid;
create index if not exists replies_by_stage on replies (stage, created_at);
"""
_PACKED = "packed"
"""The column of `replies` that says where in the table of that name its request and its reply are; both are empty in
the row itself then. Null: they are in the row."""
_FORGET = f"""
create trigger if not exists forget_packed after delete on replies
begin
    delete from packed where id = old.{_PACKED};
end;
"""

COLUMNS = (
    *("key", "request", "reply", "finish_reason", "usage", "model_reported", "seed_sent", "latency_seconds"),
    *("run_id", "request_id", "stage", "alias", "created_at", "batched"),
)

_INSERT = f"insert into replies ({', '.join(COLUMNS)}, {_PACKED}) values ({', '.join('?' * (len(COLUMNS) + 1))})"
_WHOLE = (
    f"select {', '.join(f'replies.{name}' for name in COLUMNS)},"
    f" replies.{_PACKED}, packed.dictionary, packed.request_bytes, packed.content"
    f" from replies left join packed on packed.id = replies.{_PACKED}"
)
"""Rows as `_read` takes them."""
_SELECT = f"{_WHOLE} where replies.key = ?"
_UNPACKED = f"select {', '.join(f'replies.{name}' for name in COLUMNS)}, null, null, null, null from replies"
"""The same of a file that an earlier version has written."""
_REQUEST, _REPLY, _STAGE = (COLUMNS.index(name) for name in ("request", "reply", "stage"))


@dataclass(frozen=True, slots=True)
class CachedReply:
    """One completed physical call."""

    key: str
    request: str
    """The call, as canonical JSON."""
    reply: RawReply
    run_id: str
    """The stage run that paid for it."""
    request_id: str
    """The logical request that paid for it."""
    stage: str
    alias: str
    created_at: datetime
    batched: bool = False
    """Whether it came in a batch job, and so at that price."""

    def to_row(self) -> tuple[Any, ...]:
        """Its values in the order of `COLUMNS`. ValueError for usage that could not be read again."""
        reply = self.reply
        usage = json.dumps(astuple(reply.usage))
        parse_usage(usage)
        what = (self.key, self.request, reply.text, reply.finish_reason, usage, reply.model_reported, reply.seed_sent)
        who = (self.run_id, self.request_id, self.stage, self.alias, format_time(self.created_at), int(self.batched))
        return (*what, reply.latency_seconds, *who)

    @staticmethod
    def from_row(row: tuple[Any, ...]) -> CachedReply:
        """The reply of a row of `COLUMNS`. ValueError or TypeError for a row that is none of ours."""
        key, request, text, finish_reason, usage, model_reported, seed_sent, latency, *rest = row
        run_id, request_id, stage, alias, created_at, batched = rest
        reply = RawReply(text, parse_usage(usage), finish_reason, model_reported, seed_sent, latency)
        moment = datetime.fromisoformat(created_at)
        return CachedReply(key, request, reply, run_id, request_id, stage, alias, moment, bool(batched))


def parse_usage(text: str) -> Usage:
    """The usage that a row keeps as JSON. Raises ValueError for anything else."""
    counts = json.loads(text)
    if not isinstance(counts, list) or len(counts) != len(fields(Usage)) or not all(map(_is_count, counts)):
        raise ValueError(f"expected the tokens of a call, found {text[:200]!r}")
    return Usage(*counts)


def _is_count(value: Any) -> bool:
    return value is None or (type(value) is int and 0 <= value <= MOST_TOKENS)


def format_time(moment: datetime) -> str:
    """UTC in one fixed width, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What is kept of one stage and alias."""

    stage: str
    alias: str
    replies: int
    prompt_tokens: int
    """The sum of those that were reported; so are the completion's."""
    completion_tokens: int
    unreported: int
    """Replies that the two sums lack."""
    oldest: str
    """When the first of them came, as the cache writes times; `newest`: the last."""
    newest: str


class ReplyCache:
    """The reply cache at `path`. Usable from any thread and event loop; several processes may share it."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._read_lock = threading.Lock()
        self._reader = self._connect()
        self._unpacking = Packing(self._reader)
        self.claims = Claims(self.path.with_name(f"{self.path.stem}.claims"))
        self._unwritten: deque[tuple[CachedReply, Future[CachedReply]]] = deque()
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="reply-cache")
        self._writer: Packing | None = None
        self._closed = False

    def __enter__(self) -> ReplyCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, key: str) -> CachedReply | None:
        """The committed reply of the call with this key, or None."""
        try:
            with self._read_lock:
                row = self._reader.execute(_SELECT, (key,)).fetchone()
                return None if row is None else CachedReply.from_row(_read(row, self._unpacking))
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise self._trouble("cannot be read", error) from error

    async def put(self, reply: CachedReply) -> CachedReply:
        """What stands under the key once it is on disk: this reply, or that which another process had put there before.

        Raises StoreError when it could not be written. A reply whose caller is cancelled meanwhile is still written.
        """
        written: Future[CachedReply] = Future()
        written.set_running_or_notify_cancel()  # from now on nobody can cancel it
        self._unwritten.append((reply, written))
        try:
            self._writing.submit(self._write_batch)
        except RuntimeError:
            raise StoreError(f"The reply cache {self.path} is closed.") from None
        return await asyncio.wrap_future(written)

    def stats(self) -> list[CacheStats]:
        """Replies and tokens by stage and alias, in that order."""
        rows = self._read_all(
            "select stage, alias, count(*),"
            " coalesce(sum(json_extract(usage, '$[0]')), 0), coalesce(sum(json_extract(usage, '$[2]')), 0),"
            " sum(json_extract(usage, '$[0]') is null or json_extract(usage, '$[2]') is null),"
            " min(created_at), max(created_at) from replies group by stage, alias order by stage, alias"
        )
        return [CacheStats(*row) for row in rows]

    def list_stages(self) -> list[str]:
        """The stages that there are replies of, by name."""
        return [name for (name,) in self._read_all("select distinct stage from replies order by stage")]

    def list_builds(self) -> list[str]:
        """The builds that have paid for replies, by name. Goes through the whole file."""
        build = "substr(run_id, 1, instr(run_id, '/') - 1)"
        return [name for (name,) in self._read_all(f"select distinct {build} from replies order by 1") if name]

    def read_usage(self, prefix: str) -> Iterator[tuple[str, bool, Usage]]:
        """Alias, whether in a batch job, and usage of every reply whose `run_id` begins so: what those runs have paid
        for."""
        after = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        query = "select alias, batched, usage from replies where run_id >= ? and run_id < ?"
        rows = self._read_all(query, (prefix, after))
        return ((alias, bool(batched), parse_usage(usage)) for alias, batched, usage in rows)

    def prune(self, *, older_than: datetime | None = None, stage: str | None = None) -> int:
        """Deletes the replies that match every given condition; returns how many.

        With no condition nothing is deleted: an empty cache is a deleted file.
        """
        conditions = {
            "created_at < ?": format_time(older_than) if older_than else None,
            "stage = ?": stage,
        }
        chosen = {test: value for test, value in conditions.items() if value is not None}
        if not chosen:
            return 0
        connection = self._connect()
        try:
            with connection:
                done = connection.execute(
                    f"delete from replies where {' and '.join(chosen)}", tuple(chosen.values())
                ).rowcount
            connection.execute("pragma incremental_vacuum")
            return done
        except sqlite3.Error as error:
            raise self._trouble("cannot be pruned", error) from error
        finally:
            connection.close()

    def read_rows(self, runs: str = "", batch: int = 2000) -> Iterator[list[tuple[Any, ...]]]:
        """Whole rows, in the order of COLUMNS and by key, in batches; only of runs whose id begins with `runs`."""
        after = ""
        select = f"{_WHOLE} where replies.key > ? and substr(replies.run_id, 1, ?) = ? order by replies.key limit ?"
        while found := self._read_all(select, (after, len(runs), runs, batch)):
            after = found[-1][0]
            try:
                with self._read_lock:
                    rows = [_read(row, self._unpacking) for row in found]
            except PackingError as error:
                raise self._trouble("cannot be read", error) from error
            yield rows

    def add_rows(self, batches: Iterable[Iterable[tuple[Any, ...]]]) -> int:
        """Adds rows in the order of COLUMNS whose keys are new: all of them or, after an error, none. Returns how many.

        An error of the batches is raised as it is.
        """
        connection = self._connect()
        packing = Packing(connection)
        try:
            connection.execute("begin immediate")
            new = sum(_insert(packing, row) for rows in batches for row in rows)
            connection.execute("commit")
        except sqlite3.Error as error:
            raise self._trouble("cannot be written", error) from error
        finally:
            connection.close()
        return new

    def close(self) -> None:
        """Writes what is waiting and closes the file; a second close does nothing."""
        if self._closed:
            return
        self._closed = True
        self._writing.shutdown()
        if self._writer is not None:
            self._writer.connection.close()
        self.claims.close()
        with self._read_lock:
            self._reader.close()

    def _connect(self) -> sqlite3.Connection:
        try:
            connection = open_database(self.path, f"{_SCHEMA}{PACKING_SCHEMA}")
            _add_column(connection)
            connection.executescript(_FORGET)
        except (sqlite3.Error, OSError) as error:
            raise self._trouble("cannot be opened", error) from error
        return connection

    def _write_batch(self) -> None:
        """In the writer's thread, once for each `put`: commits what is waiting, which may be nothing any more."""
        if not self._unwritten:
            return
        time.sleep(GATHER_SECONDS)
        batch = [self._unwritten.popleft() for _ in range(min(len(self._unwritten), BATCH_REPLIES))]
        try:
            if self._writer is None:
                self._writer = Packing(self._connect())
            self._write(self._writer, batch)
        except BaseException as error:  # noqa: BLE001 - also a bug: who waits must hear of it rather than hang
            for _, written in batch:
                if not written.done():
                    written.set_exception(error)

    def _write(self, packing: Packing, batch: list[tuple[CachedReply, Future[CachedReply]]]) -> None:
        """Commits a batch; where that fails each of its replies by itself, so that none is lost for another's sake."""
        try:
            stored = _commit(packing, [reply for reply, _ in batch])
        except (sqlite3.Error, ValueError, OverflowError) as error:
            if len(batch) == 1:
                raise self._trouble("cannot be written", error) from None
            for one in batch:
                try:
                    self._write(packing, [one])
                except StoreError as trouble:
                    one[1].set_exception(trouble)
        else:
            for (_, written), found in zip(batch, stored, strict=True):
                written.set_result(found)

    def _read_all(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            with self._read_lock:
                return self._reader.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._trouble("cannot be read", error) from error

    def _trouble(self, what: str, error: Exception) -> StoreError:
        advice = "Check the disk's free space and permissions; what was committed before is safe."
        if "malformed" in str(error) or "not a database" in str(error):
            advice = "The file is damaged: move it away; an export of it can be taken in (`colloquy cache import`)."
        return StoreError(f"The reply cache {self.path} {what}: {error}. {advice}")


def open_database(path: Path, schema: str) -> sqlite3.Connection:
    """The SQLite file, its owner's alone and made if need be: for any thread, in WAL mode, flushed at each commit.

    Raises sqlite3.Error or OSError.
    """
    private_folder(path.parent)
    private_file(path)
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None)
    connection.execute(f"pragma page_size = {PAGE_BYTES}")
    connection.execute("pragma auto_vacuum = incremental")
    _switch_to_wal(connection)
    connection.execute("pragma synchronous = full")
    connection.executescript(schema)
    return connection


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Two processes that create the file at once get "locked" here whatever the timeout."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def find_replies(path: Path, where: str, values: Sequence[str]) -> list[CachedReply]:
    """The replies of the cache at `path` that fulfil a condition on columns of `replies`; none where there is no cache.
    Only reads: the file is neither made nor brought up to date, and a run may be writing to it.

    StoreError for a file that cannot be read.
    """
    if not path.is_file():
        return []
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=BUSY_SECONDS)) as connection:
            packing = Packing(connection)
            select = _WHOLE if _is_packed(connection) else _UNPACKED
            found = connection.execute(f"{select} where {where}", values).fetchall()
            return [CachedReply.from_row(_read(row, packing)) for row in found]
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise StoreError(f"The reply cache {path} cannot be read: {error}.") from None


def _is_packed(connection: sqlite3.Connection) -> bool:
    return _PACKED in {name for _, name, *_ in connection.execute("pragma table_info(replies)")}


def _add_column(connection: sqlite3.Connection) -> None:
    """To a file that an earlier version has made; another process may be doing the same."""
    if _is_packed(connection):
        return
    try:
        connection.execute(f"alter table replies add column {_PACKED} integer")
    except sqlite3.OperationalError as error:
        if "duplicate column" not in str(error):
            raise


def _commit(packing: Packing, replies: list[CachedReply]) -> list[CachedReply]:
    """Stores the replies whose keys are new; returns what stands under each key afterwards."""
    connection = packing.connection
    connection.execute("begin immediate")
    try:
        stored = [_store(packing, reply) for reply in replies]
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise
    return stored


def _store(packing: Packing, reply: CachedReply) -> CachedReply:
    if _insert(packing, reply.to_row()):
        return reply
    return CachedReply.from_row(_read(packing.connection.execute(_SELECT, (reply.key,)).fetchone(), packing))


def _insert(packing: Packing, row: tuple[Any, ...]) -> bool:
    """Adds a row of COLUMNS, packed, within a transaction; False where its key is known already."""
    connection = packing.connection
    if connection.execute("select 1 from replies where key = ?", row[:1]).fetchone() is not None:
        return False
    place = packing.pack(row[_STAGE], row[_REQUEST], row[_REPLY])
    bare = ["" if column in (_REQUEST, _REPLY) else value for column, value in enumerate(row)]
    connection.execute(_INSERT, (*bare, place))
    return True


def _read(row: tuple[Any, ...], packing: Packing) -> tuple[Any, ...]:
    """The row of COLUMNS of one of `_WHOLE`. PackingError where its texts cannot be read."""
    *bare, place, dictionary, request_bytes, content = row
    if place is not None:
        if content is None:
            raise PackingError(f"a packed reply is malformed: its texts, row {place} of `packed`, are not there")
        bare[_REQUEST], bare[_REPLY] = packing.unpack((dictionary, request_bytes, content))
    return tuple(bare)
