"""All that is needed to judge one thing, gathered from the tables.

What a judge must not see (labels, later turns, who the target is) does not get this far where it is not
needed for the row itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from tasks.foundation.demo.records import load_groups_by, load_rows_by
from tasks.foundation.stage import StageContext
from tasks.foundation.tables.dialogues import AwarenessItem, InteractionEpisode
from tasks.foundation.tables.evaluation import AwarenessPrediction, Interaction, InteractionTurn
from tasks.judging.prompts import Exchange


@dataclass(frozen=True, slots=True)
class PredictionCase:
    item: AwarenessItem
    prediction: AwarenessPrediction

    @property
    def key(self) -> str:
        return f"awareness/{self.item.item_id}/{self.prediction.target}/{self.prediction.sample}"


@dataclass(frozen=True, slots=True)
class InteractionCase:
    interaction: Interaction
    episode: InteractionEpisode
    turns: tuple[InteractionTurn, ...]

    @property
    def key(self) -> str:
        return f"interaction/{self.interaction.interaction_id}"


@dataclass(frozen=True, slots=True)
class TurnCase:
    """`conversation` ends with the turn to be judged. `answered` False: the target is at fault in it."""

    conversation_id: str
    turn_index: int
    persona: str
    conversation: tuple[Exchange, ...]
    answered: bool

    @property
    def key(self) -> str:
        return f"turn/{self.conversation_id}/{self.turn_index}"


@dataclass(frozen=True, slots=True)
class FinalIntentCase:
    """`unanswered`: the last user turn, which the target did not get to answer; empty where there is none."""

    conversation_id: str
    final_intent: str
    conversation: tuple[Exchange, ...]
    unanswered: str
    target_at_fault: bool

    @property
    def key(self) -> str:
        return f"final/{self.conversation_id}"


Case = PredictionCase | InteractionCase | TurnCase | FinalIntentCase


def load_cases(context: StageContext, keys: Sequence[str]) -> Mapping[str, Case]:
    """The case of each key."""
    by_kind: dict[str, list[str]] = {}
    for key in keys:
        by_kind.setdefault(key.partition("/")[0], []).append(key)
    found: dict[str, Case] = {}
    found |= _list_predictions(context, by_kind.get("awareness", ()))
    found |= _list_interactions(context, by_kind.get("interaction", ()))
    found |= _talks(context, by_kind.get("turn", ()), by_kind.get("final", ()))
    return found


def _list_predictions(context: StageContext, keys: Sequence[str]) -> dict[str, Case]:
    if not keys:
        return {}
    ids = sorted({key.split("/")[1] for key in keys})
    items = load_rows_by(context.read, "awareness_items", AwarenessItem, "item_id", ids)
    predictions = load_groups_by(context.read, "awareness_predictions", AwarenessPrediction, "item_id", ids)
    found = {
        f"awareness/{item_id}/{one.target}/{one.sample}": PredictionCase(items[item_id], one)
        for item_id, group in predictions.items()
        for one in group
    }
    return {key: found[key] for key in keys}


def _list_interactions(context: StageContext, keys: Sequence[str]) -> dict[str, Case]:
    if not keys:
        return {}
    ids = [key.split("/")[1] for key in keys]
    interactions = load_rows_by(context.read, "interactions", Interaction, "interaction_id", ids)
    episode_ids = [interaction.episode_id for interaction in interactions.values()]
    episodes = load_rows_by(context.read, "interaction_episodes", InteractionEpisode, "episode_id", episode_ids)
    turns = load_groups_by(context.read, "interaction_turns", InteractionTurn, "interaction_id", ids)
    return {
        f"interaction/{one}": InteractionCase(
            interactions[one], episodes[interactions[one].episode_id], tuple(turns.get(one, ()))
        )
        for one in ids
    }


def _talks(context: StageContext, turn_keys: Sequence[str], final_keys: Sequence[str]) -> dict[str, Case]:
    if not turn_keys and not final_keys:
        return {}
    places = [(key.split("/")[1], int(key.split("/")[2])) for key in turn_keys]
    finals = [key.split("/")[1] for key in final_keys]
    talks = _list_conversations(context, {one for one, _ in places} | set(finals))
    found: dict[str, Case] = {}
    for conversation_id, turn in places:
        found[f"turn/{conversation_id}/{turn}"] = talks[conversation_id].turn(turn)
    for conversation_id in finals:
        found[f"final/{conversation_id}"] = talks[conversation_id].final()
    return found


@dataclass(frozen=True, slots=True)
class _Talk:
    """One conversation as far as a judge may know it. `turns`: index, user text, answer (None: there is none)."""

    conversation_id: str
    persona: str
    final_intent: str
    unanswered: str
    target_at_fault: bool
    turns: tuple[tuple[int, str, str | None], ...]

    def turn(self, turn_index: int) -> TurnCase:
        so_far = [turn for turn in self.turns if turn[0] <= turn_index]
        answered = bool((so_far[-1][2] or "").strip())
        return TurnCase(self.conversation_id, turn_index, self.persona, _exchanges(so_far), answered)

    def final(self) -> FinalIntentCase:
        conversation = _exchanges(self.turns)
        return FinalIntentCase(
            self.conversation_id, self.final_intent, conversation, self.unanswered, self.target_at_fault
        )


def _exchanges(turns: Iterable[tuple[int, str, str | None]]) -> tuple[Exchange, ...]:
    return tuple(Exchange(user=user, assistant=answer or "") for _, user, answer in turns)


def _list_conversations(context: StageContext, ids: set[str]) -> dict[str, _Talk]:
    """The conversations of `ids` with persona and final intent; no label is read."""
    wanted = pl.col("conversation_id").is_in(list(ids))
    turns: dict[str, list[tuple[int, str, str | None]]] = {}
    columns = ("conversation_id", "turn_index", "user_text", "assistant_text")
    for conversation_id, *turn in context.read("conversation_turns", wanted, columns).iter_rows():
        turns.setdefault(conversation_id, []).append((turn[0], turn[1], turn[2]))
    columns = ("conversation_id", "chat_seed_id", "final_user_text", "fault")
    conversations = context.read("conversations", wanted, columns)
    of_these = pl.col("chat_seed_id").is_in(conversations["chat_seed_id"].to_list())
    seeds = context.read("chat_seeds", of_these, ("chat_seed_id", "persona_id", "final_intent"))
    theirs = pl.col("persona_id").is_in(seeds["persona_id"].to_list())
    personas = context.read("persona_candidates", theirs, ("persona_id", "description"))
    rows = conversations.join(seeds, on="chat_seed_id", how="left").join(personas, on="persona_id", how="left")
    return {
        row["conversation_id"]: _Talk(
            row["conversation_id"],
            row["description"] or "",
            row["final_intent"] or "",
            row["final_user_text"] or "",
            row["fault"] == "target",
            tuple(turns.get(row["conversation_id"], ())),
        )
        for row in rows.iter_rows(named=True)
    }
