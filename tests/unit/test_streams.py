"""What commands write: to any encoding, to a reader that goes away, and where there is too little memory."""

from __future__ import annotations

import errno
import io
import os
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from flows.cli import memory, streams
from tasks.foundation.errors import TableError
from tasks.foundation.settings.checkout import ROOT

SHOW = [("--help",), ("sql", "select 'é…中' as \"wörd → 字\""), ("plan", "--profile", "nö")]
"""Commands that write help, boxes and errors."""


def begin(*command: str, folder: Path, **variables: str) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COLLOQUY_", "PREFECT_"))}
    places = {"COLLOQUY_ARTIFACTS": str(folder / "artifacts"), "PREFECT_HOME": str(folder / "prefect")}
    return subprocess.Popen(
        [sys.executable, "-m", "flows.cli.main", *command],
        cwd=ROOT,
        env=kept | places | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def written(text: str, encoding: str) -> bytes:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding)
    settled = streams._settled(stream)
    assert settled is not None
    settled.write(text)
    settled.flush()
    return raw.getvalue()


@pytest.fixture(autouse=True)
def _settled() -> None:
    streams.settle()


@pytest.mark.parametrize(
    ("text", "encoding", "found"),
    [
        ("1–2 · “é” → ½ …", "ascii", b'1-2 * "e" -> 1/2 ...'),
        ("1–2 · “é” → ½ …", "latin-1", '1-2 · "é" -> ½ ...'.encode("latin-1")),
        ("中 and 한 and \udcff", "ascii", b"? and ? and ?"),
        ("中 and 한 and \udcff", "gb18030", "中 and 한 and ?".encode("gb18030")),
        ("lone \ud800", "utf-8", b"lone ?"),
        ("─│┼ 100%", "koi8-r", "─│┼ 100%".encode("koi8-r")),
    ],
)
def test_what_an_encoding_lacks_is_written_as_something_like_it(text: str, encoding: str, found: bytes) -> None:
    assert written(text, encoding) == found


@pytest.mark.parametrize("command", SHOW, ids=" ".join)
def test_every_command_writes_to_a_terminal_of_few_letters(command: tuple[str, ...], tmp_path: Path) -> None:
    by_encoding = {each: begin(*command, folder=tmp_path, PYTHONIOENCODING=each) for each in ("ascii", "latin-1")}
    for encoding, running in by_encoding.items():
        out, err = running.communicate(timeout=120)
        assert running.returncode == (2 if "nö" in command else 0) and b"Traceback" not in err
        assert (out + err).decode(encoding).strip()


def test_an_argument_that_is_no_text_in_the_locale_is_named(tmp_path: Path) -> None:
    plain = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    _, err = (running := begin("sql", "select 'ö'", folder=tmp_path, **plain)).communicate(timeout=120)
    assert running.returncode == 2 and err.startswith(b"config error: expected text in the encoding of this locale")


@pytest.mark.parametrize("command", SHOW, ids=" ".join)
def test_a_reader_that_goes_away_is_no_fault_of_a_command(command: tuple[str, ...], tmp_path: Path) -> None:
    running = begin(*command, folder=tmp_path)
    assert running.stdout is not None and running.stderr is not None
    running.stdout.close()
    running.stderr.close()
    assert running.wait(timeout=120) == (2 if "nö" in command else 0)


def test_an_endless_answer_ends_with_its_reader(tmp_path: Path) -> None:
    running = begin("sql", "select * from range(1000000000000)", "--format", "csv", folder=tmp_path)
    assert running.stdout is not None and running.stderr is not None
    assert running.stdout.readline() == b"range\n"
    running.stdout.close()
    assert running.wait(timeout=120) == 0 and running.stderr.read() == b""


def test_too_little_address_space_is_told_in_words(tmp_path: Path) -> None:
    limit = 300 * 2**20
    code = (
        "import resource, flows.cli.main; resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT)); flows.cli.main.main()"
    )
    command = [sys.executable, "-c", code.replace("LIMIT, LIMIT", f"{limit}, {limit}"), "status"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == memory.EXIT_CODE and "Traceback" not in done.stderr
    assert "address space of this process is limited to 300 MiB (ulimit -v)" in done.stderr


def _unreadable() -> TableError:
    try:
        try:
            raise pa.ArrowMemoryError("realloc of size 28672 failed")
        except pa.ArrowException as error:
            raise TableError(f"part x cannot be read: {error}") from None
    except TableError as error:
        return error


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (ImportError("libnet.so.7: failed to map segment from shared object"), "libnet.so.7 could not be loaded"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "Cannot allocate memory"),
        (RuntimeError("can't start new thread"), "can't start new thread"),
        (_unreadable(), "test_streams could not be loaded or held: realloc of size 28672 failed"),
        (MemoryError(), "could not be loaded or held"),
    ],
)
def test_an_error_for_want_of_memory_says_what_could_not_be_loaded(error: Exception, what: str) -> None:
    assert what in (memory.out_of_memory(error) or "")


def test_other_errors_are_not_put_down_to_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory.out_of_memory(ValueError("x")) is None and memory.out_of_memory(ImportError("no module x")) is None
    monkeypatch.setattr(resource, "getrlimit", lambda _: (memory.LEAST_BYTES, resource.RLIM_INFINITY))
    assert memory.too_little() is None and memory.out_of_memory(TableError("x")) is None
    assert "probably" in (memory.out_of_memory(RuntimeError("a riddle")) or "")
