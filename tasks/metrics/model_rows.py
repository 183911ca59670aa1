"""The models that a build names: those of the settings, and those that its data came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import polars as pl

from tasks.foundation.errors import ConfigError
from tasks.foundation.llm.models import ModelSpec
from tasks.foundation.settings import Settings
from tasks.foundation.tables.evaluation import Model

NAMED_IN: tuple[tuple[str, str], ...] = (
    ("reviews", "annotator"),
    ("votes", "voter"),
    ("awareness_predictions", "target"),
    ("awareness_scores", "judge"),
    ("interactions", "target"),
    ("interactions", "partner"),
    ("interaction_scores", "judge"),
    ("conversations", "target"),
    ("conversations", "simulator"),
    ("turn_judgements", "judge"),
    ("final_intent_judgements", "judge"),
)
"""Table and column of every alias that data carries."""


def find_aliases_in_settings(settings: Settings) -> list[str]:
    """Every alias that makes or judges something, once, in the order of the stages. Targets are those of the data: each
    may have been evaluated by a run of its own."""
    named: list[str | None] = [
        settings.personas.designer,
        settings.scenes.distiller,
        settings.conflicts.assessor,
        settings.dialogues.writer,
        *settings.voting.annotators,
        settings.voting.arbiter,
        settings.chatseeds.seeder,
        settings.interaction.partner,
        settings.conversation.simulator,
        *settings.judging.judges,
    ]
    return list(dict.fromkeys(alias for alias in named if alias is not None))


def find_aliases_in_data(read: Callable[..., pl.DataFrame]) -> list[str]:
    """Every alias that rows carry, sorted."""
    return sorted({alias for table, column in NAMED_IN for alias in read(table, columns=(column,))[column].unique()})


def make_model_rows(aliases: Iterable[str], model: Callable[[str], ModelSpec]) -> list[Model]:
    """One row an alias, sorted; an alias that configs/models.yaml does not know any more has none."""
    return [row for alias in sorted(set(aliases)) if (row := _row(alias, model)) is not None]


def find_thinking_pairs(models: Iterable[Model]) -> list[tuple[str, str]]:
    """Aliases of models that think, each with that of the same model that does not, where both are here."""
    rows = list(models)
    here = {row.alias for row in rows}
    return [(row.alias, row.thinking_pair) for row in rows if row.thinking and row.thinking_pair in here]


def describe_models(models: Mapping[str, ModelSpec]) -> dict[str, dict[str, Any]]:
    """What rows say of each model; not what it costs, nor how fast it may be asked."""
    return {alias: _described(spec) for alias, spec in models.items()}


def _described(spec: ModelSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in Model.model_fields}


def _row(alias: str, model: Callable[[str], ModelSpec]) -> Model | None:
    try:
        spec = model(alias)
    except (ConfigError, KeyError):
        return None
    return Model.model_validate(_described(spec))
