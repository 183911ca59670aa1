"""A flow run in this process, with its progress on the terminal and an exit code at its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from flows import environment

if TYPE_CHECKING:
    from flows.commands.screen import Screen
    from flows.results import StageResult

PARTIAL = 8
INTERRUPTED = 130


Start = Callable[[], "Coroutine[Any, Any, list[StageResult]]"]


def run_flow(start: Start, shown: Screen, *, verbose: bool = False) -> int:
    """Run what `start` returns; 0, or PARTIAL when rows failed in a way that may pass, or INTERRUPTED.

    `start` imports the flow, and so Prefect, only once Prefect's environment is settled.
    """
    if not verbose:
        environment.quiet_terminal()
    environment.end_on_signals()
    try:
        with _server(shown) as ready:
            results = _run(start, ready, shown, verbose)
    except BaseException as error:
        if not _interrupts(error):
            raise
        shown.say("Interrupted. What was answered is kept; the same command goes on.")
        return INTERRUPTED
    return PARTIAL if any(result.partial for result in results) else 0


def _run(start: Start, ready: Callable[[], None], shown: Screen, verbose: bool) -> list[StageResult]:
    """A temporary server comes up while the flow is imported; both take seconds."""
    from flows.results import OBSERVERS

    OBSERVERS.append(shown)
    try:
        running = start()
        if not verbose:
            environment.silence_reported_errors()
        try:
            ready()
        except BaseException:
            running.close()
            raise
        with shown, nullcontext() if verbose else shown.heeding_warnings():
            return asyncio.run(running)
    finally:
        OBSERVERS.remove(shown)
        environment.send_what_waits()
        shown.results()


def _interrupts(error: BaseException) -> bool:
    """Ctrl-C or a polite kill: while a flow runs, Prefect turns a kill into an exception of its own, which
    arrives as itself or as the end of the task that it hit."""
    from prefect.exceptions import TerminationSignal

    return isinstance(error, KeyboardInterrupt | asyncio.CancelledError | TerminationSignal)


@contextmanager
def _server(shown: Screen) -> Iterator[Callable[[], None]]:
    """Prefect's environment names the server that is up, or a temporary one; the yielded function waits for it."""
    url = environment.server_url()
    if url is not None:
        shown.say(f"Prefect server: {url}")
        os.environ[environment.API_URL] = url
        yield lambda: None
        return
    from flows.temporary_server import temporary_server

    shown.say("No Prefect server is up: a temporary one keeps the records, `colloquy serve` shows them later.")
    with temporary_server() as (url, ready):
        os.environ[environment.API_URL] = url
        yield ready
