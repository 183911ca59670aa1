"""The simulated conversations of EYT-Bench as arrays: conversations [C], their turns [N], what judges gave.

A conversation that should be there and is not (infrastructure took it, so the stage rejected it) stands as a
void one, so that every lost conversation is counted beside the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from tasks.metrics.accuracy import Turns
from tasks.metrics.catalogue import LABELS, SUB_INDICATORS
from tasks.metrics.cells import Units
from tasks.metrics.simulator_health import Heard
from tasks.metrics.words import Said

Read = Callable[..., pl.DataFrame]

TURN_COLUMNS = (
    *("conversation_id", "turn_index", "user_text", "perception_fault", "label_reasks", "role_breaks"),
    *(f"{side}_{label}" for label in LABELS for side in ("gold", "predicted")),
)
"""Of `conversation_turns`, what is held here; of the answers only whether there is one."""
CONDITIONS = ("simulator", "persona_to_target", "protocol")
"""Columns of `conversations` that two conversations must have in common to be compared."""
VOIDING = ("infra", "simulator")
"""Faults that void a conversation; a target's own stays in every denominator."""


@dataclass(frozen=True)
class Study:
    """`conversations` has one row a conversation, missing ones last (conversation_id null); `turns` one row a turn in
    order, with `place`, its conversation's row, `position`, 1-based within it, and whether it was `answered`."""

    conversations: pl.DataFrame
    turns: pl.DataFrame

    @cached_property
    def units(self) -> Units:
        """Conversations by pool, language, target and simulator, clustered by chat seed; a task is a try at a seed
        under the same conditions: simulator, what the target is told, protocol."""
        keys = {name: _texts(self.conversations, name) for name in ("pool", "language", "target", "simulator")}
        conditions = ("chat_seed_id", *CONDITIONS, "sample")
        parts = [pl.col(name).cast(pl.String).fill_null("") for name in conditions]
        made = self.conversations.select(
            pl.concat_str(*parts, separator="|").alias("task"),
            pl.concat_str(*parts[1:-1], separator="|").alias("condition"),
        )
        clusters = _texts(self.conversations, "chat_seed_id")
        answered = (self.conversations["t_actual"] > 0).to_numpy()
        return Units(keys, clusters, made["task"].to_numpy(), made["condition"].to_numpy(), answered)

    @cached_property
    def present(self) -> np.ndarray:
        """Mask [C]: the conversation was held, whatever became of it."""
        return self.conversations["conversation_id"].is_not_null().to_numpy()

    @cached_property
    def void(self) -> np.ndarray:
        """Mask [C]: void by a fault that is not the target's."""
        return self.conversations["fault"].is_in(VOIDING).to_numpy()

    @cached_property
    def target_fault(self) -> np.ndarray:
        return (self.conversations["fault"] == "target").to_numpy()

    @cached_property
    def conversation(self) -> np.ndarray:
        """Places [N] of the turns' conversations."""
        return self.turns["place"].to_numpy().astype(int)

    @cached_property
    def position(self) -> np.ndarray:
        """1-based turn [N] within the conversation."""
        return self.turns["position"].to_numpy().astype(int)

    @cached_property
    def failed(self) -> np.ndarray:
        """Mask [N]: the turn at which the target failed; its predictions are wrong whatever they were."""
        return ~self.turns["answered"].to_numpy() & self.target_fault[self.conversation]

    @cached_property
    def lost(self) -> np.ndarray:
        """Mask [N]: infrastructure took the prediction (the stage names a perception fault for no other reason)."""
        return self.turns["perception_fault"].is_not_null().to_numpy() & ~self.failed

    @cached_property
    def counted(self) -> Turns:
        """The turns whose predictions count."""
        void = self.void[self.conversation] | self.lost
        gone = self.void & (np.bincount(self.conversation, minlength=len(self.void)) == 0)
        return Turns(self.conversation, self.position, ~void, void, gone)

    def gold(self, label: str) -> np.ndarray:
        """Gold labels [N]."""
        return _texts(self.turns, f"gold_{label}")

    def predicted(self, label: str) -> np.ndarray:
        """Predicted labels [N]; None: unreadable, out of vocabulary, or at the turn where the target failed."""
        found = _texts(self.turns, f"predicted_{label}")
        found[self.failed] = None
        return found

    @cached_property
    def unreadable(self) -> np.ndarray:
        """Mask [N, 3] of labels that are unreadable or out of vocabulary, or of a turn at which the target failed."""
        columns = [self.turns[f"predicted_{label}"].is_null().to_numpy() | self.failed for label in LABELS]
        return np.stack(columns, axis=1)

    def turn_scores(self, judgements: pl.DataFrame, judges: Sequence[str]) -> np.ndarray:
        """Sub-scores [N, judges, 15], as single floats, NaN where unscored."""
        places = self.turns.select("conversation_id", "turn_index").with_row_index("turn")
        rows = judgements.join(places, on=["conversation_id", "turn_index"], how="inner")
        cube = np.full((len(self.turns), len(judges), len(SUB_INDICATORS)), np.nan, dtype=np.float32)
        return _fill(cube, rows, rows["turn"], judges, SUB_INDICATORS)

    def final_scores(self, judgements: pl.DataFrame, judges: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Verdicts and satisfaction [C, judges, 2], NaN where unscored; and which [C, judges] have a row."""
        places = self.conversations.select("conversation_id").with_row_index("place")
        rows = judgements.join(places, on="conversation_id", how="inner")
        cube = np.full((len(self.conversations), len(judges), 2), np.nan)
        judged = np.zeros((*cube.shape[:2], 1))
        there = rows.with_columns(pl.lit(1.0).alias("there"))
        _fill(judged, there, rows["place"], judges, ("there",))
        return _fill(cube, rows, rows["place"], judges, ("completed", "satisfaction")), judged[:, :, 0] == 1

    @cached_property
    def heard(self) -> Heard:
        """The user's side of every conversation [C]; nothing of a missing one."""
        ends = self.conversations.with_row_index("place")
        turns = self.turns.select(pl.col("place").cast(pl.UInt32), "turn_index", text="user_text")
        last = ends.select(
            "place", pl.lit(None, turns.schema["turn_index"]).alias("turn_index"), text="final_user_text"
        )
        spoken = pl.concat([turns, last.drop_nulls("text")]).sort("place", "turn_index", nulls_last=True)
        said = Said(spoken["text"], spoken["place"].to_numpy().astype(int), len(ends))
        simulated = self.turns.filter(pl.col("turn_index") != 1)
        asked = {
            name: np.bincount(simulated["place"].to_numpy().astype(int), simulated[name].to_numpy(), len(ends))
            + ends[f"final_{name}"].fill_null(0).to_numpy()
            for name in ("label_reasks", "role_breaks")
        }
        seeded = (spoken["turn_index"] == 1).fill_null(value=False).to_numpy()
        given_up = (ends["fault"] == "simulator").to_numpy()
        return Heard(said, seeded, ends["final_intent"], **asked, given_up=given_up)

    def list_user_sides(self) -> dict[tuple[str, str], tuple[Said, np.ndarray]]:
        """By simulator and language, what the user said in each conversation that stands, and its seed's code."""
        stands, keys = self.present & ~self.void, self.units.keys
        found = {}
        for pair in sorted({*zip(keys["simulator"][stands], keys["language"][stands], strict=True)}):
            chosen = stands & self.units.where(dict(zip(("simulator", "language"), pair, strict=True)))
            places = np.nonzero(chosen)[0]
            found[pair] = (self.heard.said.only(places), self.units.clusters[places])
        return found


def load_study(read: Read, tried: Sequence[str] = ()) -> Study:
    """From the tables conversations, conversation_turns and chat_seeds, in key order. `tried`: the targets that
    conversations were held with, those too of whom none is left."""
    seeds = read("chat_seeds")
    held = read("conversations").join(
        seeds.select("chat_seed_id", "language", "final_intent"), on="chat_seed_id", how="left", maintain_order="left"
    )
    conversations = pl.concat([held, _missing(held, seeds, tried)], how="diagonal")
    places = conversations.select("conversation_id").with_row_index("place")
    key = ["conversation_id", "turn_index"]
    unanswered = read("conversation_turns", pl.col("assistant_text").is_null(), key)
    turns = (
        read("conversation_turns", columns=TURN_COLUMNS)
        .join(unanswered.with_columns(answered=False), on=key, how="left")
        .with_columns(pl.col("answered").fill_null(value=True))
        .join(places, on="conversation_id", how="inner")
        .sort("place", "turn_index")
        .with_columns((pl.int_range(pl.len()).over("place") + 1).alias("position"))
    )
    return Study(conversations, turns)


def _missing(held: pl.DataFrame, seeds: pl.DataFrame, tried: Sequence[str]) -> pl.DataFrame:
    """A void row for every usable seed that a target did not talk to, in each of its settings; of a target that has no
    conversation, as often as the others talked to it, under conditions that nobody knows."""
    settings = held.select("target", *CONDITIONS, "sample").unique(maintain_order=True)
    samples = held.select("sample").unique(maintain_order=True)
    if samples.is_empty():
        samples = pl.DataFrame({"sample": [0]}, schema=samples.schema)
    lost = pl.DataFrame({"target": sorted({*tried} - {*held["target"]})}, schema={"target": pl.String})
    settings = pl.concat([settings, lost.join(samples, how="cross")], how="diagonal")
    usable = seeds.filter(pl.col("error").is_null()).select("chat_seed_id", "pool", "language", "final_intent")
    key = ["chat_seed_id", "target", *CONDITIONS, "sample"]
    expected = settings.join(usable, how="cross")
    return expected.join(held.select(key), on=key, how="anti", maintain_order="left").with_columns(
        pl.lit(None, dtype=pl.String).alias("conversation_id"),
        pl.lit("infra").alias("fault"),
        pl.lit("fault").alias("stop_reason"),
        pl.lit(0, dtype=pl.Int32).alias("t_actual"),
    )


def _fill(
    cube: np.ndarray, rows: pl.DataFrame, places: pl.Series, judges: Sequence[str], columns: Sequence[str]
) -> np.ndarray:
    """Puts the columns of `rows` into a cube [places, judges, columns]; rows of other judges are left out."""
    ours = rows.with_columns(places.alias("at")).filter(pl.col("judge").is_in(list(judges)))
    code = {judge: place for place, judge in enumerate(judges)}
    codes = ours["judge"].replace_strict(code, return_dtype=pl.Int64).to_numpy().astype(int)
    at = ours["at"].to_numpy().astype(int)
    for number, column in enumerate(columns):
        cube[at, codes, number] = ours[column].cast(pl.Float64).to_numpy()
    return cube


def _texts(frame: pl.DataFrame, column: str) -> np.ndarray:
    """A text column as objects, None where null; equal texts are one object."""
    distinct = frame[column].unique().drop_nulls()
    codes = frame[column].cast(pl.Enum(distinct)).to_physical().cast(pl.Int64).fill_null(len(distinct))
    return np.array([*distinct, None], dtype=object)[codes.to_numpy()]
