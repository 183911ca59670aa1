"""Written dialogues with their labels, and what the panel decided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import duckdb

from tasks.report import numbers
from tasks.report.questions import Record, rows
from tasks.report.transcripts.parts import (
    LONGEST_NAME,
    Label,
    Line,
    Row,
    Sheet,
    Shelf,
    Transcript,
    count_rows,
    group_by_key,
    list_known,
    make_title,
    plain,
    read_rows_among,
    shorten,
)


def dialogues(connection: duckdb.DuckDBPyConnection, limit: int) -> Shelf:
    chosen = rows(
        connection,
        """
        select
            dialogues.*, scenes.goal1, scenes.goal2, scenes.goal_type, scenes.topic, scenes.time, scenes.location,
            conflicts.relationship, conflicts.familiarity, conflicts.talkway,
            first_people.background as background1, second_people.background as background2
        from dialogues
        left join pairings using (pairing_id)
        left join conflicts using (pairing_id)
        left join scenes using (scene_id)
        left join characters as first_people on pairings.character1_id = first_people.character_id
        left join characters as second_people on pairings.character2_id = second_people.character_id
        order by dialogues.dialogue_id
        limit ?
        """,
        [limit],
    )
    ids = [row["dialogue_id"] for row in chosen]
    turns = group_by_key(read_rows_among(connection, "utterances", "dialogue_id", ids, "turn_index"), "dialogue_id")
    verdicts = group_by_key(read_rows_among(connection, "verdicts", "dialogue_id", ids, "element"), "dialogue_id")
    return Shelf(
        "dialogues",
        "Dialogues",
        tuple(_dialogue(row, turns[row["dialogue_id"],], verdicts[row["dialogue_id"],]) for row in chosen),
        count_rows(connection, "dialogues"),
        "by their id, which is a hash: a fair sample",
        "DEMO's dialogues, with the labels they were written with and the panel's verdicts.",
        "demo",
    )


def _dialogue(row: Record, turns: Sequence[Record], verdicts: Sequence[Record]) -> Transcript:
    names = (row["speaker1"], row["speaker2"])
    decided = [_verdict(one) for one in verdicts]
    of_turn: dict[int, list[Row]] = defaultdict(list)
    rest: list[Row] = []
    for one in decided:
        group, _, tail = one.what.partition(".")
        number, _, name = tail.partition(".")
        if group == "utterance" and number.isdigit():
            of_turn[int(number)].append(Row(name, one.value, one.how))
        else:
            rest.append(one)
    waiting = sum(one["pending"] for one in verdicts)
    return Transcript(
        row["dialogue_id"],
        f"{' and '.join(make_title(name, LONGEST_NAME) for name in names)}: {make_title(row['topic'] or 'no topic')}",
        (
            ("language", row["language"]),
            ("goal type", numbers.words(row["goal_type"] or "unknown")),
            ("labels", "some wait for a person" if waiting else "all decided" if verdicts else "not voted on"),
        ),
        list_known(
            (f"goal of {names[0]}", row["goal1"]),
            (f"goal of {names[1]}", row["goal2"]),
            (names[0], row["background1"]),
            (names[1], row["background2"]),
            ("relationship", row["relationship"]),
            ("familiarity", row["familiarity"]),
            ("where and when", ", ".join(part for part in (row["location"], row["time"], row["talkway"]) if part)),
            ("goal completion", f"{row['goal_completion']} of 10: {row['goal_completion_reason']}"),
            ("writer", row["writer"]),
        ),
        tuple(
            Line(
                names[turn["speaker"] - 1],
                shorten(turn["text"]),
                turn["speaker"],
                _utterance_labels(turn),
                (Sheet("Verdicts", tuple(of_turn[turn["turn_index"]])),) if of_turn[turn["turn_index"]] else (),
            )
            for turn in turns
        ),
        (Sheet("Verdicts on goals, personas and scene", tuple(rest)),) if rest else (),
    )


def _utterance_labels(turn: Record) -> tuple[Label, ...]:
    stances = "; ".join(f"{one['aspect']}: {one['viewpoint']}" for one in turn["stance"])
    strategy = turn["strategy"]
    labels = [
        Label("intent", turn["intent"]),
        Label("sentiment", turn["sentiment"]),
        Label("emotion", turn["emotion"]),
        Label("strategy", f"{strategy['description']} ({strategy['type']})"),
    ]
    return (*labels, Label("stance", stances)) if stances else tuple(labels)


def _verdict(row: Record) -> Row:
    marks = [mark for mark in ("changed", "pending") if row[mark]]
    votes = "all reviews keep it" if row["panel"] is None else f"{row['votes_for']} of {row['panel']} votes"
    value = "(rejected)" if row["value"] is None else plain(row["value"])
    return Row(row["element"], shorten(value), ", ".join((row["outcome"], votes, *marks)))
