"""Interactions of two sides with their goals, and how they were scored."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from tasks.report import numbers
from tasks.report.questions import Record, rows
from tasks.report.transcripts.shelf import Line, Row, Sheet, Shelf, Transcript
from tasks.report.transcripts.text import (
    about_of,
    by_key,
    fault_of,
    how_missing,
    or_dash,
    parsed,
    reason_of,
    rows_among,
    shortened,
    titled,
    total_of,
)

INTERACTION_SCORES = ("goal_achievement", "believability", "skillfulness", "realistic")


def interactions(connection: duckdb.DuckDBPyConnection, limit: int) -> Shelf:
    chosen = rows(
        connection,
        """
        select
            interactions.*, episodes.speaker1, episodes.speaker2, episodes.goal1, episodes.goal2, episodes.topic,
            episodes.goal_type, episodes.language, episodes.relationship, episodes.familiarity
        from interactions
        left join interaction_episodes as episodes using (episode_id)
        order by interactions.episode_id, target, partner, sample
        limit ?
        """,
        [limit],
    )
    ids = [row["interaction_id"] for row in chosen]
    turns = by_key(rows_among(connection, "interaction_turns", "interaction_id", ids, "turn_index"), "interaction_id")
    scores = by_key(rows_among(connection, "interaction_scores", "interaction_id", ids, "judge"), "interaction_id")
    return Shelf(
        "interactions",
        "Interactions",
        tuple(_interaction(row, turns[row["interaction_id"],], scores[row["interaction_id"],]) for row in chosen),
        total_of(connection, "interactions"),
        "by their episode, so that all targets are shown on the same episodes",
        "DEMO's interaction: a target plays one side of an episode, or both.",
    )


def _interaction(row: Record, turns: Sequence[Record], scores: Sequence[Record]) -> Transcript:
    names = (row["speaker1"] or "Participant 1", row["speaker2"] or "Participant 2")
    plays = "both sides" if row["partner"] == row["target"] else f"with {row['partner']}"
    return Transcript(
        row["interaction_id"],
        f"{row['target']}, {plays}: {titled(row['topic'] or 'no topic')}",
        (
            ("target", row["target"]),
            ("language", row["language"] or "unknown"),
            ("goal type", numbers.words(row["goal_type"] or "unknown")),
            ("fault", fault_of(row)),
        ),
        about_of(
            (f"goal of {names[0]}", row["goal1"]),
            (f"goal of {names[1]}", row["goal2"]),
            ("relationship", row["relationship"]),
            ("familiarity", row["familiarity"]),
            ("stopped", numbers.words(row["stop_reason"])),
            ("fault", None if row["fault"] == "none" else row["fault"]),
        ),
        tuple(Line(names[turn["speaker"] - 1], shortened(turn["text"]), turn["speaker"]) for turn in turns),
        tuple(
            Sheet(
                f"Judged by {one['judge']}{how_missing(one)}",
                tuple(
                    Row(numbers.words(name), or_dash(one[name]), "", reason_of(parsed(one["reasons"]), name))
                    for name in INTERACTION_SCORES
                ),
            )
            for one in scores
        ),
    )
