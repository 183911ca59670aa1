"""Brings up what is missing of a Prefect server with its UI, work pool, deployments and worker, and keeps it up.

The server and the worker are children of this process and end with it; what was there before stays.
Prefect's own `serve()` is not used: restarting it deletes the schedules that users made. The reports folder is shown
as web pages of this machine: what a run's artifact links to, since a browser opens no `file:` link of a page that came
from a server.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from flows.server import environment, local_server, viewing
from flows.server.deployments import POOL, make_deployments
from flows.server.environment import LOOPBACK
from tasks.foundation import FOLDER
from tasks.foundation.errors import BuildBusy, ConfigError, StoreError
from tasks.foundation.store.files import private_file
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.locks import lock

LOOK_SECONDS = 1.0
ASK_EVERY = 5
"""Looks after which the server is asked whether it answers."""

NAME_EVERY = 15
"""Looks after which upcoming runs are named."""

HIGHEST_PORT = 65535
DEATHS_BEFORE_GIVING_UP = 5
LONG_LIVED_SECONDS = 60.0
"""What has lived for so long and ends is started again, however often that happens."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Places:
    """Where `serve` listens: the server, if it starts one, the reports and the viewer (None: the next port, else any
    that is free)."""

    port: int
    reports_port: int | None = None
    host: str = local_server.HOST
    viewer_port: int | None = None

    @property
    def reports_ports(self) -> tuple[int, ...]:
        return (self.reports_port,) if self.reports_port else (min(self.port + 1, HIGHEST_PORT), 0)

    @property
    def viewer_ports(self) -> tuple[int, ...]:
        return (self.viewer_port,) if self.viewer_port else (min(self.port + 2, HIGHEST_PORT), 0)

    @property
    def api(self) -> str:
        """Where programs of this machine find the server."""
        return f"http://{local_server.HOST if self.everywhere else self.host}:{self.port}/api"

    @property
    def everywhere(self) -> bool:
        return self.host in viewing.EVERYWHERE

    @property
    def name(self) -> str:
        """What a browser, also one of elsewhere, calls the host."""
        return socket.gethostname() if self.everywhere else self.host


def serve(places: Places, say: Say, *, redeploy: bool = False) -> None:
    """Bring everything up, say where the UI is, and stay until interrupted. Found running: say what is there.

    Raises ConfigError when a port is another program's, StoreError when something does not start or will not stay up.
    """
    home = environment.server_note().parent
    try:
        with lock(home / "colloquy-serve.lock", "`colloquy serve` of this folder", 0):
            _serve(places, home, say, redeploy)
    except BuildBusy as busy:
        api = environment.noted_server()
        if api is None:
            raise StoreError(f"{busy} It does not answer yet: wait, or look into {home / 'server.log'}.") from None
        os.environ[environment.API_URL] = api
        say(f"Already up: server at {environment.without_login(api)}")
        say(_bring_deployments(api, redeploy))
        say(asyncio.run(_workers()))
        _say_where_runs_write(say)
        say(f"UI: {ui_of(api)}")


def ui_of(api: str) -> str:
    return environment.without_login(api).removesuffix("/api")


def _bring_deployments(api: str, redeploy: bool) -> str:
    with environment.explain_prefect_errors():
        return asyncio.run(make_deployments(api, redeploy=redeploy)).sentence()


def _say_where_runs_write(say: Say) -> None:
    there, here = environment.noted("artifacts"), str(Layout.default().root.absolute())
    if there in (None, here):
        shown = ", ".join(f"{what}: {place}" for what in ("reports", "viewer") if (place := environment.noted(what)))
        say(f"Its runs write to {here}; {shown}")
    else:
        say(f"Its runs write to {there}, not to {here} as commands here do: end it and serve anew to change that.")


async def _workers() -> str:
    """Whether somebody takes the runs."""
    from prefect.client.orchestration import get_client

    async with get_client() as client:
        workers = await client.read_workers_for_work_pool(POOL)
    online = [worker.name for worker in workers if str(worker.status).endswith("ONLINE")]
    return f"workers of pool {POOL}: {', '.join(online)}" if online else f"no worker of pool {POOL} is up"


def _serve(places: Places, home: Path, say: Say, redeploy: bool) -> None:
    environment.end_on_signals()
    layout = Layout.default()
    with ExitStack() as stack, suppress(KeyboardInterrupt):
        server, api = _server(places, home, say)
        if server is not None:
            stack.callback(server.stop)
            environment.wait_until_it_answers(api, server.process, say, f"see {server.log}")
        os.environ[environment.API_URL] = api
        reports_port = stack.enter_context(serve_folder(layout.reports, places.host, places.reports_ports))
        reports = f"http://{places.name}:{reports_port}"
        viewer = stack.enter_context(viewing.serving_pages(layout, places.host, places.viewer_ports))
        stack.enter_context(_noted(api, reports, viewer))
        say(_bring_deployments(api, redeploy))
        worker = _Child("worker", home / "worker.log", _worker)
        stack.callback(worker.stop)
        say(f"worker is up (log: {worker.log}); its runs write to {layout.root.absolute()}")
        say(f"reports: {reports}")
        say(f"viewer: {viewer}")
        say(f"UI: {ui_of(api)}   Ctrl-C stops what was started here.")
        _watch([child for child in (server, worker) if child], api, say)


