"""What there is to judge in a build, under keys that say what it is, and what is left out and why.

    awareness/<item>/<target>/<sample>   interaction/<interaction>   turn/<conversation>/<turn>   final/<conversation>

Void conversations (infrastructure or the simulator was at fault) are left out, and so are those that
`judging.subsample` does not draw for this judge. What a rule scores is on the list: it has a row too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from tasks.foundation.errors import StoreError
from tasks.foundation.settings.sections import SubsampleSection
from tasks.foundation.stage import StageContext
from tasks.judging.subsample import draw_stratified

VOID = ("infra", "simulator")

REFERENCES = (
    ("awareness_predictions", "awareness_items", "item_id", "awareness"),
    ("interactions", "interaction_episodes", "episode_id", "interaction"),
    ("conversations", "chat_seeds", "chat_seed_id", "conversation"),
)
"""Table, the table its column refers to, and the stage that puts it right."""


@dataclass(frozen=True, slots=True)
class Worklist:
    """Keys of all things to be judged, in order, and counts of those left out, by reason."""

    keys: tuple[str, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)


def list_cases(context: StageContext) -> Worklist:
    """Everything there is to judge. StoreError when there is nothing, or rows refer to what is no longer there."""
    for table, referred, column, stage in REFERENCES:
        _refuse_orphans(context, table, referred, column, stage)
    demo = [*_list_predictions(context), *_list_interactions(context)]
    talks, left_out = _list_conversations(context)
    if not demo and not talks and not left_out:
        raise StoreError(
            "there is nothing to judge: expected awareness_predictions, interactions or conversations in this build, "
            "found none. Run awareness, interaction or conversation for it first."
        )
    return Worklist((*demo, *talks), left_out)


def _list_predictions(context: StageContext) -> list[str]:
    rows = context.read("awareness_predictions", columns=("item_id", "target", "sample")).iter_rows()
    return [f"awareness/{item}/{target}/{sample}" for item, target, sample in rows]


def _list_interactions(context: StageContext) -> list[str]:
    return [f"interaction/{one}" for one in context.read("interactions", columns=("interaction_id",))["interaction_id"]]


def _list_conversations(context: StageContext) -> tuple[list[str], Mapping[str, int]]:
    """Keys of the turns of each conversation, then of its final intent; and what is left out."""
    conversations = context.read("conversations")
    turns: dict[str, list[int]] = {}
    rows = context.read("conversation_turns", columns=("conversation_id", "turn_index")).iter_rows()
    for conversation_id, turn in rows:
        turns.setdefault(conversation_id, []).append(turn)
    standing = conversations.filter(~pl.col("fault").is_in(VOID))
    drawn = set(_draw_conversations(standing, context.settings.judging.of(context.member).subsample))
    keys: list[str] = []
    left_out: Counter[str] = Counter()
    for conversation_id, fault in conversations.select("conversation_id", "fault").iter_rows():
        own = [f"turn/{conversation_id}/{turn}" for turn in sorted(turns.get(conversation_id, ()))]
        own.append(f"final/{conversation_id}")
        if conversation_id in drawn:
            keys += own
        else:
            left_out["void_conversation" if fault in VOID else "not_sampled"] += len(own)
    return keys, left_out


def _draw_conversations(conversations: pl.DataFrame, subsample: SubsampleSection | None) -> list[str]:
    if subsample is None:
        return conversations["conversation_id"].to_list()
    rows = conversations.select("conversation_id", *subsample.by).iter_rows()
    return draw_stratified({one: tuple(cell) for one, *cell in rows}, subsample.n, subsample.seed, subsample.cells)


def _refuse_orphans(context: StageContext, table: str, referred: str, column: str, stage: str) -> None:
    referring, there = (context.read(each, columns=(column,)) for each in (table, referred))
    orphans = referring.join(there, on=column, how="anti")
    if not orphans.is_empty():
        raise StoreError(
            f"{orphans.height} rows of {table} refer to a {column} that {referred} does not have any more, for example "
            f"{orphans[column][0]!r}: run {stage} again for this build, or drop the target they are of"
        )
