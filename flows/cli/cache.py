"""`colloquy cache`: the replies that were paid for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from flows import chain
from flows.chain.results import show_tokens
from flows.cli.console import make_table, terminal
from tasks.foundation.errors import ConfigError, StoreError
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.cache_files import export_replies, import_replies
from tasks.foundation.store.commits import builds
from tasks.foundation.store.layout import Layout

app = typer.Typer(
    help="The replies that were paid for, kept so that none is paid for twice.",
    no_args_is_help=True,
    add_completion=False,
)


@app.command()
def stats() -> None:
    """Show how many replies and tokens are kept, by stage and model."""
    numbers = ("replies", "prompt tokens", "completion tokens")
    table = make_table("stage", "model", *numbers, "oldest", "newest", right=numbers)
    with _cache() as cache:
        for line in cache.stats():
            tokens = (show_tokens(known, line.unreported) for known in (line.prompt_tokens, line.completion_tokens))
            table.add_row(line.stage, line.alias, f"{line.replies:,}", *tokens, line.oldest[:19], line.newest[:19])
        terminal().print(table)
        typer.echo(f"{cache.path}, {cache.path.stat().st_size / 1e6:.1f} MB")


@app.command()
def prune(
    older_than: Annotated[str | None, typer.Option(metavar="AGE", help="Only replies older than 30d, 12h …")] = None,
    stage: Annotated[str | None, typer.Option(help="Only replies of this stage.")] = None,
) -> None:
    """Delete replies that match every given condition. A deleted reply is paid for again when it is needed."""
    if older_than is None and stage is None:
        raise ConfigError("expected --older-than or --stage: pruning without a condition would delete nothing")
    before = datetime.now(UTC) - age(older_than) if older_than else None
    with _cache() as cache:
        if stage is not None:
            _refuse_unknown_stage(cache, stage)
        typer.echo(f"{cache.prune(older_than=before, stage=stage):,} replies deleted")


@app.command()
def export(
    path: Annotated[Path, typer.Argument(help="The Parquet file to write.")],
    build: Annotated[str | None, typer.Option(help="Only replies that this build paid for.")] = None,
) -> None:
    """Write the replies to one Parquet file, so that a build can be replayed elsewhere without a provider."""
    with _cache() as cache:
        if build is not None:
            _refuse_unknown_build(cache, build)
        try:
            written = export_replies(cache, path, runs=f"{build}/" if build else "")
            typer.echo(f"{written:,} replies written to {path}")
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error}") from None


@app.command(name="import")
def import_(path: Annotated[Path, typer.Argument(help="A file of `colloquy cache export`.")]) -> None:
    """Take in the replies of an exported file. `--set llm.replay_only=true` then runs without any provider."""
    with _cache() as cache:
        new, known = import_replies(cache, path)
        typer.echo(f"{new:,} replies taken in, {known:,} were known")


def age(text: str) -> timedelta:
    """`30d`, `12h` or `45min` as a duration; ConfigError for another shape."""
    found = re.fullmatch(r"(\d+)\s*(d|h|min)", text.strip())
    if found is None:
        raise ConfigError(f"expected an age like 30d, 12h or 45min, found {text!r}")
    count, unit = int(found[1]), found[2]
    return {"d": timedelta(days=count), "h": timedelta(hours=count), "min": timedelta(minutes=count)}[unit]


def _refuse_unknown_stage(cache: ReplyCache, stage: str) -> None:
    """ConfigError for a stage that neither the chain nor the cache knows."""
    known = dict.fromkeys([*chain.names(), *cache.list_stages()])
    if stage not in known:
        raise ConfigError(f"--stage: expected one of {', '.join(known)}; found {stage!r}")


def _refuse_unknown_build(cache: ReplyCache, build: str) -> None:
    """StoreError for a build that is not in the store and has paid for no reply, as one that never got to a commit."""
    if build in (known := builds(Layout.default())):
        return
    known = sorted({*known, *cache.list_builds()})
    if build not in known:
        raise StoreError(f"build {build!r} does not exist; expected one of: {', '.join(known) or 'none is there yet'}")


@contextmanager
def _cache() -> Iterator[ReplyCache]:
    cache = ReplyCache(Layout.default().cache / "replies.sqlite")
    try:
        yield cache
    finally:
        cache.close()
