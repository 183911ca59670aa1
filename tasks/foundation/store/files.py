"""Files that appear whole or not at all: a temporary file, fsync, `os.replace`, fsync of the folder.

A temporary file is named after the process that writes it, so that those of dead ones can be told from the others. What
holds replies or keys is its owner's alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import socket
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from tasks.foundation.errors import StoreError

_NAMED = re.compile(r".*\.(?P<pid>\d+)@(?P<host>.*)\.[0-9a-f]{8}\.tmp", re.DOTALL)


def replace_file(path: Path, scratch: Path, write: Callable[[Path], None]) -> None:
    """Make `path` by letting `write` fill a temporary file in `scratch`. StoreError when the disk is full."""
    with replacing(path, scratch) as temporary, explain_write_errors(path):
        write(temporary)


@contextlib.contextmanager
def replacing(path: Path, scratch: Path) -> Iterator[Path]:
    """A temporary path in `scratch` to write to; it becomes `path` at the end, and is gone after an error."""
    temporary = scratch_file(scratch, path.name)
    try:
        with explain_write_errors(path):
            scratch.mkdir(parents=True, exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with explain_write_errors(path):
            _sync(temporary)
            temporary.replace(path)
            _sync(path.parent)
    finally:
        with contextlib.suppress(OSError):  # where nothing can be written, there is nothing to remove
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """What goes wrong in writing `path` as a StoreError that says so."""
    try:
        yield
    except OSError as error:
        raise StoreError(_explain(path, error)) from error


def write_text(path: Path, scratch: Path, text: str) -> None:
    replace_file(path, scratch, lambda temporary: _write(temporary, text))


def remove_file(path: Path) -> None:
    """Gone, also after a power cut. StoreError when it cannot be removed."""
    with explain_write_errors(path):
        path.unlink()
        _sync(path.parent)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _explain(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        free = _free_bytes(path)
        return (
            f"{path} cannot be written: the disk is full ({free} bytes free). What was committed is safe; free some "
            "space and run the same command, it goes on where it stopped."
        )
    return f"{path} cannot be written: {error}"


def _free_bytes(path: Path) -> str:
    while not path.exists():
        path = path.parent
    return f"{shutil.disk_usage(path).free:,}"


def scratch_file(folder: Path, name: str) -> Path:
    """A new path in `folder` for a file that will be called `name`."""
    return folder / f"{name}.{os.getpid()}@{socket.gethostname()}.{uuid.uuid4().hex[:8]}.tmp"


def clear_scratch(folder: Path) -> int:
    """Removes the files that processes of this machine had not finished when they ended; how many there were."""
    dead = [path for path in folder.glob("*.tmp") if _is_abandoned(path.name)]
    for path in dead:
        path.unlink(missing_ok=True)
    return len(dead)


def _is_abandoned(name: str) -> bool:
    found = _NAMED.fullmatch(name)
    return found is not None and found["host"] == socket.gethostname() and not is_alive(int(found["pid"]))


def is_alive(pid: int) -> bool:
    """Whether a process of this machine has this number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def private_folder(path: Path) -> Path:
    """The folder, made if need be, closed to everybody but its owner. OSError when it cannot be made."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    _close(path, 0o700)
    return path


def private_file(path: Path) -> Path:
    """The file, empty if it was not there, closed to everybody but its owner. OSError when it cannot be made.

    One that is there is not opened: a process that closes any descriptor of a SQLite file loses its locks on it.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        _close(path, 0o600)
    return path


def _close(path: Path, mode: int) -> None:
    with contextlib.suppress(PermissionError):  # somebody else's, who decides who may look
        if path.stat().st_mode & 0o077:
            path.chmod(mode)
