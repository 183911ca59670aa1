"""The `colloquy` command. Commands live in flows/cli, one file each; here they get their names.

Nothing heavy is imported before a command runs, so that `colloquy --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, NoReturn

import typer

from flows.cli import (
    builds,
    cache,
    check,
    doctor,
    drop,
    evaluate,
    gc,
    memory,
    models,
    personas,
    plan,
    release,
    report,
    run,
    serve,
    sql,
    status,
    streams,
    use,
)
from flows.server import environment

EXIT_CODES = """
Exit codes: 0 done · 1 a fault of the program · 2 a wrong setting or argument · 3 input or stored data
cannot be used · 4 the store cannot be written, or is not as asked; memory is too small · 5 models cannot be
asked, or too many rows failed · 6 another process runs this stage · 7 a check found rows · 8 done, but some
rows failed in a way that may pass: run the same command again · 9 a budget is used up: raise it and run the
same command · 130 interrupted: the same command goes on.
"""

ONLY_SHOW_ROWS = ("sql",)
"""Commands that end with whoever reads their output; all others finish what they do."""

app = typer.Typer(
    name="colloquy",
    help="DEMO and EYT-Bench rebuilt as one pipeline that can be run, scheduled, queried and trusted.",
    epilog=" ".join(EXIT_CODES.split()),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (plan, run, evaluate, report, release, status, use, drop, gc, sql, check, serve, doctor):
    app.command()(getattr(module, module.__name__.rpartition(".")[2]))
app.add_typer(builds.app, name="builds")
app.add_typer(models.app, name="models")
app.add_typer(personas.app, name="personas")
app.add_typer(cache.app, name="cache")


def _show_version(wanted: bool) -> None:
    if wanted:
        try:
            typer.echo(version("colloquy"))
        except PackageNotFoundError:
            typer.echo("not installed: run from a checkout")
        raise typer.Exit


@app.callback()
def colloquy(
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say the version and end.")
    ] = False,
) -> None:
    """Settle what Prefect reads from the environment, before any command imports it."""
    if problem := memory.too_little():
        _end(f"out of memory: {problem}", memory.EXIT_CODE)
    if context.invoked_subcommand in ONLY_SHOW_ROWS:
        streams.end_with_the_reader()
    environment.settle()


def main() -> None:
    """Run the command; a user's mistake becomes one message and the exit code of its class."""
    streams.settle()
    try:
        if problem := streams.unreadable(sys.argv):
            _end(f"config error: {problem}", 2)
        app()
    except Exception as error:
        told = _told(error)
        if told is None:
            raise
        _end(*told, at_once=_server_is_gone(error))
    finally:
        streams.flush()


def _told(error: Exception) -> tuple[str, int] | None:
    """The message and the exit code of an error that is the user's to mend; None for a fault of the program."""
    if problem := memory.out_of_memory(error):
        return f"out of memory: {problem}", memory.EXIT_CODE
    from tasks.foundation.errors import ColloquyError

    return (f"{_label(error)}: {error}", error.exit_code) if isinstance(error, ColloquyError) else None


def _server_is_gone(error: Exception) -> bool:
    """Whether threads of Prefect wait for a server that is gone, and would keep the process from ending."""
    running = sys.modules.get("flows.cli.run_flow")
    return running is not None and isinstance(error, running.ServerGone)


def _end(message: str, exit_code: int, *, at_once: bool = False) -> NoReturn:
    typer.echo(message, err=True)
    if at_once:
        streams.flush()
        os._exit(exit_code)
    sys.exit(exit_code)


def _label(error: Exception) -> str:
    """`ConfigError` → `config error`."""
    name = type(error).__name__
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()


if __name__ == "__main__":
    main()
