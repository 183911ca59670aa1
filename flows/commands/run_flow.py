"""A flow run in this process, with its progress on the terminal and an exit code at its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from flows import environment

if TYPE_CHECKING:
    from flows.commands.screen import Screen
    from flows.results import StageResult

PARTIAL = 8
INTERRUPTED = 130


def run_flow(
    start: Callable[[], Coroutine[Any, Any, list[StageResult]]], shown: Screen, *, verbose: bool = False
) -> int:
    """Run what `start` returns; 0, or PARTIAL when rows failed in a way that may pass, or INTERRUPTED.

    `start` imports the flow, and so Prefect, only once Prefect's environment is settled.
    """
    _join_server(shown)
    if not verbose:
        environment.quiet_terminal()
    from flows.results import OBSERVERS

    OBSERVERS.append(shown)
    try:
        running = start()
        if not verbose:
            environment.silence_reported_errors()
        environment.end_on_signals()
        with shown:
            results = asyncio.run(running)
    except KeyboardInterrupt:
        shown.say("Interrupted. What was answered is kept; the same command goes on.")
        return INTERRUPTED
    finally:
        OBSERVERS.remove(shown)
        shown.results()
    return PARTIAL if any(result.partial for result in results) else 0


def _join_server(shown: Screen) -> None:
    url = environment.server_url()
    if url is None:
        shown.say("No Prefect server is up: a temporary one keeps the records, `colloquy serve` shows them later.")
        return
    shown.say(f"Prefect server: {url}")
    os.environ[environment.API_URL] = url
