"""A Prefect server as a process of this machine: `python -m flows.server.local_server PORT`.

Prefect's own command would answer every web page that the user's browser has open: its CORS rule is `*`, and
WebSockets (events, logs) know no such rule at all. This one answers its own pages and programs, nobody else.

A command that finds no server up starts a temporary one. Prefect would start one itself, but in the terminal's process
group: Ctrl-C would stop the server first, and the run would then try for minutes to tell it that it was interrupted.
This one is out of Ctrl-C's reach, starts while the command is still importing, and ends with its command however that
ends: it reads a pipe that nobody writes to, and the pipe closes with the command. Its records are in the database of
`PREFECT_HOME`, where `colloquy serve` shows them later.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from flows.server import environment
from flows.server.environment import LOOPBACK
from tasks.foundation import FOLDER

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

HOST = "127.0.0.1"
ORIGINS = "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"
STOP_SECONDS = 15.0
WHERE_TO_LOOK = (
    "`colloquy serve` starts a lasting one and keeps its log; PREFECT_API_URL names one that is there already"
)


def start(
    port: int, host: str = HOST, *, temporary: bool = False, output: IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """The process of a server that is coming up, in a session of its own: Ctrl-C is ours to pass on. A `temporary` one
    has no UI, and ends with us however we end."""
    quiet = {"PREFECT_SERVER_UI_ENABLED": "false", "PREFECT_SERVER_LOGGING_LEVEL": "ERROR"} if temporary else {}
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "flows.server.local_server",
            str(port),
            "--host",
            host,
            *(["--temporary"] if temporary else []),
        ],
        cwd=FOLDER,
        env={ORIGINS: ",".join(own_origins(port)), **os.environ, **quiet, "PWD": str(FOLDER)},
        stdin=subprocess.PIPE if temporary else subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
        start_new_session=True,
    )


def stop(child: subprocess.Popen[bytes], by: signal.Signals = signal.SIGINT) -> None:
    """End a child that has a session of its own, by force if it takes longer than a quarter of a minute."""
    if child.poll() is not None:
        return
    child.send_signal(by)
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def own_origins(port: int) -> tuple[str, ...]:
    """The web pages that may ask the server of this port: its own, by either name of the machine."""
    return f"http://{HOST}:{port}", f"http://localhost:{port}"


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class TemporaryServer:
    """The server of this command, and its API's address."""

    api: str
    process: subprocess.Popen[bytes]
    look_seconds: ClassVar[float] = 0.5

    def wait(self, say: Callable[[str], None]) -> None:
        """Until it answers; StoreError when it does not come up."""
        environment.wait_until_it_answers(self.api, self.process, say, WHERE_TO_LOOK)

    def trouble(self) -> str | None:
        """That it has ended, or None."""
        code = self.process.poll()
        return None if code is None else f"the temporary Prefect server has ended (code {code})"


@contextmanager
def temporary_server() -> Iterator[TemporaryServer]:
    """Start the server; it may not answer yet."""
    port = free_port()
    process = start(port, temporary=True)
    try:
        yield TemporaryServer(f"http://{HOST}:{port}/api", process)
    finally:
        stop(process, signal.SIGTERM)


class OwnPages:
    """Passes on what programs ask, and pages of these origins or of the server itself; refuses any other page.

    `hosts` are the names that the server is asked by: a foreign page whose name was made to mean this machine is
    told by its name. None: any.
    """

    def __init__(self, app: ASGIApp, origins: Collection[str], hosts: Collection[str] | None) -> None:
        self._app = app
        self._origins = origins
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self.may_ask(dict(scope["headers"])):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"This server answers its own pages only.\n"})

    def may_ask(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether a request with these headers comes from no page, or from one that may ask."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if self._hosts is not None and urlsplit(f"//{host}").hostname not in self._hosts:
            return False
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        return not origin or "*" in self._origins or origin in self._origins or urlsplit(origin).netloc == host


def _end_with_the_command() -> None:
    """Reads until the other end of the pipe is gone, then asks this process to end."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main(arguments: list[str] | None = None) -> None:
    """Serve until terminated; a temporary server until it is left alone, too."""
    parser = argparse.ArgumentParser(prog="python -m flows.server.local_server")
    parser.add_argument("port", type=int)
    parser.add_argument("--host", default=HOST)
    parser.add_argument("--temporary", action="store_true")
    given = parser.parse_args(arguments)

    import uvicorn
    from prefect.server.api.server import create_app
    from prefect.settings import get_current_settings

    if given.temporary:
        threading.Thread(target=_end_with_the_command, daemon=True).start()
    server = get_current_settings().server
    origins = {origin.strip().lower() for origin in server.api.cors_allowed_origins.split(",")}
    hosts = LOOPBACK if given.host in LOOPBACK else None
    uvicorn.run(
        OwnPages(create_app(ephemeral=given.temporary, final=True), origins, hosts),
        host=given.host,
        port=given.port,
        log_level=server.logging_level.lower(),
        lifespan="on",
        ws_ping_interval=server.api.websocket_ping_interval,
        ws_ping_timeout=server.api.websocket_ping_timeout,
        timeout_keep_alive=server.api.keepalive_timeout,
    )


if __name__ == "__main__":
    main()
