"""Models that a user names on the command line: kept beside the store, so that every process knows them.

`<artifacts>/models.yaml` has the form of configs/models.yaml and is read after it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tasks.foundation.errors import ConfigError
from tasks.foundation.llm.models import Models, load_models, parse_models
from tasks.foundation.store.durable import write_text
from tasks.foundation.store.layout import Layout


def all_models(layout: Layout) -> Models:
    """The project's models and the user's own; ConfigError when an own one takes a project's alias."""
    models = load_models()
    own = parse_models(_content(_file(layout)), str(_file(layout)))
    if taken := sorted(set(models) & set(own)):
        raise ConfigError(f"{_file(layout)} names {', '.join(taken)}, which configs/models.yaml has already")
    return Models({**models, **own})


def add_model(layout: Layout, alias: str, entry: dict[str, Any]) -> None:
    """Keep a model of the user's own; ConfigError when the alias means another model already."""
    project, content = load_models(), _content(_file(layout))
    if alias in project:
        raise ConfigError(
            f"{alias!r} is an alias of configs/models.yaml; use it as it is, or choose another name for the model at "
            f"{entry.get('base_url')}"
        )
    known = content["models"].get(alias)
    if known is not None and known != entry:
        raise ConfigError(f"{alias!r} is already {known} in {_file(layout)}; choose another name, or edit that file")
    content["models"][alias] = entry
    parse_models(content, f"model {alias!r}")
    write_text(_file(layout), layout.scratch, yaml.safe_dump(content, sort_keys=True))


def _file(layout: Layout) -> Path:
    return layout.root / "models.yaml"


def _content(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"models": {}}
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    return {"models": dict(content.get("models") or {})}