def _server(places: Places, home: Path, say: Say) -> tuple[_Child | None, str]:
    """A server of ours that is coming up, unless one answers that was configured or is at the port; and its API."""
    environment.check_configured()
    configured = os.environ.get(environment.API_URL)
    api = configured or places.api
    if configured or environment.answers(api):
        say(f"server found at {environment.without_login(api)}")
        return None, api
    _refuse_taken(places.port)
    # else the page asks port 4200 of the reader's machine, whatever the server's are
    os.environ.setdefault("PREFECT_UI_API_URL", f"http://{places.name}:{places.port}/api")
    log = home / "server.log"
    say(f"starting a server at {api} (log: {log})")
    if places.host not in environment.LOOPBACK:
        say(f"It listens at {places.host}: whoever reaches this machine can start runs and read what they say.")
    return _Child("server", log, lambda output: local_server.start(places.port, places.host, output=output)), api


def _worker(output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Prefect's worker, in a session of its own: Ctrl-C is ours to pass on."""
    return subprocess.Popen(
        [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL, "--type", "process"],
        cwd=FOLDER,
        env={**os.environ, "PWD": str(FOLDER)},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


class _Child:
    """A process that is started again when it ends by itself."""

    def __init__(self, name: str, log: Path, start: Callable[[IO[bytes]], subprocess.Popen[bytes]]) -> None:
        self.name = name
        self.log = log
        self._start = start
        self._deaths = 0
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._since = time.monotonic()
        with self.log.open("ab") as output:
            return self._start(output)

    def restart_if_ended(self, say: Say) -> None:
        """Start it again, and say so, if it has ended. StoreError when it will not stay up."""
        code = self.process.poll()
        if code is None:
            return
        self._deaths = 1 if time.monotonic() - self._since > LONG_LIVED_SECONDS else self._deaths + 1
        if self._deaths > DEATHS_BEFORE_GIVING_UP:
            raise StoreError(
                f"the {self.name} ended {self._deaths} times, each time soon (code {code}); see {self.log}"
            )
        say(f"the {self.name} ended by itself (code {code}, log: {self.log}); it is started again")
        time.sleep(self._deaths - 1)
        self.process = self._started()

    def stop(self) -> None:
        local_server.stop(self.process)


def _watch(children: list[_Child], api: str, say: Say) -> None:
    """Until interrupted, keep up what was started here, say when the server goes or comes back, and name its runs."""
    here = True
    for second in itertools.count():
        time.sleep(LOOK_SECONDS)
        for child in children:
            child.restart_if_ended(say)
        if second % ASK_EVERY == 0 and (environment.trouble_with(api) is None) is not here:
            here = not here
            say(f"the server at {environment.without_login(api)} {'answers again' if here else 'does not answer'}")
        if second % NAME_EVERY == 0 and here:
            _name_upcoming()


def _name_upcoming() -> None:
    import httpx

    from flows.identity import name_upcoming

    with suppress(httpx.HTTPError):  # the next time will do
        asyncio.run(name_upcoming())


@contextmanager
def _noted(api: str, reports: str, viewer: str) -> Iterator[None]:
    """While the block runs, other commands of this folder find the server."""
    note = environment.server_note()
    artifacts = str(Layout.default().root.absolute())
    facts = {"api": api, "pid": os.getpid(), "artifacts": artifacts, "reports": reports, "viewer": viewer}
    private_file(note).write_text(json.dumps(facts), encoding="utf-8")  # a configured address may have a login in it
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def _refuse_taken(port: int) -> None:
    with socket.socket() as probe:
        if probe.connect_ex((local_server.HOST, port)) == 0:
            raise ConfigError(
                f"port {port} belongs to another program that is no Prefect server; try --port {port + 1}"
            )


class ReportPages(SimpleHTTPRequestHandler):
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
def serve_folder(folder: Path, host: str, ports: Sequence[int]) -> Iterator[int]:
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
            return ThreadingHTTPServer((host, port), partial(ReportPages, directory=str(folder)))
        except OSError as error:
            trouble = error.strerror
    raise ConfigError(f"the reports cannot be shown at port {ports[-1]} ({trouble}): try another --reports-port")
