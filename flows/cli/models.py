"""`colloquy models`: the weights that run on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="Weights of the models that run on this machine.", no_args_is_help=True)


@app.command(name="list")
def list_models() -> None:
    """Show every model that can be pulled: size, licence, publisher, and whether it is here."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from flows.cli.screen import terminal
    from tasks.foundation.weights import list_models, models_dir

    table = Table(box=SIMPLE_HEAD)
    for column in ("model", "MB", "licence", "publisher", "here", "note"):
        table.add_column(column, justify="right" if column == "MB" else "left")
    for each, is_here in list_models():
        here = "yes" if is_here else "no"
        table.add_row(each.name, f"{each.bytes / 1e6:.0f}", each.licence, each.publisher, here, each.note)
    console = terminal()
    console.print(table)
    console.print(f"They lie in {models_dir()}; `colloquy models pull NAME` gets one.", soft_wrap=True)


@app.command()
def pull(
    models: Annotated[list[str] | None, typer.Argument(help="Names or aliases.", show_default=False)] = None,
    demo: Annotated[bool, typer.Option("--demo", help="All that profile demo needs.")] = False,
    every: Annotated[bool, typer.Option("--all", help="All that can be pulled.")] = False,
) -> None:
    """Get models from whichever source has them; each is checked by its hash. What is here is left alone."""
    from tasks.foundation.errors import ConfigError
    from tasks.foundation.weights import CATALOGUE, pull

    names = [*(models or [])]
    if every:
        names += CATALOGUE
    if demo:
        names += _needed_by("demo")
    if not names:
        raise ConfigError("expected the names of models, --demo or --all; `colloquy models list` shows the names")
    for name in dict.fromkeys(_weights_name(name) for name in names):
        typer.echo(f"{name}: {pull(name, _Report(name))}")


def _needed_by(profile: str) -> list[str]:
    from flows.chain.models_used import weights_needed
    from tasks.foundation.llm.models import load_models
    from tasks.foundation.settings import load_settings

    return weights_needed(load_settings(profile), load_models())


def _weights_name(given: str) -> str:
    """The weights of an alias; what is no alias of an embedded model is a name already."""
    from tasks.foundation.llm.models import load_models

    spec = dict(load_models()).get(given)
    return spec.name if spec is not None and spec.provider == "embedded" else given


class _Report:
    """One line when a pull begins another piece of work, and every tenth of it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last = ("", -1)

    def __call__(self, what: str, done: int, total: int) -> None:
        tenth = 10 * done // total if total else 0
        if (what, tenth) != self._last:
            self._last = (what, tenth)
            typer.echo(f"{self._name}: {what}{f', {10 * tenth} %' if total and tenth else ''}", err=True)
