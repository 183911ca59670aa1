"""Prefect's environment, settled before Prefect is imported, and the server that is there, if any.

Whatever the user has set stays. Prefect's own files go to `.prefect` in the checkout, or in the current folder of an
installed package, so that a clone never touches, or is touched by, another project's server.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.foundation import FOLDER
from tasks.foundation.errors import ConfigError, StoreError

API_URL = "PREFECT_API_URL"
START_LIMIT = "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"

OUR_LOGGERS = ("flows", "tasks")
"""The loggers above all of ours."""

DEFAULTS = {
    "PREFECT_HOME": str(FOLDER / ".prefect"),
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    # A server on a busy machine takes its time, and says that it does; the default of 20 s is too short.
    START_LIMIT: "300",
    "PREFECT_WORKER_QUERY_SECONDS": "2",
    # What the stages say while they work stands in the log of their run.
    "PREFECT_LOGGING_EXTRA_LOGGERS": ",".join(OUR_LOGGERS),
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    # A server may be away for minutes before a run gives it up: tries after 2, 4, 8 … 128 s (see AWAY_SECONDS).
    "PREFECT_CLIENT_MAX_RETRIES": "7",
    # A run whose machine died is noticed after a few of these (see flows/server/deployments.py).
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
}

HEALTH_SECONDS = 2.0
PATIENT_SECONDS = 10.0
"""For a server that somebody named: it may be far away, or busy."""

AWAY_SECONDS = 270.0
"""For how long a server may be away while a run goes on: a little longer than the tries of Prefect's client last."""

SAY_EVERY_SECONDS = 10.0
REPORTED = ("prefect.flow_runs", "prefect.task_runs", "prefect._internal.concurrency", "websockets")
"""Loggers of what a command says itself."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def settle() -> None:
    """Set what the user has not set. Call it before Prefect is imported: it reads these once."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    spare_loopback()


def spare_loopback() -> None:
    """What listens on this machine is asked directly, whatever proxy the environment names: the proxy's own loopback
    is another machine's."""
    named = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    hosts = [host for each in named.split(",") if (host := each.strip())]
    spared = ",".join(dict.fromkeys([*hosts, *LOOPBACK]))
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = spared  # the smaller one wins where both are read


def quiet_terminal() -> None:
    """Prefect's log lines stay off the terminal but for errors; the server still gets all of them."""
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "ERROR")


def server_note() -> Path:
    """The file in which `colloquy serve` leaves the address of its server."""
    return Path(os.environ.get("PREFECT_HOME") or DEFAULTS["PREFECT_HOME"]).expanduser() / "colloquy-serve.json"


def server_url() -> str | None:
    """The API of the server that runs go to: the configured one, else that of `colloquy serve` if it answers."""
    return os.environ.get(API_URL) or noted_server()


def noted_server() -> str | None:
    """The API address that `colloquy serve` left, if a server answers there."""
    url = noted("api")
    return url if url and answers(url) else None


def noted(what: str) -> str | None:
    """What `colloquy serve` left word of: the `api` of its server, the `artifacts` folder that its runs write to, the
    address of the `reports`; None when it did not."""
    try:
        return str(json.loads(server_note().read_text(encoding="utf-8"))[what])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def answers(api_url: str) -> bool:
    """Whether a Prefect API answers at this address within two seconds."""
    return trouble_with(api_url, HEALTH_SECONDS) is None


def trouble_with(api_url: str, seconds: float | None = None) -> str | None:
    """Why no Prefect API can be asked at this address, or None. A server that wants a key first counts as one: whether
    it takes ours is for Prefect to say."""
    try:
        with urllib.request.urlopen(f"{without_login(api_url)}/health", timeout=seconds or PATIENT_SECONDS) as reply:
            return None if reply.status == 200 else f"HTTP {reply.status}"
    except urllib.error.HTTPError as error:
        return None if error.code in (401, 403) else f"what listens there is no Prefect server: HTTP {error.code}"
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return str(getattr(reason, "strerror", None) or reason)


