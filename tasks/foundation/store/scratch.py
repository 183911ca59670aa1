"""Files that are not yet what they will be: each is named after the process that writes it, so that those of dead ones
can be told from the others."""

from __future__ import annotations

import os
import re
import socket
import uuid
from pathlib import Path

_NAMED = re.compile(r".*\.(?P<pid>\d+)@(?P<host>.*)\.[0-9a-f]{8}\.tmp", re.DOTALL)


def scratch_file(folder: Path, name: str) -> Path:
    """A new path in `folder` for a file that will be called `name`."""
    return folder / f"{name}.{os.getpid()}@{socket.gethostname()}.{uuid.uuid4().hex[:8]}.tmp"


def clear_scratch(folder: Path) -> int:
    """Removes the files that processes of this machine had not finished when they ended; how many there were."""
    dead = [path for path in folder.glob("*.tmp") if _is_left(path.name)]
    for path in dead:
        path.unlink(missing_ok=True)
    return len(dead)


def _is_left(name: str) -> bool:
    found = _NAMED.fullmatch(name)
    return found is not None and found["host"] == socket.gethostname() and not lives(int(found["pid"]))


def lives(pid: int) -> bool:
    """Whether a process of this machine has this number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
