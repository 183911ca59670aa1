"""The reports folder as web pages of this machine: what a run's artifact links to, since a browser opens no `file:`
link of a page that came from a server."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from flows.server.environment import LOOPBACK
from tasks.foundation.errors import ConfigError


class Pages(SimpleHTTPRequestHandler):
    """Files of one folder, to be read only. A page of elsewhere whose name was made to mean this machine is refused;
    any other cannot read what comes back, for nothing here allows it to."""

    def do_GET(self) -> None:
        if self._by_own_name():
            super().do_GET()

    def do_HEAD(self) -> None:
        if self._by_own_name():
            super().do_HEAD()

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")  # a report is written anew under the same name
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Silent: the terminal is `serve`'s."""

    def _by_own_name(self) -> bool:
        assert isinstance(self.server, ThreadingHTTPServer)
        elsewhere = self.server.server_name not in LOOPBACK and self.server.server_address[0] not in LOOPBACK
        own = elsewhere or urlsplit(f"//{self.headers.get('Host', '')}").hostname in LOOPBACK
        if not own:
            self.send_error(403, "This server answers by its own name only")
        return own


@contextmanager
def serving(folder: Path, host: str, ports: Sequence[int]) -> Iterator[int]:
    """While the block runs, a browser finds the folder at the yielded port, the first of these that is free (0: any).
    ConfigError when none is."""
    folder.mkdir(parents=True, exist_ok=True)
    server = _listening(folder, host, ports)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def _listening(folder: Path, host: str, ports: Sequence[int]) -> ThreadingHTTPServer:
    for port in ports:
        try:
            return ThreadingHTTPServer((host, port), partial(Pages, directory=str(folder)))
        except OSError as error:
            trouble = error.strerror
    raise ConfigError(f"the reports cannot be shown at port {ports[-1]} ({trouble}): try another --reports-port")
