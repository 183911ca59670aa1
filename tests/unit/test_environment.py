"""What is settled before Prefect is imported: signals, proxies, and servers that are there or are not."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import getproxies, proxy_bypass

import httpx
import pytest

from flows.cli import main as cli
from flows.cli.run import LastingServer
from flows.server import environment
from flows.server.local_server import OwnPages, own_origins
from tasks.foundation import ROOT
from tasks.foundation.errors import ConfigError, StoreError

WORKING = """
import sys, time
from flows.server import environment
environment.end_on_signals()
try:
    print("up", flush=True)
    if sys.argv[2:]:
        print(sys.stdin.readline(), end="", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("the answers are kept", flush=True)
    open(sys.argv[1], "w").close()
    sys.exit(130)
"""


@contextmanager
def working(kept: Path, *arguments: str, **given: object) -> Iterator[subprocess.Popen[bytes]]:
    """A process that works until it is stopped, and then writes a file and to its terminal. With an argument it says
    again one line that it is told."""
    command = [sys.executable, "-c", WORKING, str(kept), *arguments]
    process = subprocess.Popen(command, cwd=ROOT, **given)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def own_terminal() -> None:
    """As ssh does: a session whose terminal is standard input."""
    import fcntl
    import termios

    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_closed_terminal_ends_a_process_cleanly(tmp_path: Path) -> None:
    ours, its = pty.openpty()
    with working(tmp_path / "kept", stdin=its, stdout=its, stderr=its, preexec_fn=own_terminal) as process:
        os.close(its)
        assert os.read(ours, 2) == b"up"
        os.close(ours)
        assert process.wait(60) == 130
    assert (tmp_path / "kept").exists()


def test_what_was_started_under_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    nohup = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN), "stdout": subprocess.PIPE}
    with working(tmp_path / "kept", "echo", stdin=subprocess.PIPE, **nohup) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        process.stdin.write(b"still there?\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"still there?\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 130


@pytest.mark.parametrize("given", ["", "intern.example", "127.0.0.1, intern.example"])
def test_this_machine_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://proxy.example:3128")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, given)
    environment.settle()
    assert all(proxy_bypass(host) for host in ("localhost", "127.0.0.1", "127.0.0.1:4200"))
    assert bool(proxy_bypass("intern.example")) is ("intern" in given)
    assert getproxies()["http"] == "http://proxy.example:3128"
    assert not proxy_bypass("api.example")
    with httpx.Client() as client:
        chosen = [
            client._transport_for_url(httpx.URL(f"http://{host}/")) for host in ("127.0.0.1", "[::1]", "localhost")
        ]
        assert chosen == [client._transport] * 3
        assert client._transport_for_url(httpx.URL("http://api.example/")) is not client._transport


class Another(BaseHTTPRequestHandler):
    """A program that is no Prefect server."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Silent."""


@contextmanager
def refusing() -> Iterator[int]:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        yield closed.getsockname()[1]


@contextmanager
def silent() -> Iterator[int]:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        yield deaf.getsockname()[1]


@contextmanager
def another() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Another) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize(
    ("listening", "why"),
    [(refusing, "Connection refused"), (silent, "timed out"), (another, "no Prefect server: HTTP 404")],
)
def test_a_server_that_is_not_there_is_one_sentence_without_a_login(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    listening: Callable[[], Iterator[int]],
    why: str,
) -> None:
    monkeypatch.setattr(environment, "PATIENT_SECONDS", 0.5)
    monkeypatch.setenv("COLLOQUY_ARTIFACTS", str(tmp_path))
    with listening() as port:  # type: ignore[attr-defined]
        monkeypatch.setenv("PREFECT_API_URL", f"http://me:secret@127.0.0.1:{port}/api")
        monkeypatch.setattr(sys, "argv", ["colloquy", "run", "--profile", "test", "--only", "scenes"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    written = capsys.readouterr()
    assert ended.value.code == StoreError.exit_code
    (said,) = written.err.splitlines()
    assert f"no Prefect server answers at http://127.0.0.1:{port}/api (PREFECT_API_URL): " in said
    assert why in said
    assert "secret" not in written.out + written.err


class Starting:
    """A process that is still starting, or has ended with a code."""

    def __init__(self, code: int | None = None) -> None:
        self.code = code

    def poll(self) -> int | None:
        return self.code


def test_a_slow_start_is_told_and_its_limit_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 5))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(environment, "answers", lambda _: False)
    monkeypatch.setenv(environment.START_LIMIT, "30")
    told: list[str] = []
    with pytest.raises(StoreError, match=r"still starting after 35 s.*STARTUP_TIMEOUT_SECONDS=60\); see the log"):
        environment.wait_until_it_answers("http://x", Starting(), told.append, "see the log")  # type: ignore[arg-type]
    assert [line.partition(": ")[2][:19] for line in told] == [
        "10 s of at most 30 ",
        "20 s of at most 30 ",
        "30 s of at most 30 ",
    ]
    with pytest.raises(StoreError, match="ended with code 3 as it was starting"):
        environment.wait_until_it_answers("http://x", Starting(3), told.append, "see the log")  # type: ignore[arg-type]
    monkeypatch.setenv(environment.START_LIMIT, "soon")
    with pytest.raises(ConfigError, match="expected a number of seconds, found 'soon'"):
        environment.wait_until_it_answers("http://x", Starting(), told.append, "see the log")  # type: ignore[arg-type]


