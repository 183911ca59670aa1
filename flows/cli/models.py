"""`colloquy models`: the weights that run on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from flows import chain
from flows.cli.console import make_table, terminal
from tasks.foundation import weights
from tasks.foundation.errors import ConfigError
from tasks.foundation.llm.models import Models, load_models
from tasks.foundation.settings import Settings, load_settings
from tasks.foundation.texts.word_encoder import WORDS

app = typer.Typer(help="Weights of the models that run on this machine.", no_args_is_help=True, add_completion=False)


@app.command(name="list")
def list_models() -> None:
    """Show every model that can be pulled: size, licence, publisher, and whether it is here."""
    table = make_table("model", "MB", "licence", "publisher", "here", "note", right=("MB",))
    for each, is_here in weights.list_models():
        here = "yes" if is_here else "no"
        table.add_row(each.name, f"{each.bytes / 1e6:.0f}", each.licence, each.publisher, here, each.note)
    console = terminal()
    console.print(table)
    console.print(f"They lie in {weights.models_dir()}; `colloquy models pull NAME` gets one.", soft_wrap=True)


@app.command()
def pull(
    models: Annotated[list[str] | None, typer.Argument(help="Names or aliases.", show_default=False)] = None,
    demo: Annotated[bool, typer.Option("--demo", help="All that profile demo needs.")] = False,
    every: Annotated[bool, typer.Option("--all", help="All that can be pulled.")] = False,
) -> None:
    """Get models from whichever source has them; each is checked by its hash. What is here is left alone."""
    names = [*(models or [])]
    if every:
        names += weights.CATALOGUE
    if demo:
        names += weights_needed(load_settings("demo"), load_models())
    if not names:
        raise ConfigError("expected the names of models, --demo or --all; `colloquy models list` shows the names")
    for name in dict.fromkeys(_weights_name(name) for name in names):
        typer.echo(f"{name}: {weights.pull(name, _Report(name))}")


def weights_needed(settings: Settings, models: Models) -> list[str]:
    """Names of the weights that a run cannot do without: of the settings' models and of the English encoder."""
    used = [models[alias] for alias in chain.roles_by_alias(settings)]
    names: Sequence[str] = [spec.weights for spec in used if spec.weights is not None]
    encoder = settings.encoder.en
    encoders = [] if encoder == WORDS or settings.encoder.folder(encoder) else [encoder]
    return list(dict.fromkeys([*names, *encoders]))


def _weights_name(given: str) -> str:
    """The weights of an alias; what is no alias of a model with weights here is a name already."""
    spec = dict(load_models()).get(given)
    return spec.weights or given if spec is not None else given


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
