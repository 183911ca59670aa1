"""Serves the viewer's pages: to this machine, unless told otherwise, and to its own pages only."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from flows.server.environment import LOOPBACK
from flows.server.local_server import OwnPages
from tasks.foundation.errors import ConfigError
from tasks.foundation.store.layout import Layout

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

PORT = 4300
"""Where the pages are looked for first."""

EVERYWHERE = ("0.0.0.0", "::")


def make_pages(layout: Layout, host: str) -> ASGIApp:
    """The pages, which no page of elsewhere may ask for; on a loopback address also not under another name."""
    from tasks.viewer.app import make_app

    return OwnPages(make_app(layout), (), LOOPBACK if host in LOOPBACK else None)


def listen(host: str, ports: Sequence[int]) -> socket.socket:
    """A socket that listens at the first of these ports that is free (0: any). ConfigError when none is."""
    trouble: OSError | None = None
    for port in ports:
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            found = socket.socket(family)
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((host, port))
            found.listen()
            return found
        except OSError as error:
            trouble = error
            found.close()
    said = (trouble.strerror or str(trouble)) if trouble else "no port was named"
    raise ConfigError(f"the viewer cannot listen at {host}, port {ports[-1]} ({said}): try another --port")


def address_of(listening: socket.socket, host: str) -> str:
    """What a browser is to open."""
    name = socket.gethostname() if host in EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}"


def serve_pages(layout: Layout, host: str, listening: socket.socket) -> None:
    """Until interrupted."""
    with suppress(KeyboardInterrupt):
        _server(layout, host).run([listening])


@contextmanager
def serving_pages(layout: Layout, host: str, ports: Sequence[int]) -> Iterator[str]:
    """While the block runs, a browser finds the pages at the yielded address."""
    listening = listen(host, ports)
    server = _server(layout, host)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield address_of(listening, host)
    finally:
        server.should_exit = True
        thread.join()


def _server(layout: Layout, host: str) -> uvicorn.Server:
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            make_pages(layout, host), log_level="warning", lifespan="off", server_header=False, proxy_headers=False
        )
    )