def check_configured() -> None:
    """StoreError when nothing answers at the server that PREFECT_API_URL names, if it names one."""
    configured = os.environ.get(API_URL)
    if configured and (trouble := trouble_with(configured)):
        raise StoreError(
            f"no Prefect server answers at {without_login(configured)} (PREFECT_API_URL): {trouble}. Start it, or "
            "unset the variable: a run then brings a server of its own."
        )


@contextmanager
def explain_prefect_errors() -> Iterator[None]:
    """Within it, what Prefect's client raises becomes one sentence of a StoreError."""
    import httpx

    try:
        yield
    except httpx.HTTPError as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StoreError(
            f"Prefect's server could not be used: {without_login(first_line)}. What was done is kept; the same "
            "command goes on."
        ) from None


def without_login(text: str) -> str:
    """The text as it may be shown: its addresses less a user's name and password.

    >>> without_login("nothing at https://me:secret@host/api")
    'nothing at https://host/api'
    """
    return re.sub(r"//[^/\s]*@", "//", text)


def wait_until_it_answers(
    api: str, server: subprocess.Popen[bytes], say: Callable[[str], None], where_to_look: str
) -> None:
    """Returns once the server that was just started answers; says every ten seconds that it is waited for.

    StoreError when it ends, or takes longer than PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS.
    """
    limit, begun, said = start_limit_seconds(), time.monotonic(), SAY_EVERY_SECONDS
    while not answers(api):
        waited = time.monotonic() - begun
        if server.poll() is not None:
            raise StoreError(f"the Prefect server ended with code {server.poll()} as it was starting; {where_to_look}")
        if waited > limit:
            raise StoreError(
                f"the Prefect server was still starting after {waited:.0f} s: a busy or slow machine may need more "
                f"({START_LIMIT}={2 * limit:.0f}); {where_to_look}"
            )
        if waited >= said:
            say(f"The Prefect server is still starting: {waited:.0f} s of at most {limit:.0f} s ({START_LIMIT}).")
            said += SAY_EVERY_SECONDS
        time.sleep(0.1)


def start_limit_seconds() -> float:
    """How long a server that we start may take; ConfigError for what is no number of seconds."""
    found = os.environ.get(START_LIMIT, DEFAULTS[START_LIMIT])
    try:
        limit = float(found)
    except ValueError:
        limit = -1
    if not 0 < limit < float("inf"):
        raise ConfigError(f"{START_LIMIT}: expected a number of seconds, found {found!r}")
    return limit


def end_on_signals() -> None:
    """Ctrl-C, a polite kill and the terminal's end all end the process with KeyboardInterrupt, so that it ends cleanly.

    A shell starts background jobs with Ctrl-C ignored; this undoes that, or the kill would be ignored too. What was
    started under `nohup` is to outlive its terminal, and does.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        terminal = [stream for stream in (0, 1, 2) if os.isatty(stream)]
        signal.signal(signal.SIGHUP, lambda *_: _end_without(terminal))


def _end_without(terminal: list[int]) -> None:
    """The terminal is gone: what would still be written to it goes nowhere, or the writing would end us first. Shell
    and kernel both tell of it; a second interrupt would give up answers that are under way."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in terminal:
        os.dup2(nowhere, stream)
    signal.raise_signal(signal.SIGINT)


def silence_reported_errors() -> None:
    """Prefect logs the error of a failed run with its traceback, and every event that found no server; the command
    says both once, without."""
    import logging

    def to_terminal(record: logging.LogRecord) -> bool:
        return not record.name.startswith(REPORTED)

    for logger in ("", "prefect._internal", "websockets"):
        for handler in logging.getLogger(logger).handlers:
            handler.addFilter(to_terminal)


def send_what_waits() -> None:
    """Prefect sends log lines and events in the background; wait a little for the last ones to be sent."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogHandler

    APILogHandler().flush()
    EventsWorker.drain_all(timeout=5)
