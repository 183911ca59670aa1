"""Whether a server of this machine is up, before anything is asked of it."""

from __future__ import annotations

import socket
from functools import cache
from urllib.parse import urlsplit

from tasks.foundation.llm.request import ModelSpec

KNOCK_SECONDS = 5.0
"""Longer than a lost packet takes to be sent again, more than once."""
PORTS = {"http": 80, "https": 443}


def silent(spec: ModelSpec) -> str | None:
    """That nothing listens where the model should be served, or None. Only this machine is knocked at; other
    endpoints show when they are asked."""
    url = urlsplit(spec.base_url or "")
    if url.hostname not in ("localhost", "127.0.0.1", "::1"):
        return None
    try:
        _knock(url.hostname, url.port or PORTS[url.scheme])
    except OSError as error:
        return f"{spec.alias}: nothing answers at {spec.base_url} ({error.strerror or error}); start its server"
    return None


@cache
def _knock(host: str, port: int) -> None:
    """Once a process at each address that answers, however many models are served there. OSError when none does."""
    socket.create_connection((host, port), timeout=KNOCK_SECONDS).close()
