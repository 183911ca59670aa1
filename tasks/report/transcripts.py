"""What was said, with what was decided and judged of it: dialogues, conversations, interactions, predictions.

All of it is data from models and datasets: it goes to the page as text, never as markup. At most `limit` of
each kind are shown; a page says how many there are.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from tasks.report import numbers
from tasks.report.questions import Record, rows

LIMIT = 100
"""Transcripts of each kind, unless asked otherwise."""

LONGEST_TEXT = 8000
"""Characters of one text; the rest is counted."""

_UNSEEN = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")
"""Control characters, and those that turn the direction of the text around them."""

SUB_SCORES = tuple(
    f"{dimension}_{part}"
    for dimension, parts in (
        ("empathy", ("recognition", "attribution", "resonance", "response", "support")),
        ("persona", ("style", "value", "culture", "memory", "security")),
        ("anthropomorphic", ("colloquial", "emotional", "flow", "flexibility", "rhythm")),
    )
    for part in parts
)
INTERACTION_SCORES = ("goal_achievement", "believability", "skillfulness", "realistic")


@dataclass(frozen=True, slots=True)
class Label:
    """`found`: None shows only `gold`. `right` None: neither."""

    name: str
    gold: str
    found: str | None = None
    right: bool | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table under a transcript: what, its value, how it came about, and why."""

    what: str
    value: str
    how: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A folded table: judgements of a turn, or verdicts."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One thing said. `side`: 1 or 2, whose. `labels` and `sheets` belong to it."""

    speaker: str
    text: str
    side: int
    labels: tuple[Label, ...] = ()
    sheets: tuple[Sheet, ...] = ()


@dataclass(frozen=True, slots=True)
class Transcript:
    """`facets`: what readers filter by; `about`: facts above the first line; `after`: what is judged as a whole."""

    id: str
    title: str
    facets: tuple[tuple[str, str], ...]
    about: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]
    after: tuple[Sheet, ...] = ()


@dataclass(frozen=True, slots=True)
class Shelf:
    """The transcripts of one kind; `total` are there, `chosen` says how those shown were."""

    anchor: str
    title: str
    transcripts: tuple[Transcript, ...]
    total: int
    chosen: str
    missing: str

    @property
    def left_out(self) -> int:
        return self.total - len(self.transcripts)

    @property
    def facets(self) -> list[tuple[str, list[str]]]:
        """Each facet with its values, where there is a choice."""
        values: dict[str, set[str]] = defaultdict(set)
        for transcript in self.transcripts:
            for name, value in transcript.facets:
                values[name].add(value)
        return [(name, sorted(found)) for name, found in values.items() if len(found) > 1]


def shelves(connection: duckdb.DuckDBPyConnection, limit: int = LIMIT) -> list[Shelf]:
    """Every kind, in the order of the page."""
    return [
        conversations(connection, limit),
        interactions(connection, limit),
        dialogues(connection, limit),
        predictions(connection, limit),
    ]


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
    turns = _by(_among(connection, "conversation_turns", "conversation_id", ids, "turn_index"), "conversation_id")
    judged = _by(
        _among(connection, "turn_judgements", "conversation_id", ids, "turn_index, judge"),
        "conversation_id",
        "turn_index",
    )
    final = _by(_among(connection, "final_intent_judgements", "conversation_id", ids, "judge"), "conversation_id")
    return Shelf(
        "conversations",
        "Conversations",
        tuple(
            _conversation(row, turns[row["conversation_id"],], judged, final[row["conversation_id"],]) for row in chosen
        ),
        _total(connection, "conversations"),
        "by the rank of their seed, so that all targets are shown on the same seeds",
        "EYT-Bench: a simulated user talks to each target.",
    )


