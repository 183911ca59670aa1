"""`colloquy personas`: questions about the personas of a build."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import duckdb
import typer
from rich.table import Table

from flows.cli.console import make_table, terminal
from tasks.foundation.errors import ConfigError, StoreError
from tasks.foundation.run.context import Workspace
from tasks.foundation.settings.sections import PersonaSource
from tasks.foundation.store.commits import commits_of
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import choose_build, open_views
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.languages import language_of
from tasks.personas.rethreshold import READ_AT_ONCE, Remaining, count_remaining, load_pool

POOLS = "select pool, language, count(*) from persona_candidates group by all order by all"
PERSONAS = "select persona_id, description from persona_candidates where pool = ? and language = ?"

app = typer.Typer(help="Questions about the personas of a build.", no_args_is_help=True, add_completion=False)


@app.callback()
def personas() -> None:
    """Questions about the personas of a build."""


@app.command()
def rethreshold(
    thresholds: Annotated[list[float], typer.Argument(metavar="THRESHOLD…", help="Cosines from which two are one.")],
    build: Annotated[str | None, typer.Option(help="The build; the one that SQL shows when not given.")] = None,
) -> None:
    """Show how many personas each pool would keep at other thresholds of personas.dedup.threshold.

    From the embeddings that are stored: nothing is encoded again, and the build stays as it is.
    """
    if wrong := [threshold for threshold in thresholds if not 0 < threshold <= 1]:
        raise ConfigError(f"expected thresholds above 0 and up to 1, found {wrong[0]:g}")
    layout = Layout.default()
    name = choose_build(layout, build)
    found, left_out, used, size = _at_thresholds(layout, name, thresholds)
    console = terminal()
    console.print(f"build {name}: personas.dedup.threshold {used:g}, personas.pool_size {size:,} of each pool")
    console.print(remaining_table(found, used, size))
    for line in left_out:
        console.print(line)


def remaining_table(found: dict[str, list[Remaining]], used: float, size: int) -> Table:
    """One line for each pool and threshold; the build's own is marked."""
    numbers = ("threshold", "personas", "same text", "too close", "remain", "drawn")
    table = make_table("pool", *numbers, "", right=numbers)
    for pool, lines in found.items():
        for line in lines:
            counts = (line.n_candidates, line.n_same_text, line.n_close, line.n_kept, min(line.n_kept, size))
            note = "the build's" if line.threshold == used else ""
            table.add_row(pool, f"{line.threshold:g}", *(f"{count:,}" for count in counts), note)
    return table


def _at_thresholds(
    layout: Layout, build: str, thresholds: Sequence[float]
) -> tuple[dict[str, list[Remaining]], list[str], float, int]:
    """For each pool what remains at the build's own threshold and the others; who is left out of that, in words; the
    build's threshold, and the size of pools."""
    by_language: dict[str, list[list[Remaining]]] = {}
    left_out: list[str] = []
    with open_views(layout, build) as connection:
        settings, workspace = _made_with(layout, build)
        dedup, seed = settings["personas"]["dedup"], settings["run"]["seed"]
        each = sorted({dedup["threshold"], *thresholds})
        sources = map(PersonaSource.model_validate, settings["personas"]["sources"])
        naming = {source.pool for source in sources if source.names_language}
        for pool, language, n in connection.execute(POOLS).fetchall():
            similarity = workspace.similarity(language)
            if not isinstance(similarity, Encoder):
                left_out.append(f"{pool}: {n:,} in {LANGUAGES[language]} are not counted, {similarity.explanation}")
                continue
            encoder = similarity.with_long_texts(dedup["encode"])
            personas = _read_personas(connection, pool, language, named=pool in naming)
            stored = load_pool(pool, n, personas, encoder)
            if misnamed := n - len(stored.ids):
                left_out.append(f"{pool}: {misnamed:,} said to be {LANGUAGES[language]} that are not are not counted")
            found = [count_remaining(stored, threshold, seed, dedup["search"]) for threshold in each]
            by_language.setdefault(pool, []).append(found)
    pools = {
        pool: [functools.reduce(operator.add, line) for line in zip(*lines, strict=True)]
        for pool, lines in by_language.items()
    }
    return pools, left_out, dedup["threshold"], settings["personas"]["pool_size"]


def _made_with(layout: Layout, build: str) -> tuple[dict[str, Any], Workspace]:
    """The settings that the personas of a build were made with, and a workspace of its profile."""
    commit = commits_of(layout, build).get("personas")
    if commit is None:
        raise StoreError(f"build {build} has no personas yet: run `colloquy run --build {build} --only personas` first")
    overrides = tuple(commit.record.get("overrides", ()))
    return commit.record["settings"], Workspace.open(commit.record["profile"], overrides, layout)


def _read_personas(
    connection: duckdb.DuckDBPyConnection, pool: str, language: str, *, named: bool
) -> Iterator[list[tuple[str, str]]]:
    """The personas of a pool and language; where the language is `named`, only those that are in it: no encoder has
    read the others."""
    rows = connection.execute(PERSONAS, [pool, language])
    while chunk := rows.fetchmany(READ_AT_ONCE):
        yield [each for each in chunk if language_of(each[1]) == language] if named else chunk
