"""The `colloquy` command. Commands live in flows/commands, one file each; here they get their names.

Nothing heavy is imported before a command runs, so that `colloquy --help` answers at once.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from flows import environment
from flows.commands import (
    builds,
    cache,
    check,
    doctor,
    drop,
    evaluate,
    gc,
    models,
    personas,
    plan,
    release,
    report,
    run,
    serve,
    sql,
    status,
    use,
)

EXIT_CODES = """
Exit codes: 0 done · 1 a fault of the program · 2 a wrong setting or argument · 3 input or stored data
cannot be used · 4 the store cannot be written, or is not as asked · 5 models cannot be asked, or too many
rows failed · 6 another process runs this stage · 7 a check found rows · 8 done, but some rows failed in a
way that may pass: run the same command again · 9 a budget is used up: raise it and run the same command ·
130 interrupted: the same command goes on.
"""

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
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say the version and end.")
    ] = False,
) -> None:
    """Settle what Prefect reads from the environment, before any command imports it."""
    environment.settle()


def main() -> None:
    """Run the command; a user's mistake becomes one message and the exit code of its class."""
    try:
        app()
    except Exception as error:
        from tasks.foundation.errors import ColloquyError

        if not isinstance(error, ColloquyError):
            raise
        typer.echo(f"{_label(error)}: {error}", err=True)
        sys.exit(error.exit_code)


def _label(error: Exception) -> str:
    """`ConfigError` → `config error`."""
    name = type(error).__name__
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()


if __name__ == "__main__":
    main()
