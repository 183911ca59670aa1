"""Which models and weights a profile uses, by stage and role."""

from __future__ import annotations

from collections.abc import Sequence

from flows import chain
from tasks.foundation.llm.models import Models
from tasks.foundation.settings import Settings


def roles_by_alias(settings: Settings) -> dict[str, list[str]]:
    """Each model alias of the settings with what it does, as "voting arbiter"; in the order of the chain."""
    found: dict[str, list[str]] = {}
    for stage in chain.chain():
        for role, aliases in stage.roles(settings).items():
            for alias in aliases:
                found.setdefault(alias, []).append(f"{stage.name} {role}")
    return found


def weights_needed(settings: Settings, models: Models) -> list[str]:
    """Names of the weights that a run cannot do without: of the settings' models and of the English encoder."""
    used = [models[alias] for alias in roles_by_alias(settings)]
    names: Sequence[str] = [spec.weights for spec in used if spec.weights is not None]
    encoders = [] if settings.encoder.folder(settings.encoder.en) else [settings.encoder.en]
    return list(dict.fromkeys([*names, *encoders]))
