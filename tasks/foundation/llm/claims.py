"""Which calls are being sent just now, so that two processes do not buy the same reply.

A claim is the kernel's lock on one byte of a file, at a place that is the call's key: it ends with its process,
however that ends, and costs microseconds.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from tasks.foundation.private import private_file

_SET = getattr(fcntl, "F_OFD_SETLK", fcntl.F_SETLK)
"""Locks of an open file where the system has them; elsewhere those of a process, whose own engines share a claim."""

PLACES = 2**62


class Claims:
    """The claims made through the file at `path`; other processes, and other objects of this one, open their own."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(private_file(path), os.O_RDWR)

    def take(self, key: str) -> bool:
        """Whether the call with this key (hexadecimal) is now claimed here; False: somebody else is sending it."""
        try:
            self._lock(key, fcntl.F_WRLCK)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def release(self, key: str) -> None:
        """Gives a claim up; does nothing where there was none."""
        self._lock(key, fcntl.F_UNLCK)

    def close(self) -> None:
        """Gives up all of them."""
        os.close(self._file)

    def _lock(self, key: str, kind: int) -> None:
        place = int(key[:16], 16) % PLACES
        fcntl.fcntl(self._file, _SET, struct.pack("hhqqi4x", kind, os.SEEK_SET, place, 1, 0))
