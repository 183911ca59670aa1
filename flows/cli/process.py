"""The process of a command: its streams, which are never an error of the program, and its memory.

What an encoding lacks is written as something like it. When the reader closes the pipe (`colloquy status | head -1`),
what is still written goes nowhere and the command ends as it would have. When this machine, or a limit on the process
(`ulimit -v`), has too little memory, that is said in words.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import resource
import sys
import traceback
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TextIO

from tasks.foundation.errors import ColloquyError

SUBSTITUTING = "colloquy.substituting"
PLAIN_ASCII = "colloquy-plain-ascii"
"""ASCII under a name of its own: to a terminal that says `ascii`, typer writes UTF-8."""
_LIKE = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("“”„″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−─━╌╴╶╸╺┄┈═", "-"),
        **dict.fromkeys("│┃║╎┆┊", "|"),
        **dict.fromkeys("·•∙●", "*"),
        **{"…": "...", "≥": ">=", "≤": "<=", "×": "x", "→": "->", "←": "<-", "≠": "!=", "⁄": "/"},
    }
)

LEAST_BYTES = 768 * 2**20
"""Address space without which the libraries that read tables end the process instead of saying so."""
SCARCE_BYTES = 2 * 2**30
"""Address space in which any other fault is put down to memory, too: of a thread that could not start, another one
hears by way of a riddle."""
OUT_OF_MEMORY = 4
_SIGNS = re.compile(
    "out of memory|cannot allocate memory|failed to map segment|(?:re|m)alloc of size|bad_alloc|can't start new thread"
    "|unable to allocate",
    re.IGNORECASE,
)


class Output(io.TextIOWrapper):
    """A standard stream whose reader may go away. `ends` says whether the command ends then: one that only shows rows,
    of which there may be no end."""

    ends = False

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:
            self._reader_left()
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            self._reader_left()

    def _reader_left(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)
        if self.ends:
            raise SystemExit(0)


def settle_streams() -> None:
    """Put an `Output` in place of the process's own streams; one that somebody has replaced stays."""
    codecs.register_error(SUBSTITUTING, _substituted)
    codecs.register(_plain_ascii)
    if sys.stdout is sys.__stdout__:
        sys.stdout = make_output(sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = make_output(sys.stderr)


def find_unreadable(arguments: Sequence[str]) -> str | None:
    """What to say of an argument with bytes that are no text in this locale; None when there is none."""
    for argument in arguments:
        if any("\udc80" <= character <= "\udcff" for character in argument):
            return (
                f"expected text in the encoding of this locale ({sys.getfilesystemencoding()}), found "
                f"{os.fsencode(argument)!r}: set LC_ALL=C.UTF-8, or write it with other letters"
            )
    return None


def end_with_the_reader() -> None:
    """The command has nothing to do but to write."""
    if isinstance(sys.stdout, Output):
        sys.stdout.ends = True


def flush_streams() -> None:
    """Write what waits, where there is somebody to read it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Output):
            stream.ends = False
            stream.flush()


def make_output(stream: TextIO | None) -> TextIO | None:  # a process may be begun without either
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    encoding = PLAIN_ASCII if codecs.lookup(stream.encoding).name == "ascii" else stream.encoding
    return Output(
        stream.buffer,
        encoding,
        SUBSTITUTING,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _plain_ascii(name: str) -> codecs.CodecInfo | None:
    if name.replace("_", "-") != PLAIN_ASCII:
        return None
    found = codecs.lookup("ascii")
    return codecs.CodecInfo(
        found.encode,
        found.decode,
        incrementalencoder=found.incrementalencoder,
        incrementaldecoder=found.incrementaldecoder,
        name=PLAIN_ASCII,
    )


def _substituted(error: UnicodeError) -> tuple[str, int]:
    """For `codecs.register_error`: letters without their marks, signs that look alike, "?" for the rest."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    return "".join(map(_plain, characters)), error.end


def _plain(character: str) -> str:
    plain = unicodedata.normalize("NFKD", character.translate(_LIKE)).translate(_LIKE)
    kept = "".join(each for each in plain if each.isascii())
    return kept if kept.isprintable() and kept else "?"


def explain_too_little() -> str | None:
    """What to say of an address space in which nothing can be loaded; None when it is larger or not limited."""
    limit = _limit()
    if limit is None or limit >= LEAST_BYTES:
        return None
    return f"the libraries that read tables cannot be loaded in less than {_show_size(LEAST_BYTES)}.{_advice()}"


def explain_out_of_memory(error: BaseException) -> str | None:
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
    return f" The address space of this process is limited to {_show_size(limit)} (ulimit -v): raise or lift the limit."


def _limit() -> int | None:
    """Bytes of address space that this process may have; None for no limit."""

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def _show_size(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"
