"""`colloquy evaluate`: score a model of one's own on a benchmark that is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from flows import chain
from flows.chain.options import EvaluateOptions
from flows.chain.status import look_ahead
from flows.cli.queries import Format, ask
from flows.cli.run import PARTIAL, Profile, Set, as_made, run_flow
from flows.cli.screen import screen
from tasks.foundation import ROOT
from tasks.foundation.errors import ConfigError, StoreError
from tasks.foundation.llm.own_models import adding
from tasks.foundation.store.commits import builds, commits_of
from tasks.foundation.store.layout import RELEASED, Layout
from tasks.foundation.store.views import open_views
from tasks.release.folder import MANIFEST, read_manifest
from tasks.release.imports import import_release

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
where list_contains(getvariable('benchmarks'), benchmark)
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
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="IN,OUT",
            help="US dollars per million prompt and completion tokens; 0,0 for a server of one's own.",
        ),
    ] = None,
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
    layout = Layout.default()
    name = _build_of(layout, benchmark, build)
    endpoint = Endpoint(base_url, model, family, key_env, structured, prices)
    with _introduced(layout, target, endpoint):
        options = EvaluateOptions.model_construct(
            profile=profile,
            build=name,
            target=target,
            benchmark=only or chain.benchmark_of(layout, name),
            set=list(set_ or []),
        )
        shown = screen(quiet)
        options = as_made(options, shown)
        if set(commits_of(layout, name)) == {RELEASED} and profile is None:
            shown.say(
                f"a release has no simulator and judges: those of profile {options.profile}; --profile names others"
            )
        _look_ahead(options)

    def evaluation() -> Callable[..., Any]:
        from flows.runs import evaluate

        return evaluate

    code = run_flow(evaluation, options, shown)
    if code in (0, PARTIAL):
        _show_headlines(layout, options)
    raise typer.Exit(code)


def _look_ahead(options: EvaluateOptions) -> None:
    """Raises what the evaluation would be refused for, before anything is started."""
    look_ahead(options, options.stages(), options.build)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What was said of where the target is served."""

    base_url: str | None
    model: str | None
    family: str | None
    key_env: str | None
    structured: Structured | None
    prices: str | None

    def entry(self, alias: str) -> dict[str, Any]:
        """Its entry in models.yaml. ConfigError for one without a family."""
        if self.family is None:
            raise ConfigError(
                "--base-url needs --family: who made the model (qwen, llama, gpt …); simulator, target and judge must "
                "be of different families"
            )
        given = {
            "provider": "openai",
            "name": self.model or alias,
            "family": self.family,
            "base_url": self.base_url,
            "api_key_env": self.key_env,
            "structured": self.structured,
            "prices": self._prices(),
        }
        return {name: value for name, value in given.items() if value is not None}

    def _prices(self) -> dict[str, float] | None:
        """Those that were given; None: not known, which is not 0, since what listens here may pass calls on."""
        if self.prices is None:
            return None
        try:
            prompt, completion = map(float, self.prices.split(","))
        except ValueError:
            raise ConfigError(f"--prices: expected two numbers such as 0.15,0.6, found {self.prices!r}") from None
        return {"input_per_million": prompt, "output_per_million": completion}


@contextmanager
def _introduced(layout: Layout, alias: str, endpoint: Endpoint) -> Iterator[None]:
    """The target is a known model: with a `base_url` one of the user's own, unless the block finds fault with it."""
    if endpoint.base_url is None:
        given = {"--model": endpoint.model, "--key-env": endpoint.key_env, "--prices": endpoint.prices}
        if named := [name for name, value in given.items() if value]:
            raise ConfigError(f"expected --base-url with {' and '.join(named)}: they are of the model it serves")
        yield
        return
    with adding(layout, alias, endpoint.entry(alias)):
        yield


def _build_of(layout: Layout, benchmark: str, build: str | None) -> str:
    """The build to evaluate in: the one named, or the one a release is imported into."""
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
    return import_release(layout, folder, build or f"{read_manifest(folder)['build']}-released").build


def _show_headlines(layout: Layout, options: EvaluateOptions) -> None:
    """The headline scores of every target of the build on what was evaluated, this one's marked."""
    headlines = (ROOT / "sql" / "reports" / "headlines.sql").read_text(encoding="utf-8")
    benchmarks = [options.benchmark] if options.benchmark else ["demo", "eyt"]
    with open_views(layout, options.build) as connection:
        connection.execute("set variable target = ?", [options.target])
        connection.execute("set variable benchmarks = ?", [benchmarks])
        ask(connection, _HEADLINES.format(headlines=headlines), Format.table, layout)
    typer.echo(f"All metrics, and which differences count: colloquy report --build {options.build}")
