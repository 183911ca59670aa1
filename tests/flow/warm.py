"""`python -m` of a module as a process of its own whose imports are done: it is forked from one that has imported what
`colloquy run` needs, and has run nothing."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from flows.server import environment
from tasks.foundation import ROOT

OF_A_RUN = ("flows.cli.run", "flows.runs", "prefect.main", "fastapi.encoders", "pandas")
LOOK_SECONDS = 0.02


class Parent:
    """The process that others are forked from, in the environment of its imports."""

    def __init__(self, given: Mapping[str, str], imported: Sequence[str] = OF_A_RUN) -> None:
        self._given = dict(given)
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, *imported],
            env=self._given,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def suits(self, arguments: Sequence[str], given: Mapping[str, str]) -> bool:
        """Whether Prefect, which reads its settings once, when it is imported, has read those of this process."""
        return "--verbose" not in arguments and of_prefect(given) == of_prefect(self._given)

    def start(self, module: str, arguments: Sequence[str], given: Mapping[str, str], out: Path, err: Path) -> Process:
        """`python -m module`; what it writes goes to the end of two files."""
        pid = self.ask([module, list(arguments), dict(given), str(out), str(err)])
        return Process(pid, partial(self.ask, pid), out, err)

    def ask(self, question: Any) -> Any:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{json.dumps(question)}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@dataclass
class Process:
    """A process, as `subprocess.Popen` has it, whose output can be read while it runs; `ask` gives its exit code."""

    pid: int
    ask: Callable[[], int | None]
    out: Path
    err: Path
    returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self.ask()
        return self.returncode

    def send_signal(self, by: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, by)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float = 60) -> tuple[str, str]:
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                self.kill()
                raise subprocess.TimeoutExpired(str(self.pid), timeout, self.out.read_text(encoding="utf-8"))
            time.sleep(LOOK_SECONDS)
        return self.out.read_text(encoding="utf-8"), self.err.read_text(encoding="utf-8")


def of_prefect(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if name.startswith("PREFECT_")}


def serve() -> None:
    """Forks what is asked for and tells its process id, or says how a process has ended; returns in each that was
    forked, as what it is to be."""
    for line in sys.stdin:
        question = json.loads(line)
        if isinstance(question, int):
            answer = exit_code(question)
        elif not (answer := os.fork()):
            become(*question)
            return
        print(json.dumps(answer), flush=True)


def exit_code(pid: int) -> int | None:
    """That of a process that has ended, a signal's number below zero; None while it runs."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def become(module: str, arguments: list[str], given: Mapping[str, str], out: str, err: str) -> None:
    """Take the streams, the environment and the arguments of a process that has just been started, and run."""
    opened = (os.open(os.devnull, os.O_RDONLY), *(os.open(file, os.O_WRONLY | os.O_APPEND) for file in (out, err)))
    for place, descriptor in enumerate(opened):
        os.dup2(descriptor, place)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(given)
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    environment.settle()
    environment.quiet_terminal()
    for name in sys.argv[1:]:
        import_module(name)
    serve()
