"""Prefect's environment, settled before Prefect is imported, and the server that is there, if any.

Whatever the user has set stays. Prefect's own files go to `.prefect` in the checkout, so that a clone
never touches, or is touched by, another project's server.
"""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from pathlib import Path

from tasks.foundation.checkout import ROOT

OUR_LOGGERS = ("flows", "tasks")
"""The loggers above all of ours."""

DEFAULTS = {
    "PREFECT_HOME": str(ROOT / ".prefect"),
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    # A temporary server on a busy machine takes its time; the default of 20 s is too short.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "90",
    "PREFECT_WORKER_QUERY_SECONDS": "2",
    # What the stages say while they work stands in the log of their run.
    "PREFECT_LOGGING_EXTRA_LOGGERS": ",".join(OUR_LOGGERS),
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    # A run whose machine died is noticed after five of these (see flows/serving.py).
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
}

HEALTH_SECONDS = 2.0
API_URL = "PREFECT_API_URL"


def settle() -> None:
    """Set what the user has not set. Call it before Prefect is imported: it reads these once."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)


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
    try:
        url = json.loads(server_note().read_text(encoding="utf-8"))["api"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return url if answers(url) else None


def answers(api_url: str) -> bool:
    """Whether a Prefect API answers at this address within two seconds."""
    try:
        with urllib.request.urlopen(f"{api_url}/health", timeout=HEALTH_SECONDS) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


def end_on_signals() -> None:
    """Both Ctrl-C and a polite kill end the process with KeyboardInterrupt, so that it ends cleanly.

    A shell starts background jobs with Ctrl-C ignored; this undoes that, or the kill would be ignored too.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))


def silence_reported_errors() -> None:
    """Prefect logs the error of a failed run with its traceback; the command says it once, without."""
    import logging

    def to_terminal(record: logging.LogRecord) -> bool:
        return not record.name.startswith(("prefect.flow_runs", "prefect.task_runs"))

    for handler in logging.getLogger().handlers:
        handler.addFilter(to_terminal)


def send_what_waits() -> None:
    """Prefect sends log lines and events in the background; wait a little for the last ones to be sent."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogHandler

    APILogHandler().flush()
    EventsWorker.drain_all(timeout=5)
