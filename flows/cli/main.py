"""The `colloquy` command. Commands live in flows/cli; here they get their names.

A command's module, and all that it needs, is imported when the command is invoked, so that `colloquy --help` answers at
once and Prefect's environment is settled before anything imports Prefect.
"""

from __future__ import annotations

import ast
import gc
import os
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from flows.cli import process
from flows.server import environment
from tasks.foundation.errors import ColloquyError

EXIT_CODES = """
Exit codes: 0 done · 1 a fault of the program · 2 a wrong setting or argument · 3 input or stored data
cannot be used · 4 the store cannot be written, or is not as asked; memory is too small · 5 models cannot be
asked, or too many rows failed · 6 another process runs this stage · 7 a check found rows · 8 done, but some
rows failed in a way that may pass: run the same command again · 9 a budget is used up: raise it and run the
same command · 130 interrupted: the same command goes on.
"""

COMMANDS = {
    "tour": "tour:tour",
    "plan": "plan:plan",
    "pilot": "pilot:pilot",
    "run": "run:run",
    "evaluate": "evaluate:evaluate",
    "report": "outputs:report",
    "board": "board:board",
    "view": "view:view",
    "trace": "trace:app",
    "diff": "diff:diff",
    "release": "outputs:release",
    "import": "imports:app",
    "status": "status:status",
    "use": "builds:use",
    "drop": "builds:drop",
    "gc": "builds:gc",
    "sql": "sql:sql",
    "check": "outputs:check",
    "serve": "serve:serve",
    "doctor": "doctor:doctor",
    "builds": "builds:app",
    "models": "models:app",
    "personas": "personas:app",
    "cache": "cache:app",
}
"""Each command's module in flows.cli, and what it is there: a function, or a group of commands."""

ONLY_SHOW_ROWS = ("sql",)
"""Commands that end with whoever reads their output; all others finish what they do."""


class LazyCommand(TyperCommand):
    """A command, or a group of commands, whose module is imported when it is invoked."""

    def __init__(self, name: str, place: str) -> None:
        super().__init__(name)
        module, _, self._function = place.partition(":")
        self._module = f"flows.cli.{module}"

    def load(self) -> Any:
        """The command itself."""
        gc.disable()  # what is imported stays: looking for garbage in it, now or later, takes a quarter of the time
        found = getattr(import_module(self._module), self._function)
        gc.freeze()
        gc.enable()
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False)
            alone.command(self.name)(found)
            found = alone
        return get_command(found)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self.load().make_context(info_name, args, parent, **extra)

    def describe(self) -> str:
        """What it does, from its source: the function's docstring, or the help of the group."""
        spec = find_spec(self._module)
        assert spec is not None and spec.origin is not None
        for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == self._function:
                return ast.get_docstring(node) or ""
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == self._function:
                given = {each.arg: each.value for each in getattr(node.value, "keywords", ())}
                return str(ast.literal_eval(given["help"]))
        return ""


class Commands(TyperGroup):
    """All commands by name; only who asks for the list needs to know what they do."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = {name: LazyCommand(name, place) for name, place in COMMANDS.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        for command in self.commands.values():
            assert isinstance(command, LazyCommand)
            command.help = command.describe()
        return list(self.commands)


app = typer.Typer(
    cls=Commands,
    name="colloquy",
    help="DEMO and EYT-Bench rebuilt as one pipeline that can be run, scheduled, queried and trusted.",
    epilog=" ".join(EXIT_CODES.split()),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    if problem := process.explain_too_little():
        _end(f"out of memory: {problem}", process.OUT_OF_MEMORY)
    if context.invoked_subcommand in ONLY_SHOW_ROWS:
        process.end_with_the_reader()
    environment.settle()


def main() -> None:
    """Run the command; a user's mistake becomes one message and the exit code of its class."""
    process.settle_streams()
    try:
        if problem := process.find_unreadable(sys.argv):
            _end(f"config error: {problem}", 2)
        app()
    except Exception as error:
        explained = _explain(error)
        if explained is None:
            raise
        _end(*explained, at_once=_server_is_gone(error))
    finally:
        process.flush_streams()


def _explain(error: Exception) -> tuple[str, int] | None:
    """The message and the exit code of an error that is the user's to mend; None for a fault of the program."""
    if problem := process.explain_out_of_memory(error):
        return f"out of memory: {problem}", process.OUT_OF_MEMORY
    return (f"{_label(error)}: {error}", error.exit_code) if isinstance(error, ColloquyError) else None


def _server_is_gone(error: Exception) -> bool:
    """Whether threads of Prefect wait for a server that is gone, and would keep the process from ending."""
    running = sys.modules.get("flows.cli.run")
    return running is not None and isinstance(error, running.ServerGone)


def _end(message: str, exit_code: int, *, at_once: bool = False) -> NoReturn:
    typer.echo(message, err=True)
    if at_once:
        process.flush_streams()
        os._exit(exit_code)
    sys.exit(exit_code)


def _label(error: Exception) -> str:
    """`ConfigError` → `config error`."""
    name = type(error).__name__
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()


if __name__ == "__main__":
    main()