def _conversation(
    row: Record, turns: Sequence[Record], judged: Mapping[tuple[Any, ...], list[Record]], final: Sequence[Record]
) -> Transcript:
    lines: list[Line] = []
    for turn in turns:
        labels = tuple(
            _compared(kind, turn[f"gold_{kind}"], turn[f"predicted_{kind}"])
            for kind in ("explicit", "latent", "emotion")
        )
        progress = Label("progress", numbers.words(turn["progress"]))
        lines.append(Line(f"User, turn {turn['turn_index']}", shortened(turn["user_text"]), 1, (*labels, progress)))
        sheets = tuple(
            Sheet(f"Judged by {one['judge']}{_missing(one) or _sums(one)}", _sub_scores(one))
            for one in judged[turn["conversation_id"], turn["turn_index"]]
        )
        said = turn["assistant_text"]
        answer = "(no answer)" if said is None else shortened(said)
        lines.append(Line(f"{row['target']}, turn {turn['turn_index']}", answer, 2, sheets=sheets))
    if row["final_user_text"] is not None:
        progress = Label("progress", numbers.words(row["final_progress"] or "none"))
        lines.append(Line("User, not answered", shortened(row["final_user_text"]), 1, (progress,)))
    after = Sheet(
        "The final intent",
        tuple(
            Row(
                one["judge"],
                f"{_yes_or_no(one['completed'])}, satisfaction {_or_dash(one['satisfaction'])} of 5",
                _scored(one),
                shortened(one["reason"] or ""),
            )
            for one in final
        ),
    )
    return Transcript(
        row["conversation_id"],
        f"{row['target']}: {row['topic'] or 'no topic'}",
        (
            ("target", row["target"]),
            ("pool", row["pool"]),
            ("fault", _fault(row)),
            ("stopped", numbers.words(row["stop_reason"])),
        ),
        _about(
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


def _sums(judgement: Record) -> str:
    """`: empathy 3.5, persona 4, …`, each of 5; nothing for a dimension that is not wholly scored."""
    sums = []
    for dimension in ("empathy", "persona", "anthropomorphic"):
        scores = [judgement[name] for name in SUB_SCORES if name.startswith(dimension)]
        if None not in scores:
            sums.append(f"{dimension} {sum(scores):g}")
    return f": {', '.join(sums)} of 5" if sums else ""


def _sub_scores(judgement: Record) -> tuple[Row, ...]:
    reasons = _json(judgement["reasons"])
    return tuple(Row(numbers.words(name), _or_dash(judgement[name]), "", _reason(reasons, name)) for name in SUB_SCORES)


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
    turns = _by(_among(connection, "interaction_turns", "interaction_id", ids, "turn_index"), "interaction_id")
    scores = _by(_among(connection, "interaction_scores", "interaction_id", ids, "judge"), "interaction_id")
    return Shelf(
        "interactions",
        "Interactions",
        tuple(_interaction(row, turns[row["interaction_id"],], scores[row["interaction_id"],]) for row in chosen),
        _total(connection, "interactions"),
        "by their episode, so that all targets are shown on the same episodes",
        "DEMO's interaction: a target plays one side of an episode, or both.",
    )


def _interaction(row: Record, turns: Sequence[Record], scores: Sequence[Record]) -> Transcript:
    names = (row["speaker1"] or "Participant 1", row["speaker2"] or "Participant 2")
    plays = "both sides" if row["partner"] == row["target"] else f"with {row['partner']}"
    return Transcript(
        row["interaction_id"],
        f"{row['target']}, {plays}: {row['topic'] or 'no topic'}",
        (
            ("target", row["target"]),
            ("language", row["language"] or "unknown"),
            ("goal type", numbers.words(row["goal_type"] or "unknown")),
            ("fault", _fault(row)),
        ),
        _about(
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
                f"Judged by {one['judge']}{_missing(one)}",
                tuple(
                    Row(numbers.words(name), _or_dash(one[name]), "", _reason(_json(one["reasons"]), name))
                    for name in INTERACTION_SCORES
                ),
            )
            for one in scores
        ),
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
    turns = _by(_among(connection, "utterances", "dialogue_id", ids, "turn_index"), "dialogue_id")
    verdicts = _by(_among(connection, "verdicts", "dialogue_id", ids, "element"), "dialogue_id")
    return Shelf(
        "dialogues",
        "Dialogues",
        tuple(_dialogue(row, turns[row["dialogue_id"],], verdicts[row["dialogue_id"],]) for row in chosen),
        _total(connection, "dialogues"),
        "by their id, which is a hash: a fair sample",
        "DEMO's dialogues, with the labels they were written with and the panel's verdicts.",
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
        f"{names[0]} and {names[1]}: {row['topic'] or 'no topic'}",
        (
            ("language", row["language"]),
            ("goal type", numbers.words(row["goal_type"] or "unknown")),
            ("labels", "some wait for a person" if waiting else "all decided" if verdicts else "not voted on"),
        ),
        _about(
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
                shortened(turn["text"]),
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
    value = "(rejected)" if row["value"] is None else _plain(row["value"])
    return Row(row["element"], shortened(value), ", ".join((row["outcome"], votes, *marks)))


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
    scores = _by(_among(connection, "awareness_scores", "item_id", ids, "judge"), "item_id", "target", "sample")
    return Shelf(
        "predictions",
        "Element awareness",
        tuple(_prediction(row, scores[row["item_id"], row["target"], row["sample"]]) for row in chosen),
        _total(connection, "awareness_predictions"),
        "by their item, so that all targets are shown on the same items",
        "DEMO's element awareness: what a target finds in a dialogue, beside the verified labels.",
    )


def _prediction(row: Record, scores: Sequence[Record]) -> Transcript:
    found = shortened(row["raw"]) if row["prediction"] is None else shortened(_pretty(row["prediction"]))
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
        _about(("item", row["item_id"])),
        (
            *asked,
            Line("Gold", shortened(_pretty(row["gold"] or "")), 1),
            Line("Predicted" if row["prediction"] is not None else "Unreadable reply", found, 2),
        ),
        tuple(
            Sheet(
                f"Judged by {one['judge']}{_missing(one)}",
                tuple(
                    Row(name, _or_dash(one[name]), _scored(one), shortened(one[f"{name}_reason"] or ""))
                    for name in ("accuracy", "hallucination")
                ),
            )
            for one in scores
        ),
    )


def shortened(text: str) -> str:
    """The text as the page shows it: without characters that cannot be seen, and cut with a count when very long."""
    clean = _UNSEEN.sub("\ufffd", text)
    if len(clean) <= LONGEST_TEXT:
        return clean
    return f"{clean[:LONGEST_TEXT]}… ({len(clean) - LONGEST_TEXT:,} more characters)"


def _compared(kind: str, gold: str, predicted: str | None) -> Label:
    return Label(kind, gold, "unreadable" if predicted is None else predicted, gold == predicted)


def _about(*facts: tuple[str, Any]) -> tuple[tuple[str, str], ...]:
    """The facts that are known."""
    return tuple((name, shortened(str(value))) for name, value in facts if value not in (None, ""))


def _missing(judgement: Record) -> str:
    kind = judgement["unscored_kind"]
    return f": unscored, {numbers.words(kind)}" if kind else ", by rule" if judgement["scored_by"] == "rule" else ""


def _scored(judgement: Record) -> str:
    return _missing(judgement).lstrip(":, ")


def _fault(row: Record) -> str:
    return "no fault" if row["fault"] == "none" else f"fault: {row['fault']}"


def _yes_or_no(completed: bool | None) -> str:
    return "unscored" if completed is None else "completed" if completed else "not completed"


def _or_dash(value: float | None) -> str:
    return numbers.MISSING if value is None else f"{value:g}"


def _reason(reasons: Any, name: str) -> str:
    """The reason for one score; what is no object of reasons is shown for every score."""
    if isinstance(reasons, Mapping):
        reasons = reasons.get(name)
    return shortened(str(reasons)) if reasons else ""


def _json(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


def _plain(text: str) -> str:
    """A JSON value as people write it: a string without quotes, anything else as JSON."""
    value = _json(text)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _pretty(text: str) -> str:
    value = _json(text)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _among(connection: duckdb.DuckDBPyConnection, table: str, key: str, ids: Sequence[str], order: str) -> list[Record]:
    """The rows of a table that belong to the given ids, in order."""
    return rows(connection, f"select * from {table} where list_contains(?, {key}) order by {key}, {order}", [list(ids)])


def _by(records: Iterable[Record], *key: str) -> defaultdict[tuple[Any, ...], list[Record]]:
    found: defaultdict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        found[tuple(record[name] for name in key)].append(record)
    return found


def _total(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    return int(rows(connection, f"select count(*) as n from {table}")[0]["n"])
