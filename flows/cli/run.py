"""`colloquy run`: the chain, or a part of it, as a flow run in this process, with its progress on the terminal and an
exit code at its end."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import date
from typing import Annotated, Any, Protocol

import typer

from flows import chain
from flows.chain import Options
from flows.chain.options import RebuildOptions, RunOptions
from flows.chain.results import OBSERVERS, StageResult
from flows.chain.status import look_ahead
from flows.cli.screen import Screen, screen
from flows.cli.telling import telling
from flows.server import environment
from flows.server.local_server import temporary_server
from tasks.foundation.errors import StoreError
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import rebuild_views

Profile = Annotated[
    str | None,
    typer.Option(help="One of configs/profiles or a .yaml of yours; else the build's own, COLLOQUY_PROFILE, or demo."),
]
Build = Annotated[str, typer.Option(help="Name of the build; {date} becomes today's date.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting: section.key=value.")]

PARTIAL = 8
INTERRUPTED = 130

CLOSED_SECONDS = 0.1
CLOSING_SECONDS = 60.0
"""How long stages may take to close once the server is gone: answers under way have half a minute."""

TELLING_SECONDS = 30.0
"""How long Prefect may take to tell its server of an interruption."""

GOES_ON = "What was answered is kept; the same command goes on."

Import = Callable[[], Callable[..., Any]]
"""Imports a flow, and so Prefect, and returns it."""


def run(
    profile: Profile = None,
    build: Build = "main",
    only: Annotated[str | None, typer.Option(metavar="STAGE", help="Run just this stage.")] = None,
    from_stage: Annotated[
        str | None, typer.Option("--from", metavar="STAGE", help="Run this stage and those after it.")
    ] = None,
    force: Annotated[
        bool, typer.Option(help="Run the named stage (or all) again though up to date; replies come from the cache.")
    ] = False,
    fresh: Annotated[bool, typer.Option(help="Draw new replies for this build; replay none.")] = False,
    set_: Set = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress; only the result and errors.")] = False,
    tell: Annotated[
        bool, typer.Option("--tell", help="Show a dialogue, a vote and a judgement once they are made, and the boards.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show Prefect's log lines too.")] = False,
) -> None:
    """Bring a build up to date: run what is missing, stale or failed, and nothing else.

    The same command goes on where a stopped run was. Exit code 8: done, but some rows failed in a way that may
    pass; run it again to redo just those.
    """
    options = RebuildOptions.model_construct(
        profile=profile,
        build=build,
        only=only,
        from_stage=from_stage,
        force=force,
        fresh=fresh,
        set=list(set_ or []),
        check=False,
        report=False,
    ).on(date.today())
    shown = screen(quiet)
    options = as_made(options, shown)
    with telling(options.build, shown.console) if tell else nullcontext():
        code = 0 if _nothing_to_do(options, shown) else run_flow(_rebuild, options, shown, verbose=verbose)
    raise typer.Exit(code)


def _rebuild() -> Callable[..., Any]:
    from flows.runs import rebuild

    return rebuild


def as_made(options: Options, shown: Screen) -> Options:
    """The options with the profile and the settings that the build was made with, unless a profile is named; says so
    where that is other than the usual."""
    settled = chain.settled(options)
    if not options.profile and (settled.profile != chain.usual_profile() or len(settled.set) > len(options.set)):
        shown.say(f"build {options.build} goes on with {described(settled)}; --profile begins with another")
    return settled


def described(options: RunOptions) -> str:
    """`profile demo, --set a.b=c`."""
    return ", ".join([f"profile {options.profile}", *(f"--set {one}" for one in options.remembered)])


def _nothing_to_do(options: RebuildOptions, shown: Screen) -> bool:
    """Whether every selected stage is up to date: then Prefect need not be started. Says so.

    Raises what a run would be refused for, before anything is started.
    """
    todo, done = look_ahead(options, chain.selected(options), options.build)
    if not todo:
        rebuild_views(Layout.default())  # a run that was killed may have committed and not come to them
        shown.up_to_date(options.build, done, whole=not options.only and not options.from_stage)
    return not todo


class ServerGone(StoreError):
    """The Prefect server went away during a run and did not come back. Prefect itself would try for many minutes to
    tell it so: whoever meets this ends the process without waiting for Prefect's threads."""


class Server(Protocol):
    """The Prefect server that keeps a run's records; it is looked after every `look_seconds`."""

    @property
    def look_seconds(self) -> float: ...

    def wait(self, say: Callable[[str], None]) -> None:
        """Until it answers; StoreError when it does not."""

    def trouble(self) -> str | None:
        """Why it is given up, or None. May take seconds."""


