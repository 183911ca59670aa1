"""`colloquy doctor`: what is right and what is missing on this machine, for one profile. Nothing is downloaded; no key
is shown."""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import typer
from packaging.requirements import Requirement

from flows import chain
from flows.chain.previews import Preview, previews
from flows.cli.run import Profile
from flows.server import environment
from tasks.foundation import ROOT, weights
from tasks.foundation.errors import ColloquyError, StoreError
from tasks.foundation.llm.models import ModelSpec, check_reachable, check_ready
from tasks.foundation.llm.own_models import all_models
from tasks.foundation.settings import Settings, load_settings
from tasks.foundation.store.layout import Layout
from tasks.foundation.tables.languages import LANGUAGES
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.similarity import similarity_of
from tasks.foundation.weights.catalogue import CATALOGUE

LITTLE_SPACE_BYTES = 2 * 1024**3
OLDEST_PYTHON = (3, 11)


def doctor(profile: Profile = None) -> None:
    """Look at Python, packages, disk, settings, models, keys, weights and Prefect; say what to do."""
    code = 0
    for finding in examine(profile or chain.usual_profile()):
        typer.echo(f"{finding.mark:<9}{finding.topic:<10}{finding.what}")
        code = code or finding.exit_code
    raise typer.Exit(code)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `exit_code` is 0 when it is well, or (`optional`) a run does without it."""

    topic: str
    what: str
    exit_code: int = 0
    optional: bool = False

    @property
    def mark(self) -> str:
        return "missing" if self.exit_code else "optional" if self.optional else "ok"


def examine(profile: str) -> Iterator[Finding]:
    """Every finding for a profile, in the order in which a user would mend them."""
    yield _python()
    yield from _packages()
    yield from _places(Layout.default())
    try:
        settings = load_settings(profile)
    except ColloquyError as error:
        yield Finding("settings", str(error), error.exit_code)
    else:
        yield Finding("settings", f"profile {profile} is valid")
        yield from map(_source, previews(settings))
        yield from _models(settings)
    yield _server()


def _python() -> Finding:
    found = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < OLDEST_PYTHON:
        return Finding("python", f"expected Python {'.'.join(map(str, OLDEST_PYTHON))} or newer, found {found}", 2)
    return Finding("python", found)


def _packages() -> Iterator[Finding]:
    """Every requirement of pyproject.toml that is not met; one finding when all are."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [Requirement(text) for text in project["dependencies"]]
    unmet = [problem for requirement in wanted if (problem := _unmet(requirement))]
    for problem in unmet:
        yield Finding("packages", f"{problem}; `make setup` installs what is missing", 2)
    if not unmet:
        yield Finding("packages", f"all {len(wanted)} are installed")


def _unmet(requirement: Requirement) -> str | None:
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        return f"{requirement.name} is not installed"
    if requirement.specifier.contains(found, prereleases=True):
        return None
    return f"expected {requirement}, found {found}"


def _places(layout: Layout) -> Iterator[Finding]:
    for name, folder in (("artifacts", layout.root), ("weights", weights.models_dir())):
        there = _existing(folder)
        free = shutil.disk_usage(there).free
        if not os.access(there, os.W_OK):
            yield Finding(name, f"{folder} cannot be written", 4)
        elif free < LITTLE_SPACE_BYTES:
            yield Finding(name, f"{folder}: only {free / 1e9:.1f} GB free", 4)
        else:
            yield Finding(name, f"{folder}, {free / 1e9:.0f} GB free")


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


def _source(preview: Preview) -> Finding:
    if preview.error is not None:
        return Finding("source", f"{preview.source.name}: {preview.what}", preview.error.exit_code)
    here = f"{preview.source.path} is here; " if preview.source.file is not None else ""
    return Finding("source", f"{preview.source.name}: {here}{preview.what}")


def _models(settings: Settings) -> Iterator[Finding]:
    models = all_models(Layout.default())
    for alias, roles in chain.roles_by_alias(settings).items():
        try:
            spec = models[alias]
        except ColloquyError as error:
            yield Finding("model", str(error), error.exit_code)
            continue
        problem = check_ready(spec) or check_reachable(spec)
        text = f"{problem or _ready(spec)}{_origin(spec.weights)}"
        yield Finding("model", f"{text} ({', '.join(roles)})", 5 if problem else 0)
    by_name: dict[str | None, list[Language]] = {}
    for language in LANGUAGES:
        by_name.setdefault(settings.encoder.of(language), []).append(language)
    for name, languages in by_name.items():
        yield _encoder(name, languages, settings)


def _encoder(name: str | None, languages: Sequence[Language], settings: Settings) -> Finding:
    """What texts of these languages are compared with. English cannot do without its encoder; Chinese can."""
    knows, origin = " and ".join(LANGUAGES[language] for language in languages), _origin(name)
    try:
        found, *_ = [similarity_of(language, settings) for language in languages]
        if isinstance(found, Encoder):
            return Finding("encoder", f"{knows}: {found.name} is here, {found.weights_folder}{origin}")
        return Finding("encoder", f"{knows}: {found.explanation}{origin}", optional=name is not None)
    except ColloquyError as error:
        return Finding("encoder", f"{knows}: {error}{origin}", error.exit_code)


def _origin(name: str | None) -> str:
    """Size, publisher and licence of weights that can be had; empty for a file or folder of the user's own."""
    each = CATALOGUE.get(name or "")
    return f" [{each.bytes / 1e6:.0f} MB, published by {each.publisher}, {each.licence}]" if each else ""


def _ready(spec: ModelSpec) -> str:
    if spec.api_key_env is not None:
        return f"{spec.alias}: a key is set in {spec.api_key_env}"
    return f"{spec.alias}: ready, {spec.provider}"


def _server() -> Finding:
    try:
        environment.check_configured()
    except StoreError as error:
        return Finding("prefect", str(error), error.exit_code)
    url = environment.server_url()
    if url is None:
        text = "no server is up: runs start a temporary one; `colloquy serve` starts server and UI"
        return Finding("prefect", text, optional=True)
    return Finding("prefect", f"server at {environment.without_login(url)}")
