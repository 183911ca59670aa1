"""Conversations of simulator and target, turn by turn, with the judges' sub-scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from tasks.metrics.catalogue import DIMENSION_METRIC, LABELS, SUB_INDICATORS, sub_indicators_of
from tasks.report import numbers
from tasks.report.questions import Record, rows
from tasks.report.transcripts.parts import (
    Label,
    Line,
    Row,
    Sheet,
    Shelf,
    Transcript,
    compare_labels,
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
    read_rows_among,
    shorten,
    yes_or_no,
)


def conversations(connection: duckdb.DuckDBPyConnection, limit: int) -> Shelf:
    chosen = rows(
        connection,
        """
        select conversations.*, seeds.rank, seeds.topic, seeds.final_intent, seeds.persona_id, people.description
        from conversations
        left join chat_seeds as seeds using (chat_seed_id)
        left join persona_candidates as people on seeds.persona_id = people.persona_id
        order by seeds.rank, conversations.pool, conversations.chat_seed_id, target, sample, conversation_id
        limit ?
        """,
        [limit],
    )
    ids = [row["conversation_id"] for row in chosen]
    turns = group_by_key(
        read_rows_among(connection, "conversation_turns", "conversation_id", ids, "turn_index"), "conversation_id"
    )
    judged = group_by_key(
        read_rows_among(connection, "turn_judgements", "conversation_id", ids, "turn_index, judge"),
        "conversation_id",
        "turn_index",
    )
    final = group_by_key(
        read_rows_among(connection, "final_intent_judgements", "conversation_id", ids, "judge"), "conversation_id"
    )
    return Shelf(
        "conversations",
        "Conversations",
        tuple(
            _conversation(row, turns[row["conversation_id"],], judged, final[row["conversation_id"],]) for row in chosen
        ),
        count_rows(connection, "conversations"),
        "by the rank of their seed, so that all targets are shown on the same seeds",
        "EYT-Bench: a simulated user talks to each target.",
        "eyt",
    )


def _conversation(
    row: Record, turns: Sequence[Record], judged: Mapping[tuple[Any, ...], list[Record]], final: Sequence[Record]
) -> Transcript:
    lines: list[Line] = []
    for turn in turns:
        labels = tuple(compare_labels(kind, turn[f"gold_{kind}"], turn[f"predicted_{kind}"]) for kind in LABELS)
        further = (Label("progress", numbers.words(turn["progress"])), *_trajectory(turn))
        lines.append(Line(f"User, turn {turn['turn_index']}", shorten(turn["user_text"]), 1, (*labels, *further)))
        sheets = tuple(
            Sheet(f"Judged by {one['judge']}{explain_missing(one) or _sums(one)}", _sub_scores(one))
            for one in judged[turn["conversation_id"], turn["turn_index"]]
        )
        said = turn["assistant_text"]
        answer = "(no answer)" if said is None else shorten(said)
        lines.append(Line(f"{row['target']}, turn {turn['turn_index']}", answer, 2, sheets=sheets))
    if row["final_user_text"] is not None:
        progress = Label("progress", numbers.words(row["final_progress"] or "none"))
        lines.append(Line("User, not answered", shorten(row["final_user_text"]), 1, (progress,)))
    after = Sheet(
        "The final intent",
        tuple(
            Row(
                one["judge"],
                f"{yes_or_no(one['completed'])}, satisfaction {or_dash(one['satisfaction'])} of 5",
                explain_scoring(one),
                shorten(one["reason"] or ""),
            )
            for one in final
        ),
    )
    return Transcript(
        row["conversation_id"],
        f"{row['target']}: {make_title(row['topic'] or 'no topic')}",
        (
            ("target", row["target"]),
            ("pool", row["pool"]),
            ("fault", name_fault(row)),
            ("stopped", numbers.words(row["stop_reason"])),
        ),
        list_known(
            ("final intent", row["final_intent"]),
            ("persona, which the target is told: " + row["persona_to_target"], row["description"]),
            ("simulator", row["simulator"]),
            ("turns", row["t_actual"]),
            ("stopped", numbers.words(row["stop_reason"])),
            ("fault", None if row["fault"] == "none" else row["fault"]),
        ),
        tuple(lines),
        (after,) if after.rows else (),
    )


def _trajectory(turn: Record) -> tuple[Label, ...]:
    """Intent drift and nearness to the final intent, once metrics has measured them."""
    measured = (("drift", turn["drift_latent"]), ("near the final intent", turn["final_intent_cosine"]))
    return tuple(Label(name, f"{value:.2f}") for name, value in measured if value is not None)


def _sums(judgement: Record) -> str:
    """`: empathy 3.5, persona 4, …`, each of 5; nothing for a dimension that is not wholly scored."""
    sums = []
    for dimension in DIMENSION_METRIC:
        scores = [judgement[name] for name in sub_indicators_of(dimension)]
        if None not in scores:
            sums.append(f"{dimension} {sum(scores):g}")
    return f": {', '.join(sums)} of 5" if sums else ""


def _sub_scores(judgement: Record) -> tuple[Row, ...]:
    reasons = parse_json(judgement["reasons"])
    return tuple(
        Row(numbers.words(name), or_dash(judgement[name]), "", find_reason(reasons, name)) for name in SUB_INDICATORS
    )
