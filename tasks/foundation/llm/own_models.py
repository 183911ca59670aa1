"""Models that a user names on the command line: kept beside the store, so that every process knows them.

`<artifacts>/models.yaml` has the form of configs/models.yaml and is read after it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tasks.foundation.errors import ConfigError
from tasks.foundation.llm.models import Models, load_models, parse_models
from tasks.foundation.settings.strict_yaml import load_yaml
from tasks.foundation.store.files import write_text
from tasks.foundation.store.layout import Layout
from tasks.foundation.store.views import all_commits


def all_models(layout: Layout) -> Models:
    """The project's models and the user's own; ConfigError when an own one takes a project's alias."""
    models = load_models()
    own = parse_models(_content(_file(layout)), str(_file(layout)))
    if taken := sorted(set(models) & set(own)):
        raise ConfigError(f"{_file(layout)} names {', '.join(taken)}, which configs/models.yaml has already")
    return Models({**models, **own})


ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@contextmanager
def adding(layout: Layout, alias: str, entry: dict[str, Any]) -> Iterator[None]:
    """Keeps a model of the user's own, unless the block raises; then everything is as before."""
    path = _file(layout)
    before = path.read_text(encoding="utf-8") if path.exists() else None
    add_model(layout, alias, entry)
    try:
        yield
    except BaseException:
        if before is None:
            path.unlink()
        else:
            write_text(path, layout.scratch, before)
        raise


def add_model(layout: Layout, alias: str, entry: dict[str, Any]) -> None:
    """Keep a model of the user's own. An alias that builds have rows of may get another endpoint, but means the same
    model; ConfigError otherwise."""
    project, content = load_models(), _content(_file(layout))
    if not ALIAS.fullmatch(alias):
        raise ConfigError(f"expected an alias of letters, digits, dots, dashes and underscores, found {alias!r}")
    if alias in project:
        raise ConfigError(
            f"{alias!r} is an alias of configs/models.yaml; use it as it is, or choose another name for the model at "
            f"{entry.get('base_url')}"
        )
    _check_family(entry["family"], {spec.family for spec in project.values()})
    known = content["models"].get(alias)
    if known is not None and any(known.get(name) != entry.get(name) for name in ("provider", "name", "family")):
        _refuse_another(layout, alias, known)
    content["models"][alias] = entry
    parse_models(content, f"model {alias!r}")
    write_text(_file(layout), layout.scratch, yaml.safe_dump(content, sort_keys=True))


def _check_family(family: str, known: Collection[str]) -> None:
    """ConfigError for what looks like a known family misspelt: the rule of families would not see it."""
    near = difflib.get_close_matches(family, known, n=1, cutoff=0.8)
    if family not in known and near:
        raise ConfigError(
            f"expected a model family, found {family!r}: did you mean {near[0]!r}? A family that is not among "
            f"{', '.join(sorted(known))} needs a name less like theirs."
        )


def _refuse_another(layout: Layout, alias: str, known: Mapping[str, Any]) -> None:
    """ConfigError where rows of a build would then be said to come from another model."""
    having = sorted({commit.build for commit in all_commits(layout) if commit.member == alias})
    if having:
        raise ConfigError(
            f"{alias!r} is {known['name']} of family {known['family']} in build {', '.join(having)}: choose another "
            f"alias for another model, or take its rows out first (`colloquy drop --target {alias}`)"
        )


def _file(layout: Layout) -> Path:
    return layout.root / "models.yaml"


def _content(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"models": {}}
    try:
        content = load_yaml(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    models = content.get("models") if isinstance(content, dict) else content
    if not isinstance(models or {}, dict):
        raise ConfigError(f"{path}: expected `models:` with an entry for each alias, found {str(content)[:60]!r}")
    return {"models": dict(models or {})}
