"""A context of literal rows for the metrics stage, and short ways to write rows of the evaluation tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl

from tasks.foundation.llm.models import ModelSpec, load_models
from tasks.foundation.run.context import select_rows
from tasks.foundation.settings import load_settings
from tasks.foundation.tables import TABLES
from tasks.metrics.catalogue import SUB_INDICATORS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Rows = dict[str, list[dict[str, Any]]]


class OneHot:
    """An encoder that gives every distinct text an axis of its own: different texts are orthogonal."""

    def __init__(self) -> None:
        self.axes: dict[str, int] = {}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), 400), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row, self.axes.setdefault(text, len(self.axes))] = 1
        return vectors


class Context:
    """As a StageContext over the given rows; tables without rows are empty."""

    member = None

    def __init__(self, rows: Mapping[str, Sequence[Mapping[str, Any]]], *overrides: str, encoder: Any = None) -> None:
        self.settings = load_settings("test", overrides)
        self._rows = rows
        self._models = load_models()
        self._encoder = encoder or OneHot()
        self.tried: dict[str, Sequence[str]] = {}
        """Further targets that a table's stage has run for."""

    def model(self, alias: str) -> ModelSpec:
        return self._models[alias]

    def know(self, *models: ModelSpec) -> None:
        """Makes further models known."""
        self._models = {**self._models, **{model.alias: model for model in models}}

    def pinned(self, source: Any) -> Any:
        return source

    def read(self, table: str, where: pl.Expr | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        declared = TABLES[table]
        frame = pl.from_arrow(declared.arrow(self._rows.get(table, ())))
        assert isinstance(frame, pl.DataFrame)
        return select_rows(frame.sort(list(declared.key)), where, columns)

    def members(self, table: str) -> tuple[str, ...]:
        found = {row["target"] for row in self._rows.get(table, ())}
        return tuple(sorted(found.union(self.tried.get(table, ()))))

    def made(self, table: str) -> pl.DataFrame:
        raise AssertionError(f"metrics has nothing to read back, asked for {table}")

    def encoder(self) -> Any:
        return self._encoder


def chat_seed(chat_seed_id: str, pool: str = "p1", **changes: Any) -> dict[str, Any]:
    return {
        "chat_seed_id": chat_seed_id,
        "pool": pool,
        "rank": 0,
        "persona_id": f"persona of {chat_seed_id}",
        "language": "en",
        "topic": "work",
        "initial_emotion": "Neutral",
        "initial_explicit_intent": "Venting",
        "initial_latent_intent": "Curiosity",
        "final_intent": f"final intent of {chat_seed_id}",
        "first_query": "Hello",
        "error": None,
        **changes,
    }


def conversation(conversation_id: str, chat_seed_id: str, target: str, **changes: Any) -> dict[str, Any]:
    return {
        "conversation_id": conversation_id,
        "chat_seed_id": chat_seed_id,
        "pool": "p1",
        "target": target,
        "simulator": "scripted-b",
        "sample": 0,
        "persona_to_target": "none",
        "protocol": "max_turns=4",
        "t_actual": 1,
        "stop_reason": "max_turns",
        "fault": "none",
        "final_user_text": None,
        "final_progress": None,
        "final_label_reasks": 0,
        "final_role_breaks": 0,
        "final_guards": [],
        **changes,
    }


def turn(conversation_id: str, turn_index: int, **changes: Any) -> dict[str, Any]:
    return {
        "conversation_id": conversation_id,
        "turn_index": turn_index,
        "user_text": "hello there",
        "gold_explicit": "Venting",
        "gold_latent": "Curiosity",
        "gold_emotion": "Hope",
        "progress": "in_progress",
        "predicted_explicit": "Venting",
        "predicted_latent": "Curiosity",
        "predicted_emotion": "Hope",
        "perception_fault": None,
        "assistant_text": "I see.",
        "label_reasks": 0,
        "role_breaks": 0,
        "user_guards": [],
        "answer_guards": [],
        **changes,
    }


def turn_judgement(
    conversation_id: str, turn_index: int, judge: str, score: float | None, **changes: Any
) -> dict[str, Any]:
    """All fifteen sub-scores are `score`, unless changed."""
    return {
        "conversation_id": conversation_id,
        "turn_index": turn_index,
        "judge": judge,
        "family": "f",
        **dict.fromkeys(SUB_INDICATORS, score),
        "reasons": None,
        "unscored_kind": None if score is not None else "unreadable",
        "scored_by": "judge",
        **changes,
    }


def final_judgement(
    conversation_id: str, judge: str, completed: bool | None, satisfaction: int | None
) -> dict[str, Any]:
    return {
        "conversation_id": conversation_id,
        "judge": judge,
        "family": "f",
        "completed": completed,
        "satisfaction": satisfaction,
        "reason": None,
        "unscored_kind": None if completed is not None else "unreadable",
        "scored_by": "judge",
    }


def human_rating(conversation_id: str, turn_index: int, annotator: str, score: int, **changes: Any) -> dict[str, Any]:
    return {
        "conversation_id": conversation_id,
        "turn_index": turn_index,
        "annotator": annotator,
        "dimension": "empathy",
        "score": score,
        "saw_judge": False,
        "created_at": NOW,
        **changes,
    }


def item(item_id: str, task: str, dialogue_id: str, language: str = "en") -> dict[str, Any]:
    return {
        "item_id": item_id,
        "task": task,
        "language": language,
        "dialogue_id": dialogue_id,
        "dialogue_text": "A: hello",
        "turn_index": None,
        "utterance_text": None,
        "gold": "{}",
        "source": "build",
    }


def prediction(item_id: str, target: str) -> dict[str, Any]:
    return {"item_id": item_id, "target": target, "sample": 0, "prediction": "{}", "raw": "{}"}


def awareness_score(
    item_id: str, target: str, judge: str, accuracy: int | None, hallucination: int | None
) -> dict[str, Any]:
    return {
        "item_id": item_id,
        "target": target,
        "sample": 0,
        "judge": judge,
        "accuracy": accuracy,
        "hallucination": hallucination,
        "accuracy_reason": None,
        "hallucination_reason": None,
        "unscored_kind": None if accuracy is not None else "unreadable",
        "scored_by": "judge",
    }


def episode(episode_id: str, dialogue_id: str, language: str = "en", goal_type: str = "advice") -> dict[str, Any]:
    words = ("speaker1", "speaker2", "background1", "background2", "goal1", "goal2", "topic", "time", "location")
    return {
        "episode_id": episode_id,
        "language": language,
        "dialogue_id": dialogue_id,
        **dict.fromkeys((*words, "talkway", "relationship"), "x"),
        "goal_type": goal_type,
        "familiarity": 3,
        "source": "build",
    }


def interaction(interaction_id: str, episode_id: str, target: str, **changes: Any) -> dict[str, Any]:
    return {
        "interaction_id": interaction_id,
        "episode_id": episode_id,
        "target": target,
        "partner": target,
        "sample": 0,
        "turn_count": 4,
        "stop_reason": "ended",
        "fault": "none",
        **changes,
    }


def interaction_score(interaction_id: str, judge: str, *scores: int | None) -> dict[str, Any]:
    """Four scores: goal achievement, believability, skillfulness, realistic."""
    names = ("goal_achievement", "believability", "skillfulness", "realistic")
    return {
        "interaction_id": interaction_id,
        "judge": judge,
        **dict(zip(names, scores, strict=True)),
        "reasons": None,
        "unscored_kind": None,
        "scored_by": "judge",
    }
