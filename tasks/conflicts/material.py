"""What pairings of a language can be drawn from, and how far each goal type is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from tasks.conflicts.rules import CHARACTER_COLUMNS, SCENE_COLUMNS
from tasks.conflicts.select import CellState, order_types
from tasks.foundation.stage import StageContext
from tasks.foundation.tables.types import Language

TRIPLE = ("scene_id", "character1_id", "character2_id")


@dataclass(frozen=True, slots=True)
class Material:
    """The scenes and characters of one language, as far as drawing looks at them, and the ids of each type's scenes."""

    scenes: pl.DataFrame
    characters: pl.DataFrame
    scenes_of: Mapping[str, list[str]]


def load_material(context: StageContext, language: Language) -> Material:
    """Reads them."""
    own = pl.col("language") == language
    scenes = context.read("scenes", own, SCENE_COLUMNS)
    grouped = scenes.group_by("goal_type", maintain_order=True).agg("scene_id")
    return Material(
        scenes,
        context.read("characters", own, CHARACTER_COLUMNS),
        dict(grouped.iter_rows()),
    )


def find_cells(material: Material, drawn: pl.DataFrame, language: Language, seed: int) -> dict[str, CellState]:
    """How far each goal type is, in the order in which they take turns. `drawn`: the language's pairings so far, with
    `refused` and `is_coherent`."""
    of_two = material.characters.height * (material.characters.height - 1)
    counts = (
        drawn.join(material.scenes.select("scene_id", "goal_type"), on="scene_id")
        .group_by("goal_type")
        .agg(pl.len(), pl.col("refused").sum(), pl.col("is_coherent").sum())
    )
    found = {goal_type: counted for goal_type, *counted in counts.iter_rows()}
    cells = {}
    for name in order_types(material.scenes_of, language, seed):
        n_drawn, n_refused, n_coherent = found.get(name, (0, 0, 0))
        left = len(material.scenes_of[name]) * of_two - n_drawn
        cells[name] = CellState(left, n_drawn - n_refused, n_coherent)
    return cells
