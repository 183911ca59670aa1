"""What DEMO's targets predicted and played as arrays: one unit an item or episode, target and sample.

Items without a prediction and episodes without an interaction (infrastructure took them, so the stage rejected
them) stand as void units, so that every lost one is counted beside the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from tasks.metrics.catalogue import AWARENESS_TASKS, INTERACTION_DIMENSIONS
from tasks.metrics.cells import Units
from tasks.metrics.demo_scores import CRITERIA, Scores, collect_scores, task_columns

Read = Callable[[str], pl.DataFrame]
Tried = Callable[[str], Sequence[str]]
VOIDING = ("infra", "partner")


@dataclass(frozen=True)
class Study:
    """`predictions`: one row an item, target and sample; `interactions`: one an episode, target, partner and
    sample. In both, `void` marks what a fault (not the target's) took, `answered` what the target gave anything to.
    `characters`: dialogue_id and the two that talk in it, of the dialogues of which they are known."""

    predictions: pl.DataFrame
    interactions: pl.DataFrame
    characters: pl.DataFrame

    @cached_property
    def units(self) -> Units:
        """Predictions, then interactions, clustered by the dialogue they come from; a task is a try at an item, or at
        an episode with the same partner (each with itself counts as the same)."""
        columns = ("language", "target", "partner", "goal_type")
        both = pl.concat([self.predictions, self.interactions], how="diagonal")
        keys = {name: np.array([*both[name].to_list(), None], dtype=object)[:-1] for name in columns}
        clusters = np.array([*both["dialogue_id"].to_list(), None], dtype=object)[:-1]
        partner = pl.when(pl.col("partner") == pl.col("target")).then(pl.lit("itself")).otherwise(pl.col("partner"))
        parts = [pl.col("item_id"), pl.col("episode_id"), partner, pl.col("sample").cast(pl.String)]
        tasks = both.select(pl.concat_str(*(part.fill_null("") for part in parts), separator="|").alias("task"))
        characters = both.select("dialogue_id").join(
            self.characters, on="dialogue_id", how="left", maintain_order="left"
        )
        return Units(
            keys,
            clusters,
            tasks["task"].to_numpy(),
            answered=both["answered"].to_numpy(),
            character_ids=np.array(characters.select(pl.exclude("dialogue_id")).rows(), dtype=object).reshape(-1, 2),
        )

    def awareness_numbers(self, scores: pl.DataFrame, judges: Sequence[str]) -> np.ndarray:
        """Numbers [predictions, judges, 2 criteria], NaN where unscored."""
        return _numbers(self.predictions, scores, ["item_id", "target", "sample"], judges, CRITERIA)

    def interaction_numbers(self, scores: pl.DataFrame, judges: Sequence[str]) -> np.ndarray:
        """Numbers [interactions, judges, 4 dimensions], NaN where unscored."""
        return _numbers(self.interactions, scores, ["interaction_id"], judges, INTERACTION_DIMENSIONS)

    def scores(self, awareness: np.ndarray, interaction: np.ndarray) -> tuple[Scores, Scores]:
        """A panel's sums over all units: awareness by task, interaction by dimension."""
        n, m = len(self.predictions), len(self.interactions)
        tasks = task_columns(self.predictions["task"].to_list())
        one = collect_scores(awareness, tasks, len(AWARENESS_TASKS), self.predictions["void"].to_numpy())
        width = len(INTERACTION_DIMENSIONS)
        other = collect_scores(
            interaction, np.tile(np.arange(width), (m, 1)), width, self.interactions["void"].to_numpy()
        )
        return _padded(one, 0, m), _padded(other, n, 0)


def load_study(read: Read, tried: Tried = lambda table: ()) -> Study:
    """From the tables of items, predictions, episodes, interactions, dialogues and pairings, in key order. `tried`: the
    targets that a table's stage has run for, those too of whom it has no row."""
    pairs = read("pairings").select("pairing_id", "character1_id", "character2_id")
    characters = read("dialogues").select("dialogue_id", "pairing_id").join(pairs, on="pairing_id", how="inner")
    return Study(
        _predictions(read, tried("awareness_predictions")),
        _interactions(read, tried("interactions")),
        characters.drop("pairing_id"),
    )


def _sides(made: pl.DataFrame, columns: Sequence[str], tried: Sequence[str]) -> pl.DataFrame:
    """What targets were set to (columns but the target) that have made something; those that have not, as often as
    the others, with nobody known beside them."""
    there = made.select("target", "sample", *columns).unique(maintain_order=True)
    samples = made.select("sample").unique(maintain_order=True)
    if samples.is_empty():
        samples = pl.DataFrame({"sample": [0]}, schema=samples.schema)
    lost = pl.DataFrame({"target": sorted({*tried} - {*made["target"]})}, schema={"target": pl.String})
    return pl.concat([there, lost.join(samples, how="cross")], how="diagonal")


def _predictions(read: Read, tried: Sequence[str]) -> pl.DataFrame:
    items = read("awareness_items").select("item_id", "task", "language", "dialogue_id", "goal_type")
    made = read("awareness_predictions").select(
        "item_id", "target", "sample", (pl.col("raw").str.strip_chars() != "").alias("answered")
    )
    wanted = items.join(_sides(made, (), tried), how="cross")
    there = made.with_columns(pl.lit(False).alias("void"))
    return wanted.join(there, on=["item_id", "target", "sample"], how="left", maintain_order="left").with_columns(
        pl.col("void").fill_null(True),
        pl.col("answered").fill_null(False),
        pl.lit(None, dtype=pl.String).alias("partner"),
    )


def _interactions(read: Read, tried: Sequence[str]) -> pl.DataFrame:
    episodes = read("interaction_episodes").select("episode_id", "language", "dialogue_id", "goal_type")
    played = read("interactions").select(
        *("interaction_id", "episode_id", "target", "partner", "sample", "fault"),
        (pl.col("turn_count") > 0).alias("answered"),
    )
    wanted = episodes.join(_sides(played, ("partner",), tried), how="cross")
    key = ["episode_id", "target", "partner", "sample"]
    joined = wanted.join(played, on=key, how="left", maintain_order="left")
    return joined.with_columns(
        pl.col("fault").fill_null("infra").is_in(VOIDING).alias("void"), pl.col("answered").fill_null(False)
    )


def _numbers(
    units: pl.DataFrame, scores: pl.DataFrame, key: list[str], judges: Sequence[str], columns: Sequence[str]
) -> np.ndarray:
    cube = np.full((len(units), len(judges), len(columns)), np.nan)
    rows = scores.join(units.select(key).with_row_index("unit"), on=key, how="inner")
    code = {judge: place for place, judge in enumerate(judges)}
    codes = np.array([code.get(judge, -1) for judge in rows["judge"]], dtype=int)
    ours = codes >= 0
    values = rows.select(pl.col(list(columns)).cast(pl.Float64)).to_numpy()
    cube[rows["unit"].to_numpy()[ours], codes[ours]] = values[ours]
    return cube


def _padded(scores: Scores, before: int, after: int) -> Scores:
    """The scores with empty units before and after."""
    width = ((before, after), (0, 0))
    parts = (scores.total, scores.count, scores.unscored, scores.fault)
    return Scores(*(np.pad(part, width) for part in parts))