class LastingServer:
    """One that was there before: it may be away for some minutes and come back, which `say` tells."""

    look_seconds = 5.0

    def __init__(self, api: str, say: Callable[[str], None]) -> None:
        self._api = api
        self._name = f"the Prefect server at {environment.without_login(api)}"
        self._say = say
        self._seen = time.monotonic()
        self._missed = False

    def wait(self, say: Callable[[str], None]) -> None:
        """It has answered already."""

    def trouble(self) -> str | None:
        trouble, before = environment.trouble_with(self._api), self._seen
        if trouble is None:
            self._seen = time.monotonic()
        away = time.monotonic() - before
        if away >= environment.AWAY_SECONDS and trouble:
            return f"{self._name} has not answered for {away:.0f} s ({trouble})"
        self._tell(trouble, away)
        return None

    def _tell(self, trouble: str | None, away: float) -> None:
        if trouble and not self._missed:
            limit = environment.AWAY_SECONDS - away
            self._say(f"{self._name} does not answer ({trouble}): the run waits for it, up to {limit:.0f} s.")
        elif self._missed and not trouble:
            self._say(f"{self._name} answers again.")
        self._missed = trouble is not None


def run_flow(imported: Import, options: RunOptions, shown: Screen, *, verbose: bool = False) -> int:
    """Run a flow with these options; 0, or PARTIAL when rows failed in a way that may pass, or INTERRUPTED.

    The flow is imported only once Prefect's environment is settled. Raises StoreError where
    Prefect's server cannot be used, ServerGone where it went away.
    """
    if not verbose:
        environment.quiet_terminal()
    environment.end_on_signals()
    try:
        with _server(shown) as server:
            results = _run(imported, options, server, shown, verbose)
    except BaseException as error:
        if not _interrupts(error):
            raise
        shown.say(f"Interrupted. {GOES_ON}")
        return INTERRUPTED
    return PARTIAL if any(result.partial for result in results) else 0


def _run(imported: Import, options: RunOptions, server: Server, shown: Screen, verbose: bool) -> list[StageResult]:
    """A temporary server comes up while the flow is imported; both take seconds."""
    OBSERVERS.append(shown)
    try:
        flow = imported()
        if not verbose:
            environment.silence_reported_errors()
        server.wait(shown.say)
        with shown, nullcontext() if verbose else shown.showing_warnings(), environment.explain_prefect_errors():
            results = _while_there(flow, options, server)
    except BaseException as error:
        if not isinstance(error, ServerGone):
            environment.send_what_waits()
        raise
    else:
        environment.send_what_waits()
        return results
    finally:
        OBSERVERS.remove(shown)
        shown.results()


def _while_there(flow: Callable[..., Any], options: RunOptions, server: Server) -> list[StageResult]:
    """The flow's results. ServerGone when the server is given up: the flow's loop is left as it is then, since closing
    it would wait for Prefect."""
    runner = asyncio.Runner()
    try:
        results = runner.run(_watched(flow, options, server))
    except ServerGone:
        raise
    except BaseException:
        runner.close()
        raise
    runner.close()
    return results


async def _watched(flow: Callable[..., Any], options: RunOptions, server: Server) -> list[StageResult]:
    """The flow, in a task of its own, for as long as its server is there."""
    from flows.stage_flow import results_of

    running, watch = asyncio.create_task(results_of(flow, options)), asyncio.create_task(_trouble(server))
    try:
        await asyncio.wait((running, watch), return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:  # Ctrl-C: the flow ends as it would alone
        await _closed(running, float("inf"))
        if not (await asyncio.wait((running,), timeout=TELLING_SECONDS))[0]:
            raise ServerGone(f"interrupted, which the Prefect server could not be told. {GOES_ON}") from None
        return await running
    finally:
        watch.cancel()
    if running.done():
        return running.result()
    await _closed(running, CLOSING_SECONDS)
    raise ServerGone(f"{watch.result()}. {GOES_ON}")


async def _trouble(server: Server) -> str:
    """Why the server is given up, once it is."""
    while True:
        if trouble := await asyncio.to_thread(server.trouble):
            return trouble
        await asyncio.sleep(server.look_seconds)


async def _closed(running: asyncio.Task[Any], seconds: float) -> None:
    """Cancels the flow. Returns once every stage has taken in what was under way and freed its lock, or time is up;
    Prefect itself is not waited for."""
    from flows.stage_flow import open_stages

    running.cancel()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and open_stages():  # noqa: ASYNC110 - they close in Prefect's tasks
        await asyncio.sleep(CLOSED_SECONDS)


def _interrupts(error: BaseException) -> bool:
    """Ctrl-C, a polite kill or the end of the terminal: while a flow runs, Prefect turns a kill into an exception of
    its own, which arrives as itself or as the end of the task that it hit."""
    from prefect.exceptions import TerminationSignal

    return isinstance(error, KeyboardInterrupt | asyncio.CancelledError | TerminationSignal)


@contextmanager
def _server(shown: Screen) -> Iterator[Server]:
    """Prefect's environment names the server that is up, or a temporary one that is coming up."""
    environment.check_configured()
    url = environment.server_url()
    if url is not None:
        shown.say(f"Prefect server: {environment.without_login(url)}")
        os.environ[environment.API_URL] = url
        yield LastingServer(url, shown.say)
        return

    shown.say("No Prefect server is up: a temporary one keeps the records, `colloquy serve` shows them later.")
    with temporary_server() as server:
        os.environ[environment.API_URL] = server.api
        os.environ["PREFECT_SERVER_UI_ENABLED"] = "false"  # it has no pages to refer anyone to
        yield server
