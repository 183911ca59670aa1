"""What a target read out of a dialogue, beside what is in it."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from tasks.report.questions import Record, rows
from tasks.report.transcripts.shelf import Line, Row, Sheet, Shelf, Transcript
from tasks.report.transcripts.text import (
    about_of,
    by_key,
    how_missing,
    how_scored,
    or_dash,
    pretty,
    rows_among,
    shortened,
    total_of,
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
    scores = by_key(rows_among(connection, "awareness_scores", "item_id", ids, "judge"), "item_id", "target", "sample")
    return Shelf(
        "predictions",
        "Element awareness",
        tuple(_prediction(row, scores[row["item_id"], row["target"], row["sample"]]) for row in chosen),
        total_of(connection, "awareness_predictions"),
        "by their item, so that all targets are shown on the same items",
        "DEMO's element awareness: what a target finds in a dialogue, beside the verified labels.",
    )


def _prediction(row: Record, scores: Sequence[Record]) -> Transcript:
    found = shortened(row["raw"]) if row["prediction"] is None else shortened(pretty(row["prediction"]))
    asked = [Line("Dialogue", shortened(row["dialogue_text"] or ""), 1)]
    if row["utterance_text"] is not None:
        asked.append(Line("The utterance asked about", shortened(row["utterance_text"]), 1))
    return Transcript(
        f"{row['item_id']} {row['target']} {row['sample']}",
        f"{row['target']}: {row['task']}",
        (
            ("target", row["target"]),
            ("task", row["task"] or "unknown"),
            ("language", row["language"] or "unknown"),
            ("prediction", "unreadable" if row["prediction"] is None else "readable"),
        ),
        about_of(("item", row["item_id"])),
        (
            *asked,
            Line("Gold", shortened(pretty(row["gold"] or "")), 1),
            Line("Predicted" if row["prediction"] is not None else "Unreadable reply", found, 2),
        ),
        tuple(
            Sheet(
                f"Judged by {one['judge']}{how_missing(one)}",
                tuple(
                    Row(name, or_dash(one[name]), how_scored(one), shortened(one[f"{name}_reason"] or ""))
                    for name in ("accuracy", "hallucination")
                ),
            )
            for one in scores
        ),
    )
