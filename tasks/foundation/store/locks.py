"""One process at a time runs a stage of a build; the lock of a dead owner is free by itself.

The lock is the kernel's (by `filelock`), so it ends with its process however that ends. The file's text says
who holds it, for the message to the one who waits.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path

import filelock
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
    descriptors: list[int] = []
    # Not a thread's own: a run may be closed by another thread than the one that opened it.
    held = filelock.FileLock(
        path, wait_seconds, poll_interval=_POLL_SECONDS, thread_local=False, on_acquired=descriptors.append
    )
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            held.acquire()
        except filelock.Timeout:
            raise BuildBusy(
                f"{what} is being run by {_owner(path)}. Wait for it, or stop it; "
                "run.lock_wait_seconds makes a run wait instead of refusing."
            ) from None
    # Signed through the lock's own descriptor: by its path another process may have a new file already.
    os.ftruncate(descriptors[0], 0)
    os.pwrite(descriptors[0], _signature(), 0)
    try:
        yield
    finally:
        os.ftruncate(descriptors[0], 0)
        held.release()


def _signature() -> bytes:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    command = " ".join(sys.argv)
    owner = Owner(pid=os.getpid(), host=socket.gethostname(), command=command, since=since, called=_SIGNATURE.get())
    return owner.model_dump_json().encode()


def at_work(path: Path) -> str | None:
    """The process of this machine that holds the lock of `path`, for people to read; None when none does. Only looks:
    nobody who wants the lock is kept from it."""
    try:
        owner = Owner.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    return str(owner) if owner.host == socket.gethostname() and is_alive(owner.pid) else None


def _owner(path: Path) -> str:
    try:
        return str(Owner.model_validate_json(path.read_bytes()))
    except (OSError, ValueError):
        return "another process"
