"""When this machine, or a limit on the process (`ulimit -v`), has too little memory: what that looks like, in words."""

from __future__ import annotations

import errno
import re
import sys
import traceback
from collections.abc import Iterator

from tasks.foundation.errors import ColloquyError

LEAST_BYTES = 768 * 2**20
"""Address space without which the libraries that read tables end the process instead of saying so."""
SCARCE_BYTES = 2 * 2**30
"""Address space in which any other fault is put down to memory, too: of a thread that could not start, another one
hears by way of a riddle."""
EXIT_CODE = 4
_SIGNS = re.compile(
    "out of memory|cannot allocate memory|failed to map segment|(?:re|m)alloc of size|bad_alloc|can't start new thread"
    "|unable to allocate",
    re.IGNORECASE,
)


def too_little() -> str | None:
    """What to say of an address space in which nothing can be loaded; None when it is larger or not limited."""
    limit = _limit()
    if limit is None or limit >= LEAST_BYTES:
        return None
    return f"the libraries that read tables cannot be loaded in less than {_told(LEAST_BYTES)}.{_advice()}"


def out_of_memory(error: BaseException) -> str | None:
    """What could not be loaded or held, where that is why `error` was raised; None for any other error."""
    for cause in reversed([*_causes(error)]):
        if isinstance(cause, MemoryError) or getattr(cause, "errno", None) == errno.ENOMEM or _SIGNS.search(str(cause)):
            said = " ".join(str(cause).split())[:200]
            return f"{_where(cause)} could not be loaded or held{f': {said}' if said else ''}.{_advice()}"
    limit = _limit()
    if isinstance(error, ColloquyError) or limit is None or limit >= SCARCE_BYTES:
        return None
    return f"probably that is why {_where(error)} says {str(error)[:200]!r}.{_advice()}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and those that led to it, the first one last; also those that `from None` hides."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _where(cause: BaseException) -> str:
    """The library that was being loaded, else the module that wanted memory."""
    library = re.match(r"(\S+\.so[.\d]*|\S+\.dll|\S+\.dylib): ", str(cause))
    if library:
        return library[1]
    frames = [frame for frame, _ in traceback.walk_tb(cause.__traceback__)]
    names = [str(frame.f_globals.get("__name__", "")) for frame in frames]
    return next((name for name in reversed(names) if name and not name.startswith("importlib")), "something")


def _advice() -> str:
    limit = _limit()
    if limit is None:
        return " This machine has no memory left: end other programs, or use a larger one."
    return f" The address space of this process is limited to {_told(limit)} (ulimit -v): raise or lift the limit."


def _limit() -> int | None:
    """Bytes of address space that this process may have; None for no limit."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def _told(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"