def test_a_server_may_be_away_for_minutes_and_is_given_up_after_that(monkeypatch: pytest.MonkeyPatch) -> None:
    now, there, told = [0.0], [True], list[str]()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(environment, "trouble_with", lambda _: None if there[0] else "Connection refused")
    server = LastingServer("http://me:secret@x/api", told.append)

    def trouble_at(moment: float, *, up: bool) -> str | None:
        now[0], there[0] = moment, up
        return server.trouble()

    assert [trouble_at(10, up=True), trouble_at(11, up=False), trouble_at(135, up=False)] == [None] * 3
    assert trouble_at(136, up=True) is None
    assert trouble_at(137, up=False) is None
    assert "has not answered for 270 s (Connection refused)" in (trouble_at(136 + 270, up=False) or "")
    assert [("answers again" in line, "secret" in line) for line in told] == [
        (False, False),
        (True, False),
        (False, False),
    ]


def test_prefects_client_tries_for_as_long_as_a_server_may_be_away() -> None:
    tries = int(environment.DEFAULTS["PREFECT_CLIENT_MAX_RETRIES"])
    least = 0.8 * sum(2**number for number in range(1, tries + 1))  # Prefect waits 2, 4, 8 … s, a fifth less at times
    assert 120 < least < environment.AWAY_SECONDS


@pytest.mark.parametrize(
    ("headers", "answered"),
    [
        ({"host": "127.0.0.1:4200"}, True),
        ({"host": "127.0.0.1:4200", "origin": "http://127.0.0.1:4200"}, True),
        ({"host": "127.0.0.1:4200", "origin": "http://localhost:4200"}, True),
        ({"host": "[::1]:4200", "origin": "http://[::1]:4200"}, True),
        ({"host": "127.0.0.1:4200", "origin": "http://localhost:8000"}, False),
        ({"host": "127.0.0.1:4200", "origin": "https://elsewhere.example"}, False),
        ({"host": "127.0.0.1:4200", "origin": "null"}, False),
        ({"host": "elsewhere.example", "origin": "http://elsewhere.example"}, False),
        ({}, False),
    ],
)
def test_a_server_of_ours_answers_programs_and_its_own_pages(headers: dict[str, str], answered: bool) -> None:
    async def nothing(*_: object) -> None:
        """An application that is not asked here."""

    pages = OwnPages(nothing, own_origins(4200), environment.LOOPBACK)
    assert pages.may_ask({name.encode(): value.encode() for name, value in headers.items()}) is answered
