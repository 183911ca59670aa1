"""The budgets of one stage run: what the settings allow, less what this build has paid for before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tasks.foundation.errors import ConfigError
from tasks.foundation.llm.budget import Allowed, Budget, Spent, spent_of
from tasks.foundation.llm.cache import ReplyCache
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.llm.pricing import Pricing, pricing_of
from tasks.foundation.llm.request import Usage
from tasks.foundation.settings import Settings
from tasks.foundation.settings.sections import BudgetSection

PROBE = Usage(1000, 0, 1000, 0)
"""A call of ordinary size, to see whether a model has a price at all."""


def check_budget(stage: str, settings: Settings, specs: Iterable[ModelSpec], *, batched: bool) -> None:
    """ConfigError when dollars are limited and a model of the stage has no known price."""
    limits = {name: section.max_cost_usd for name, section in _sections(stage, settings)}
    named = [f"{name}.max_cost_usd" for name, dollars in limits.items() if dollars is not None]
    if not named:
        return
    unpriced = sorted({spec.alias for spec in specs if pricing_of(spec, batched=batched)(PROBE) is None})
    if unpriced:
        raise ConfigError(
            f"{' and '.join(named)}: expected a price for every model of stage {stage}, found none for "
            f"{', '.join(unpriced)}. Give them `prices` in configs/models.yaml (a model of your own: in "
            "models.yaml of the artifacts, or with `colloquy evaluate --prices`), or limit max_calls or max_tokens "
            "instead."
        )


def budget_of(stage: str, build: str, settings: Settings, models: Mapping[str, ModelSpec], cache: ReplyCache) -> Budget:
    """The run's budget and the stage's."""
    return Budget(limits_of(stage, build, settings, models, cache))


def limits_of(
    stage: str, build: str, settings: Settings, models: Mapping[str, ModelSpec], cache: ReplyCache
) -> list[Allowed]:
    """The limits of the run and of the stage, with what the build (the stage of the build) has spent so far."""
    prefixes = {"run.budget": [f"{build}/"], f"{stage}.budget": [f"{build}/{stage}/", f"{build}/{stage}@"]}
    limits = [Allowed(name, Spent(), **section.model_dump()) for name, section in _sections(stage, settings)]
    return [
        replace(limit, before=_spent(prefixes[limit.name], models, cache)) if limit.sets_something else limit
        for limit in limits
    ]


def _sections(stage: str, settings: Settings) -> Sequence[tuple[str, BudgetSection]]:
    return (("run.budget", settings.run.budget), (f"{stage}.budget", getattr(settings, stage).budget))


def _spent(prefixes: Sequence[str], models: Mapping[str, ModelSpec], cache: ReplyCache) -> Spent:
    """Each reply at the price of the way it came. A model that is no longer known costs nothing that could be counted;
    its calls and tokens are."""
    pricings: dict[tuple[str, bool], Pricing] = {}
    total = Spent()
    for prefix in prefixes:
        for alias, batched, usage in cache.read_usage(prefix):
            if (alias, batched) not in pricings:
                known = alias in models
                pricings[alias, batched] = pricing_of(models[alias], batched=batched) if known else _unknown
            total = total + spent_of(usage, pricings[alias, batched](usage))
    return total


def _unknown(usage: Usage) -> None:
    return None
