"""`colloquy evaluate`: score a model of one's own on a benchmark that is there."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flows.commands.run import Profile, Set, as_made
from flows.commands.run_flow import PARTIAL, run_flow

if TYPE_CHECKING:
    from flows.options import EvaluateOptions
    from flows.results import StageResult
    from tasks.foundation.store.layout import Layout

Structured = Literal["json_schema", "json_object", "prompt"]

_HEADLINES = """
select
    benchmark,
    pool,
    metric,
    target || if(target = getvariable('target'), ' ←', '') as target,
    value,
    ci_low,
    ci_high,
    n,
    n_unit,
    n_unscored as unscored,
    n_fault as void,
    unit,
from ({headlines})
where list_contains(getvariable('halves'), benchmark)
order by benchmark, pool, metric, target
"""


def evaluate(
    target: Annotated[str, typer.Option(help="Alias of the model under test; a new one with --base-url.")],
    benchmark: Annotated[str, typer.Option(metavar="BUILD|DIR", help="A build, or the folder of a release.")],
    base_url: Annotated[str | None, typer.Option(help="An OpenAI-compatible endpoint that serves the model.")] = None,
    model: Annotated[str | None, typer.Option(help="The endpoint's name of the model; else the alias.")] = None,
    structured: Annotated[
        Structured | None, typer.Option(help="How its replies are held to a schema; prompt: for servers that cannot.")
    ] = None,
    family: Annotated[str | None, typer.Option(help="Model family, for the family rule.")] = None,
    key_env: Annotated[str | None, typer.Option(help="Environment variable that holds the endpoint's key.")] = None,
    only: Annotated[Literal["demo", "eyt"] | None, typer.Option(help="Only this benchmark.")] = None,
    build: Annotated[str | None, typer.Option(help="For a release: the build to import it into.")] = None,
    profile: Profile = None,
    set_: Set = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress; only the result and errors.")] = False,
) -> None:
    """Run the evaluation stages for one target and show it in the leaderboard; nothing else is made again.

    With --base-url and --family the target becomes a known model (kept in artifacts/models.yaml). Simulator, judges
    and everything else are those of the build's own profile, unless --profile names another.
    """
    from flows.chain import half_of
    from flows.commands.screen import screen
    from flows.options import EvaluateOptions
    from tasks.foundation.store.layout import Layout

    layout = Layout.default()
    name = _build_of(layout, benchmark, build)
    with _introduced(layout, target, base_url, model, family, key_env, structured):
        options = EvaluateOptions(
            profile=profile,
            build=name,
            target=target,
            benchmark=only or half_of(layout, name),
            set=list(set_ or []),
        )
        shown = screen(quiet)
        options = as_made(options, shown)
        _look_ahead(options)

    def evaluation() -> Coroutine[Any, Any, list[StageResult]]:
        from flows import evaluate as flows

        return flows.evaluate(options)

    code = run_flow(evaluation, shown)
    if code in (0, PARTIAL):
        _show_headlines(layout, options)
    raise typer.Exit(code)


def _look_ahead(options: EvaluateOptions) -> None:
    """Raises what the evaluation would be refused for, before anything is started."""
    from flows.preflight import look_ahead

    look_ahead(options, options.stages(), options.build)


@contextmanager
def _introduced(
    layout: Layout,
    alias: str,
    base_url: str | None,
    model: str | None,
    family: str | None,
    key_env: str | None,
    structured: Structured | None,
) -> Iterator[None]:
    """The target is a known model: with a `base_url` one of the user's own, unless the block finds fault with it."""
    from tasks.foundation.errors import ConfigError
    from tasks.foundation.llm.own_models import adding

    if base_url is None:
        if given := [name for name, value in (("--model", model), ("--key-env", key_env)) if value]:
            raise ConfigError(f"expected --base-url with {' and '.join(given)}: they are of the model it serves")
        yield
        return
    if family is None:
        raise ConfigError(
            "--base-url needs --family: who made the model (qwen, llama, gpt …); simulator, target and judge must "
            "be of different families"
        )
    entry: dict[str, Any] = {"provider": "openai", "name": model or alias, "family": family, "base_url": base_url}
    entry |= {"api_key_env": key_env} if key_env else {}
    entry |= {"structured": structured} if structured else {}
    with adding(layout, alias, entry):
        yield


def _build_of(layout: Layout, benchmark: str, build: str | None) -> str:
    """The build to evaluate in: the one named, or the one a release is imported into."""
    from tasks.foundation.errors import ConfigError, StoreError
    from tasks.foundation.store.commits import builds
    from tasks.foundation.store.release import MANIFEST, import_release, read_manifest

    if benchmark in builds(layout):
        if build not in (None, benchmark):
            raise ConfigError(
                f"--benchmark {benchmark!r} is a build, so the rows go there; --build {build!r} is for releases"
            )
        return benchmark
    folder = Path(benchmark)
    if not (folder / MANIFEST).exists():
        raise StoreError(
            f"{benchmark!r} is neither a build nor the folder of a release. Builds: "
            f"{', '.join(builds(layout)) or 'none yet'}; `colloquy release DIR` makes such a folder."
        )
    name = build or f"{read_manifest(folder)['build']}-released"
    import_release(layout, folder, name)
    return name


def _show_headlines(layout: Layout, options: EvaluateOptions) -> None:
    """The headline scores of every target of the build on what was evaluated, this one's marked."""
    from flows.commands.answers import Format
    from flows.commands.sql import ask
    from tasks.foundation.checkout import ROOT
    from tasks.foundation.store.views import views_of

    headlines = (ROOT / "sql" / "reports" / "headlines.sql").read_text(encoding="utf-8")
    halves = [options.benchmark] if options.benchmark else ["demo", "eyt"]
    with views_of(layout, options.build) as connection:
        connection.execute("set variable target = ?", [options.target])
        connection.execute("set variable halves = ?", [halves])
        ask(connection, _HEADLINES.format(headlines=headlines), Format.table)
    typer.echo(f"All metrics, and which differences count: colloquy report --build {options.build}")
