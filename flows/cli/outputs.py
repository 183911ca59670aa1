"""Commands for what can be had of a build without making rows: `colloquy report`, `check` and `release`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.chain.checks import ChecksFoundRows, check_build
from tasks.foundation.errors import ConfigError
from tasks.foundation.llm.providers import LOCAL_PROVIDERS
from tasks.foundation.store.commits import behind, commits_of
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import choose_build, shown_build


def report(
    build: Annotated[str | None, typer.Option(help="The build; the one that SQL shows when not given.")] = None,
    transcripts: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many transcripts of each kind are shown.")
    ] = 100,
    single_file: Annotated[
        bool, typer.Option("--single-file", help="Transcripts in the report itself, not on pages beside it.")
    ] = False,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Write artifacts/reports/BUILD/index.html: boards, what they rest on, costs; transcripts on pages beside it.

    Needs no network. Works on a build that is not whole; what is missing says what would fill it.
    """
    from tasks.report.build import write_report  # the charts take a second to load, and no other command here has any

    layout = Layout.default()
    name = choose_build(layout, build)
    path = write_report(layout, name, transcripts, single_file=single_file)
    typer.echo(str(path))
    if open_:
        typer.launch(path.as_uri())


def check(
    build: Annotated[str | None, typer.Option(help="The build; the one that SQL shows when not given.")] = None,
) -> None:
    """Run every file of sql/checks, and count the rows of every file; exit code 7 when a check returns rows."""
    layout = Layout.default()
    name = build or shown_build(layout)
    commits = commits_of(layout, name) if name else {}
    outcomes = check_build(layout, name)
    broken = [outcome for outcome in outcomes if outcome.rows]
    for outcome in broken:
        typer.echo(f"{outcome.name}: {outcome.rows} rows, for example")
        for example in outcome.examples:
            typer.echo("  " + ", ".join(f"{name}={value!r}" for name, value in example.items()))
    for run, tables in behind(commits).items():
        typer.echo(f"{run} was made from rows of {', '.join(tables)} that have changed since: run it again")
    typer.echo(f"{len(outcomes) - len(broken)} of {len(outcomes)} checks found nothing")
    if broken:
        raise typer.Exit(ChecksFoundRows.exit_code)


def release(
    folder: Annotated[Path, typer.Argument(help="A new folder for the release.", show_default=False)],
    build: Annotated[str | None, typer.Option(help="The build; without it the one that SQL shows.")] = None,
    format_: Annotated[
        Literal["tables", "original"],
        typer.Option("--format", help="original: DEMO's items and episodes as its authors publish theirs."),
    ] = "tables",
    version: Annotated[str, typer.Option(help="Of the benchmark; in its card and manifest.")] = "1.0.0",
    results: Annotated[
        bool, typer.Option("--with-results", help="Transcripts, predictions, judgements and metrics too.")
    ] = False,
    contact_data: Annotated[
        bool, typer.Option("--keep-contact-data", help="Leave addresses and numbers of people in the texts.")
    ] = False,
    material: Annotated[
        list[Path] | None,
        typer.Option(
            "--check-against", metavar="PATH", help="Training material that must hold nothing of it; may be repeated."
        ),
    ] = None,
    push_to: Annotated[
        str | None, typer.Option("--push-to-hub", metavar="OWNER/NAME", help="Send it to this dataset of the hub.")
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="A dataset made on the hub is public.")] = False,
) -> None:
    """Write the benchmark of a build (items, episodes, seeds, their personas) for others to evaluate on."""
    from tasks.release import folder as releases  # what a card and a hub take is needed by no other command here

    layout = Layout.default()
    name = choose_build(layout, build)
    if format_ == "original":
        if material:
            raise ConfigError("--check-against is for a release with a card: expected it without --format original")
        if push_to:
            raise ConfigError("--push-to-hub sends a release with a card: expected it without --format original")
        written = releases.write_original_release(layout, name, folder)
    else:
        form = releases.ReleaseForm(version, results, contact_data)
        written = releases.write_release(layout, name, folder, LOCAL_PROVIDERS, form, material or ())
    for table, rows in written.items():
        typer.echo(f"{table:<40}{rows:>8,} rows")
    typer.echo(f"released build {name} to {folder}")
    if push_to:
        from tasks.release.hub import push_release

        typer.echo(f"sent: {push_release(folder, push_to, private=not public)}")
