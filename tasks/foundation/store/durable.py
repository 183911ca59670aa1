"""Files that appear whole or not at all: a temporary file, fsync, `os.replace`, fsync of the folder."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tasks.foundation.errors import StoreError
from tasks.foundation.store.scratch import scratch_file


def replace_file(path: Path, scratch: Path, write: Callable[[Path], None]) -> None:
    """Make `path` by letting `write` fill a temporary file in `scratch`. StoreError when the disk is full."""
    with replacing(path, scratch) as temporary, told_of(path):
        write(temporary)


@contextlib.contextmanager
def replacing(path: Path, scratch: Path) -> Iterator[Path]:
    """A temporary path in `scratch` to write to; it becomes `path` at the end, and is gone after an error."""
    temporary = scratch_file(scratch, path.name)
    try:
        with told_of(path):
            scratch.mkdir(parents=True, exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with told_of(path):
            _sync(temporary)
            temporary.replace(path)
            _sync(path.parent)
    finally:
        with contextlib.suppress(OSError):  # where nothing can be written, there is nothing to remove
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def told_of(path: Path) -> Iterator[None]:
    """What goes wrong in writing `path` as a StoreError that says so."""
    try:
        yield
    except OSError as error:
        raise StoreError(_explain(path, error)) from error


def write_text(path: Path, scratch: Path, text: str) -> None:
    replace_file(path, scratch, lambda temporary: _write(temporary, text))


def remove_file(path: Path) -> None:
    """Gone, also after a power cut. StoreError when it cannot be removed."""
    with told_of(path):
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
