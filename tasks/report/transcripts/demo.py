"""What DEMO's targets did: the talks they held, and what they read out of a dialogue."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from tasks.metrics.catalogue import INTERACTION_DIMENSIONS
from tasks.report import numbers
from tasks.report.questions import Record, rows
from tasks.report.transcripts.parts import (
    Line,
    Row,
    Sheet,
    Shelf,
    Transcript,
    count_rows,
    explain_missing,
    explain_scoring,
    find_reason,
    group_by_key,
    list_known,
    make_title,
    name_fault,
    or_dash,
    parse_json,
    pretty,
    read_rows_among,
    shorten,
)


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
    turns = group_by_key(
        read_rows_among(connection, "interaction_turns", "interaction_id", ids, "turn_index"), "interaction_id"
    )
    scores = group_by_key(
        read_rows_among(connection, "interaction_scores", "interaction_id", ids, "judge"), "interaction_id"
    )
    return Shelf(
        "interactions",
        "Interactions",
        tuple(_interaction(row, turns[row["interaction_id"],], scores[row["interaction_id"],]) for row in chosen),
        count_rows(connection, "interactions"),
        "by their episode, so that all targets are shown on the same episodes",
        "DEMO's interaction: a target plays one side of an episode, or both.",
        "demo",
    )


def _interaction(row: Record, turns: Sequence[Record], scores: Sequence[Record]) -> Transcript:
    names = (row["speaker1"] or "Participant 1", row["speaker2"] or "Participant 2")
    plays = "both sides" if row["partner"] == row["target"] else f"with {row['partner']}"
    return Transcript(
        row["interaction_id"],
        f"{row['target']}, {plays}: {make_title(row['topic'] or 'no topic')}",
        (
            ("target", row["target"]),
            ("language", row["language"] or "unknown"),
            ("goal type", numbers.words(row["goal_type"] or "unknown")),
            ("fault", name_fault(row)),
        ),
        list_known(
            (f"goal of {names[0]}", row["goal1"]),
            (f"goal of {names[1]}", row["goal2"]),
            ("relationship", row["relationship"]),
            ("familiarity", row["familiarity"]),
            ("stopped", numbers.words(row["stop_reason"])),
            ("fault", None if row["fault"] == "none" else row["fault"]),
        ),
        tuple(Line(names[turn["speaker"] - 1], shorten(turn["text"]), turn["speaker"]) for turn in turns),
        tuple(
            Sheet(
                f"Judged by {one['judge']}{explain_missing(one)}",
                tuple(
                    Row(numbers.words(name), or_dash(one[name]), "", find_reason(parse_json(one["reasons"]), name))
                    for name in INTERACTION_DIMENSIONS
                ),
            )
            for one in scores
        ),
    )


def predictions(connection: duckdb.DuckDBPyConnection, limit: int) -> Shelf:
    chosen = rows(
        connection,
        """
        select predictions.*, items.task, items.language, items.dialogue_text, items.utterance_text, items.gold
        from awareness_predictions as predictions
        left join awareness_items as items using (item_id)
        order by predictions.item_id, target, sample
        limit ?
        """,
        [limit],
    )
    ids = [row["item_id"] for row in chosen]
    scores = group_by_key(
        read_rows_among(connection, "awareness_scores", "item_id", ids, "judge"), "item_id", "target", "sample"
    )
    return Shelf(
        "predictions",
        "Element awareness",
        tuple(_prediction(row, scores[row["item_id"], row["target"], row["sample"]]) for row in chosen),
        count_rows(connection, "awareness_predictions"),
        "by their item, so that all targets are shown on the same items",
        "DEMO's element awareness: what a target finds in a dialogue, beside the verified labels.",
        "demo",
    )


def _prediction(row: Record, scores: Sequence[Record]) -> Transcript:
    found = shorten(row["raw"]) if row["prediction"] is None else shorten(pretty(row["prediction"]))
    asked = [Line("Dialogue", shorten(row["dialogue_text"] or ""), 1)]
    if row["utterance_text"] is not None:
        asked.append(Line("The utterance asked about", shorten(row["utterance_text"]), 1))
    return Transcript(
        f"{row['item_id']} {row['target']} {row['sample']}",
        f"{row['target']}: {row['task']}",
        (
            ("target", row["target"]),
            ("task", row["task"] or "unknown"),
            ("language", row["language"] or "unknown"),
            ("prediction", "unreadable" if row["prediction"] is None else "readable"),
        ),
        list_known(("item", row["item_id"])),
        (
            *asked,
            Line("Gold", shorten(pretty(row["gold"] or "")), 1),
            Line("Predicted" if row["prediction"] is not None else "Unreadable reply", found, 2),
        ),
        tuple(
            Sheet(
                f"Judged by {one['judge']}{explain_missing(one)}",
                tuple(
                    Row(name, or_dash(one[name]), explain_scoring(one), shorten(one[f"{name}_reason"] or ""))
                    for name in ("accuracy", "hallucination")
                ),
            )
            for one in scores
        ),
    )
