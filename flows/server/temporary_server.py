"""A Prefect server for the length of one command, where no other is up.

Prefect would start one itself, but in the terminal's process group: Ctrl-C would stop the server first, and the
run would then try for minutes to tell it that it was interrupted. This one is out of Ctrl-C's reach, starts
while the command is still importing, and ends with its command however that ends: it reads a pipe that nobody
writes to, and the pipe closes with the command.

Its records are in the database of `PREFECT_HOME`, where `colloquy serve` shows them later.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from flows.server import environment, local_server

WHERE_TO_LOOK = (
    "`colloquy serve` starts a lasting one and keeps its log; PREFECT_API_URL names one that is there already"
)


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
    port = local_server.free_port()
    process = local_server.start(port, temporary=True)
    try:
        yield TemporaryServer(f"http://{local_server.HOST}:{port}/api", process)
    finally:
        local_server.stop(process, signal.SIGTERM)
