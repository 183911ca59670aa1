"""Which calls are being sent just now, so that two processes do not buy the same reply.

A claim is the kernel's lock on one byte of a file, at a place that is the call's key: it ends with its process,
however that ends, and costs microseconds. (`filelock`, which the store's locks are made of, would need a file for each
of a million keys.)
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tasks.foundation.store.files import private_file

PLACES = 2**62
POLL_SECONDS = 0.1
LONGEST_SECONDS = 900.0
"""Who holds a claim for longer is stopped or beyond help; the call is then sent all the same."""

_OPEN_FILES_LOCK = getattr(fcntl, "F_OFD_SETLK", None)
"""Linux locks for an open file; elsewhere locks are a process's, whose own engines share a claim."""

log = logging.getLogger(__name__)


class Claims:
    """The claims made through the file at `path`; other processes, and other objects of this one, open their own."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(private_file(path), os.O_RDWR)
        self._closed = False
        self._announced = False

    @asynccontextmanager
    async def claimed(self, key: str) -> AsyncIterator[None]:
        """Claims the call within the block; waits while somebody else is sending the very same, though not for ever."""
        mine = self.take(key) or await self._wait_for(key)
        try:
            yield
        finally:
            if mine:
                self.release(key)

    def take(self, key: str) -> bool:
        """Whether the call with this key (hexadecimal) is now claimed here; False: somebody else is sending it. A claim
        is to be given up by `release`, and ends with its process."""
        try:
            self._lock(key, fcntl.F_WRLCK)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def release(self, key: str) -> None:
        """Gives a claim up; does nothing where there was none."""
        if not self._closed:
            self._lock(key, fcntl.F_UNLCK)

    def close(self) -> None:
        """Gives up all of them."""
        self._closed = True
        os.close(self._file)

    async def _wait_for(self, key: str) -> bool:
        """Whether the claim could be had in the end."""
        if not self._announced:
            self._announced = True
            log.info("another process is asking the same just now; its replies are waited for and not bought twice")
        for _ in range(int(LONGEST_SECONDS / POLL_SECONDS)):
            await asyncio.sleep(POLL_SECONDS)
            if self.take(key):
                return True
        return False

    def _lock(self, key: str, kind: int) -> None:
        place = int(key[:16], 16) % PLACES
        if _OPEN_FILES_LOCK is None:
            fcntl.lockf(self._file, fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        else:
            fcntl.fcntl(self._file, _OPEN_FILES_LOCK, struct.pack("hhqqi4x", kind, os.SEEK_SET, place, 1, 0))
