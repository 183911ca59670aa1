"""The registry of tables: each is declared once, here; Arrow schemas, views and the dictionary follow.

>>> TABLES["scenes"].key
('scene_id',)
"""

from __future__ import annotations

from tasks.foundation.tables.dialogues import (
    AwarenessItem,
    Dialogue,
    HumanReview,
    InteractionEpisode,
    Review,
    Utterance,
    Verdict,
    Vote,
)
from tasks.foundation.tables.evaluation import (
    AwarenessPrediction,
    AwarenessScore,
    ChatSeed,
    Conversation,
    ConversationTurn,
    FinalIntentJudgement,
    HumanRating,
    Interaction,
    InteractionScore,
    InteractionTurn,
    TurnDrift,
    TurnJudgement,
)
from tasks.foundation.tables.operations import LlmCall, Reject, Reply
from tasks.foundation.tables.personas import Character, Diversity, Duplicate, PersonaCandidate, PersonaPoolRow
from tasks.foundation.tables.results import Agreement, Comparison, Metric, Model
from tasks.foundation.tables.scenes import Conflict, Pairing, Scene, SeedDialogue
from tasks.foundation.tables.table import Table
from tasks.foundation.tables.types import Row

_METRIC_KEY = (
    "benchmark",
    "pool",
    "language",
    "target",
    "simulator",
    "judge",
    "partner",
    "goal_type",
    "slice",
    "metric",
)

_DECLARED: tuple[Table, ...] = (
    Table("persona_candidates", PersonaCandidate, ("persona_id",), "one row per source persona"),
    Table("persona_pool", PersonaPoolRow, ("pool", "rank"), "one row per sampled persona"),
    Table("characters", Character, ("character_id",), "one row per designed dialogue participant"),
    Table("duplicates", Duplicate, ("table_name", "row_id"), "one row per dropped duplicate"),
    Table("diversity", Diversity, ("table_name", "language", "statistic"), "one row per table, language and statistic"),
    Table("seed_dialogues", SeedDialogue, ("seed_id",), "one row per usable seed dialogue"),
    Table("scenes", Scene, ("scene_id",), "one row per distilled pair of goals and their scene"),
    Table("pairings", Pairing, ("pairing_id",), "one row per scene with two characters"),
    Table("conflicts", Conflict, ("pairing_id",), "one row per assessed pairing"),
    Table("dialogues", Dialogue, ("dialogue_id",), "one row per synthesised dialogue"),
    Table("utterances", Utterance, ("dialogue_id", "turn_index"), "one row per turn of a dialogue"),
    Table("reviews", Review, ("dialogue_id", "element", "annotator"), "one row per label and annotator"),
    Table("votes", Vote, ("dialogue_id", "element", "voter"), "one row per disputed label and panel member"),
    Table("verdicts", Verdict, ("dialogue_id", "element"), "one row per label"),
    Table("human_reviews", HumanReview, ("dialogue_id", "element", "reviewer"), "one row per label and reviewer"),
    Table("awareness_items", AwarenessItem, ("item_id",), "one row per element awareness item"),
    Table("interaction_episodes", InteractionEpisode, ("episode_id",), "one row per interaction episode"),
    Table(
        "awareness_predictions",
        AwarenessPrediction,
        ("item_id", "target", "sample"),
        "one row per item, target and sample",
    ),
    Table(
        "awareness_scores",
        AwarenessScore,
        ("item_id", "target", "sample", "judge"),
        "one row per prediction and judge",
    ),
    Table("interactions", Interaction, ("interaction_id",), "one row per episode, target and sample"),
    Table("interaction_turns", InteractionTurn, ("interaction_id", "turn_index"), "one row per utterance"),
    Table(
        "interaction_scores",
        InteractionScore,
        ("interaction_id", "judge"),
        "one row per interaction and judge",
    ),
    Table("chat_seeds", ChatSeed, ("chat_seed_id",), "one row per persona of a pool"),
    Table("conversations", Conversation, ("conversation_id",), "one row per seed, target and sample"),
    Table(
        "conversation_turns",
        ConversationTurn,
        ("conversation_id", "turn_index"),
        "one row per turn",
        beside="turn_drifts",
    ),
    Table("turn_drifts", TurnDrift, ("conversation_id", "turn_index"), "one row per turn, once metrics has run"),
    Table(
        "turn_judgements",
        TurnJudgement,
        ("conversation_id", "turn_index", "judge"),
        "one row per answered turn and judge",
    ),
    Table(
        "final_intent_judgements",
        FinalIntentJudgement,
        ("conversation_id", "judge"),
        "one row per conversation and judge",
    ),
    Table(
        "human_ratings",
        HumanRating,
        ("conversation_id", "turn_index", "annotator", "dimension"),
        "one row per turn, rater and dimension",
    ),
    Table("metrics", Metric, _METRIC_KEY, "one row per cell and metric"),
    Table(
        "comparisons",
        Comparison,
        ("kind", "benchmark", "metric", "pool", "pool_b", "language", "target_a", "target_b", "judge_a", "judge_b"),
        "one row per pair of targets, judges or pools and metric",
    ),
    Table("agreement", Agreement, ("scope", "category", "statistic", "raters"), "one row per statistic"),
    Table("models", Model, ("alias",), "one row per model alias that the build names"),
    Table("rejects", Reject, ("stage", "row_key", "kind"), "one row per input row that a stage could not use"),
    Table(
        "llm_calls", LlmCall, ("stage", "row_key", "purpose", "request_id", "revision"), "one row per logical request"
    ),
    Table("replies", Reply, ("request_id",), "one row per request that a stage run cites"),
)

TABLES: dict[str, Table] = {table.name: table for table in _DECLARED}

EVERY_STAGE: tuple[str, ...] = ("rejects", "llm_calls", "replies")
"""Tables that every stage writes beside its own."""

__all__ = ["EVERY_STAGE", "TABLES", "Row", "Table"]
