"""Real processes against one real Prefect server a session, in temporary folders."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkstemp
from typing import cast

import pytest
from filelock import FileLock

from flows.server import environment, local_server
from tasks.foundation import ROOT
from tasks.foundation.store.commits import Commit, commits_of
from tasks.foundation.store.layout import Layout
from tests.flow.warm import Parent, Process

PATIENCE_SECONDS = 180


def until(true: Callable[[], bool], process: Process | None = None) -> None:
    """Waits for something to come true, as long as the process runs that is to bring it about."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert process is None or process.poll() is None, f"it has ended: {process.communicate()[0]}"
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


@dataclass(frozen=True)
class Colloquy:
    """`colloquy` as processes of their own over one artifacts folder; `module` is what `python -m` runs."""

    folder: Path
    module: str
    environment: Mapping[str, str]
    settings: tuple[str, ...] = ()
    parent: Parent | None = None
    """What its processes are forked from, where that makes no difference."""

    @property
    def layout(self) -> Layout:
        return Layout(self.folder / "artifacts")

    @property
    def asked(self) -> list[str]:
        """What the toys' model was asked since `forget`."""
        file = self.folder / "asked"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def forget(self) -> None:
        (self.folder / "asked").unlink(missing_ok=True)

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """`colloquy run` with the settings of this chain, to its end."""
        return self.command("run", *self._run_arguments(arguments), **environment)

    def command(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        process = self._start(arguments, environment)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        return subprocess.CompletedProcess(arguments, cast(int, process.returncode), out, err)

    def start(self, *arguments: str, **environment: str) -> Process:
        """`colloquy run`, left running; its errors stand in its output."""
        return self._start(("run", *self._run_arguments(arguments)), environment, in_one=True)

    def _start(self, arguments: Sequence[str], environment: Mapping[str, str], *, in_one: bool = False) -> Process:
        given = self._environment(environment)
        out = Path(mkstemp(dir=self.folder)[1])
        err = out if in_one else Path(mkstemp(dir=self.folder)[1])
        if self.parent and self.parent.suits(arguments, given):
            return self.parent.start(self.module, arguments, given, out, err)
        command = [sys.executable, "-m", self.module, *arguments]
        with out.open("ab") as stdout, err.open("ab") as stderr:
            process = subprocess.Popen(
                command, env=given, cwd=ROOT, stdout=stdout, stderr=stderr, preexec_fn=heed_the_terminal
            )
        return Process(process.pid, process.poll, out, err)

    def end_after(self, replies: int, by: signal.Signals, *arguments: str) -> str:
        """Start a slow run, send it a signal once the cache has so many replies; its output. 0: at once in prepare."""
        process = self.start(*arguments, COLLOQUY_SCRIPTED_LATENCY="0.1")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.replies()) < replies and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert process.poll() is None, f"it ended before it had {replies} replies: {process.communicate()[0]}"
        process.send_signal(by)
        return process.communicate(timeout=PATIENCE_SECONDS)[0]

    def replies(self) -> set[str]:
        """Keys of the replies whose cache write is committed."""
        file = self.layout.cache / "replies.sqlite"
        if not file.exists():
            return set()
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
            try:
                return {key for (key,) in connection.execute("select key from replies")}
            except sqlite3.OperationalError:
                return set()

    def owner_of(self, stage: str, build: str = "main") -> str:
        """What the lock of a stage says of its owner; empty when nobody holds it."""
        lock = self.layout.lock(build, stage)
        return lock.read_text(encoding="utf-8") if lock.exists() else ""

    def commits(self, build: str = "main") -> dict[str, Commit]:
        return commits_of(self.layout, build)

    def hashes(self, build: str = "main") -> dict[str, str]:
        """Content hash of every committed table, but for the ledger, which also says how often was tried."""
        return {
            f"{stage}.{table}": commit.table_hash(table)
            for stage, commit in self.commits(build).items()
            for table in commit.tables
            if table != "llm_calls"
        }

    def _run_arguments(self, arguments: tuple[str, ...]) -> list[str]:
        given = {word.partition("=")[0] for word in arguments}
        chain = [setting for setting in self.settings if setting.partition("=")[0] not in given]
        settings = [word for setting in chain for word in ("--set", setting)]
        return ["--profile", "test", *settings, *arguments]

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        mine = {"COLLOQUY_ARTIFACTS": str(self.layout.root), "TOY_ASKED": str(self.folder / "asked")}
        return {**os.environ, **self.environment, **mine, **more}


