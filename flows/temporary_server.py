"""A Prefect server for the length of one command, where no other is up.

Prefect would start one itself, but in the terminal's process group: Ctrl-C would stop the server first, and the
run would then try for minutes to tell it that it was interrupted. This one is out of Ctrl-C's reach, starts
while the command is still importing, and ends with its command however that ends: it reads a pipe that nobody
writes to, and the pipe closes with the command.

Its records are in the database of `PREFECT_HOME`, where `colloquy serve` shows them later.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from flows import environment
from tasks.foundation.checkout import ROOT
from tasks.foundation.errors import StoreError

HOST = "127.0.0.1"
START_SECONDS = 90.0
STOP_SECONDS = 10.0


@contextmanager
def temporary_server() -> Iterator[tuple[str, Callable[[], None]]]:
    """Start the server; yields its API's address, and a function that waits until it answers.

    The function raises StoreError when it does not come up.
    """
    port = _free_port()
    api = f"http://{HOST}:{port}/api"
    server = subprocess.Popen(
        [sys.executable, "-m", "flows.temporary_server", str(port)],
        cwd=ROOT,
        env={**os.environ, "PREFECT_SERVER_UI_ENABLED": "false", "PREFECT_SERVER_LOGGING_LEVEL": "ERROR"},
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield api, lambda: _wait_until_it_answers(api, server)
    finally:
        server.terminate()
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_until_it_answers(api: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not environment.answers(api):
        if server.poll() is not None or time.monotonic() > deadline:
            raise StoreError(
                f"the temporary Prefect server did not come up (exit code {server.poll()}). `colloquy serve` starts a "
                "lasting one and keeps its log; PREFECT_API_URL names one that is there already."
            )
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _end_with_the_command() -> None:
    """Reads until the other end of the pipe is gone, then asks this process to end."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main(port: int) -> None:
    """Serve the API, without the UI, until terminated or left alone."""
    import uvicorn
    from prefect.server.api.server import create_app

    threading.Thread(target=_end_with_the_command, daemon=True).start()
    uvicorn.run(create_app(ephemeral=True, final=True), host=HOST, port=port, log_level="error", lifespan="on")


if __name__ == "__main__":
    main(int(sys.argv[1]))
