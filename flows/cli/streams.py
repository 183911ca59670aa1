"""Standard output and error as commands write to them: never an error of the program.

What an encoding lacks is written as something like it. When the reader closes the pipe (`colloquy status | head -1`),
what is still written goes nowhere and the command ends as it would have.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import unicodedata
from collections.abc import Sequence
from typing import TextIO

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


def settle() -> None:
    """Put an `Output` in place of the process's own streams; one that somebody has replaced stays."""
    codecs.register_error(SUBSTITUTING, _substituted)
    codecs.register(_plain_ascii)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _settled(sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _settled(sys.stderr)


def unreadable(arguments: Sequence[str]) -> str | None:
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


def flush() -> None:
    """Write what waits, where there is somebody to read it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Output):
            stream.ends = False
            stream.flush()


def _settled(stream: TextIO | None) -> TextIO | None:  # a process may be begun without either
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
