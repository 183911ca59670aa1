"""One process at a time runs a stage of a build; the lock of a dead owner is free by itself.

The lock is the kernel's (`flock`), so it ends with its process however that ends. The file's text says
who holds it, for the message to the one who waits.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from pydantic import BaseModel, ConfigDict, Field

from tasks.foundation.errors import BuildBusy
from tasks.foundation.store.files import explain_write_errors, is_alive

_POLL_SECONDS = 0.5

_SIGNATURE = ContextVar("_SIGNATURE", default="")


@contextmanager
def signing(signature: str) -> Iterator[None]:
    """Whoever takes a lock within the block signs it with this, too: by what name, and where, its work can be seen."""
    before = _SIGNATURE.set(signature)
    try:
        yield
    finally:
        _SIGNATURE.reset(before)


class Owner(BaseModel):
    """What a lock's file says of the process that holds it."""

    model_config = ConfigDict(strict=True)

    pid: int = Field(gt=0)
    host: str
    command: str
    since: str
    called: str = ""
    """By what name, and where, its work can be seen; empty where it is not said (see `signing`)."""

    def __str__(self) -> str:
        name = f", as {self.called}" if self.called else ""
        return f"process {self.pid} on {self.host} (`{self.command}`, since {self.since}){name}"


@contextmanager
def lock(path: Path, what: str, wait_seconds: float) -> Iterator[None]:
    """Hold the lock of `path`; BuildBusy naming the owner when it is not free within `wait_seconds`, StoreError when
    the folder cannot be written."""
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    with file:
        _acquire(file, what, wait_seconds)
        _sign(file)
        try:
            yield
        finally:
            file.truncate(0)
            fcntl.flock(file, fcntl.LOCK_UN)


def _acquire(file: IO[str], what: str, wait_seconds: float) -> None:
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise BuildBusy(
                    f"{what} is being run by {_owner(file)}. Wait for it, or stop it; "
                    "run.lock_wait_seconds makes a run wait instead of refusing."
                ) from None
            time.sleep(min(_POLL_SECONDS, max(0.0, deadline - time.monotonic())))


def _sign(file: IO[str]) -> None:
    file.truncate(0)
    since = datetime.now(UTC).isoformat(timespec="seconds")
    command = " ".join(sys.argv)
    owner = Owner(pid=os.getpid(), host=socket.gethostname(), command=command, since=since, called=_SIGNATURE.get())
    file.write(owner.model_dump_json())
    file.flush()


def at_work(path: Path) -> str | None:
    """The process of this machine that holds the lock of `path`, for people to read; None when none does. Only looks:
    nobody who wants the lock is kept from it."""
    try:
        owner = Owner.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    return str(owner) if owner.host == socket.gethostname() and is_alive(owner.pid) else None


def _owner(file: IO[str]) -> str:
    file.seek(0)
    try:
        return str(Owner.model_validate_json(file.read()))
    except ValueError:
        return "another process"