@dataclass
class PrefectServer:
    """A server with its own home; `environment` makes a process use it."""

    home: Path
    api: str
    environment: dict[str, str] = field(default_factory=dict)


def heed_the_terminal() -> None:
    """For a process that is to end with its terminal, though the tests may run under `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    """One for all processes of a test run: each takes seconds to start, and a share of a core as long as it is up."""
    place = tmp_path_factory.getbasetemp()
    shared = place.parent if "PYTEST_XDIST_WORKER" in os.environ else place
    home = shared / "prefect"
    patch = pytest.MonkeyPatch()
    patch.setenv("PREFECT_HOME", str(home))
    environment.settle()
    with FileLock(shared / "prefect.lock"):
        users = read_users(shared)
        if not users:
            home.mkdir(exist_ok=True)
            port = local_server.free_port()
            server = start_server(port, home)
            users = {"port": port, "pid": server.pid, "users": 0}
        write_users(shared, {**users, "users": users["users"] + 1})
    api = f"http://127.0.0.1:{users['port']}/api"
    yield PrefectServer(home, api, {"PREFECT_HOME": str(home), "PREFECT_API_URL": api})
    with FileLock(shared / "prefect.lock"):
        users = read_users(shared)
        write_users(shared, {**users, "users": users["users"] - 1} if users["users"] > 1 else {})
        if users["users"] == 1:
            with suppress(ProcessLookupError):
                os.kill(users["pid"], signal.SIGTERM)
    patch.undo()


def read_users(shared: Path) -> dict[str, int]:
    """Port and process of the server that is up, and how many test processes use it; empty where none is."""
    file = shared / "prefect.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def write_users(shared: Path, users: Mapping[str, int]) -> None:
    (shared / "prefect.json").write_text(json.dumps(users), encoding="utf-8")


def start_server(port: int, home: Path) -> subprocess.Popen[bytes]:
    """A server of ours that answers; `home` is what PREFECT_HOME names."""
    log = home / "server.log"
    with log.open("ab") as output:
        server = local_server.start(port, output=output)
    environment.wait_until_it_answers(f"http://127.0.0.1:{port}/api", server, print, f"see {log}")
    return server


@contextmanager
def server_at(port: int, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server of ours as long as it is needed."""
    server = start_server(port, home)
    try:
        yield server
    finally:
        local_server.stop(server)


@pytest.fixture(scope="session")
def parent(prefect_server: PrefectServer) -> Iterator[Parent]:
    """What the processes of `colloquy run` are forked from: each would import for seconds."""
    with closing(Parent({**os.environ, **prefect_server.environment})) as parent:
        yield parent


@pytest.fixture
def new_toy(tmp_path: Path, prefect_server: PrefectServer, parent: Parent) -> Callable[[str], Colloquy]:
    """Makes a chain of two toy stages (40 rows, 32 items, two questions each) with a folder of its own."""
    settings = (
        "scenes.sample={en: 20, zh: 20}",
        "llm.retry_attempts=1",
        "llm.retry_base_seconds=0",
        "curation.shard_rows=5",
    )

    def new(name: str) -> Colloquy:
        (tmp_path / name).mkdir()
        return Colloquy(tmp_path / name, "tests.flow.toy", prefect_server.environment, settings, parent)

    return new


@pytest.fixture
def toy(new_toy: Callable[[str], Colloquy]) -> Colloquy:
    return new_toy("toy")
