"""`colloquy import`: a benchmark that others have published becomes a build to evaluate on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tasks.foundation.store.layout import Layout
from tasks.release.imports import import_original

app = typer.Typer(help="Take in a published benchmark as a build to evaluate on.", add_completion=False)


@app.callback()
def _group() -> None:
    """A group, so that other benchmarks may follow."""


@app.command()
def demo(
    files: Annotated[
        list[Path],
        typer.Argument(help="element_awareness_*.json and dialogue_agent_interaction_*.jsonl.", show_default=False),
    ],
    build: Annotated[str, typer.Option(help="The new build they go into.")] = "demo-published",
    licence: Annotated[str, typer.Option(help="Under which you have them.")] = "unknown",
    language: Annotated[
        Literal["en", "zh"] | None, typer.Option(help="Else that of the file's name, or told from the texts.")
    ] = None,
) -> None:
    """Take in the files of the published DEMO benchmark; `colloquy evaluate --benchmark BUILD` then runs on them."""
    commit, imported = import_original(Layout.default(), files, build, licence, language)
    for table in commit.tables:
        typer.echo(f"{table:<24}{commit.rows(table):>8,} rows")
    if imported.ignored:
        keys = ", ".join(f"{key} ({n:,})" for key, n in sorted(imported.ignored.items()))
        typer.echo(f"keys that no column holds were left: {keys}")
    typer.echo(f"build {commit.build}: colloquy evaluate --target NAME --benchmark {commit.build} --only demo")
