"""Folders and files that hold replies or keys: their owner's alone."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


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
