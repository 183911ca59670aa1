"""What was said, with everything that was decided and judged of it side by side: a conversation, an interaction, a
dialogue, an item with what each target read out of it.

Judgements stand as a table with a column a judge; the requests behind each text, label and score stand with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.metrics.catalogue import DIMENSION_METRIC, INTERACTION_DIMENSIONS, LABELS, sub_indicators_of
from tasks.report.questions import Record
from tasks.report.transcripts.parts import Label, compare_labels, explain_missing, parse_json
from tasks.viewer.reading import NotThere, Reading
from tasks.viewer.rows import find_calls
from tasks.viewer.tables import find_row, rows_where
from tasks.viewer.texts import write_whole


@dataclass(frozen=True, slots=True)
class Mark:
    """What one judge gave in one dimension. `score` None: unscored."""

    score: float | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Judged:
    """Judgements of one thing: dimensions by judges. `judges` are named with why one has no score, or that a rule gave
    it; `groups` are dimensions under a heading with their sums; `gap` is the widest between two judges in a dimension.
    `calls`: the requests of each judge."""

    judges: tuple[str, ...]
    notes: tuple[str, ...]
    groups: tuple[tuple[str, tuple[tuple[str, tuple[Mark, ...], float | None], ...]], ...]
    calls: tuple[tuple[Record, ...], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A request behind a text: what it was for, and its id."""

    purpose: str
    request_id: str


@dataclass(frozen=True, slots=True)
class Said:
    """One thing said. `side` 1 or 2, whose. `guards`: what is wrong with it."""

    turn: int
    speaker: str
    side: int
    text: str
    labels: tuple[Label, ...] = ()
    guards: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    calls: tuple[Call, ...] = ()
    judged: Judged | None = None
    ratings: tuple[Record, ...] = ()
    elements: tuple[Element, ...] = ()


@dataclass(frozen=True, slots=True)
class Element:
    """A label of a dialogue: its verdict, what each annotator answered, what each voter chose."""

    path: str
    verdict: Record | None
    reviews: tuple[Record, ...]
    votes: tuple[tuple[Record, str | None], ...]
    """Each with the candidate chosen, as JSON; None: abstained or unreadable."""


@dataclass(frozen=True, slots=True)
class TalkPage:
    """`facts`: what is to be known before; `links`: rows it rests on, by table; `others`: the same seed, episode or
    item with other targets; `calls`: requests for all of it."""

    kind: str
    id: str
    title: str
    row: Record
    facts: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, Record], ...]
    said: tuple[Said, ...]
    judged: Judged | None
    elements: tuple[Element, ...]
    others: tuple[Record, ...]
    calls: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a target read out of an item."""

    row: Record
    judged: Judged
    calls: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class ItemPage:
    id: str
    row: Record
    predictions: tuple[Prediction, ...]
    targets: tuple[tuple[str, int], ...]
    """Every target and sample that predicted it."""
    only: tuple[str | None, int | None]


def read_conversation(reading: Reading, conversation_id: str) -> TalkPage:
    """A conversation of EYT-Bench. NotThere where there is none."""
    row = find_row(reading, "conversations", {"conversation_id": conversation_id})
    seed = _maybe(reading, "chat_seeds", "chat_seed_id", row["chat_seed_id"]) or {}
    persona = _maybe(reading, "persona_candidates", "persona_id", seed.get("persona_id")) or {}
    own = {"conversation_id": conversation_id}
    turns = reading.rows(
        "select * from conversation_turns where conversation_id = ? order by turn_index", [conversation_id]
    )
    judgements = _by(rows_where(reading, "turn_judgements", own), "turn_index")
    ratings = _by(rows_where(reading, "human_ratings", own), "turn_index")
    calls = find_calls(reading, "conversations", row)
    by_turn = _calls_by_turn(calls, len(turns))
    said: list[Said] = []
    for turn in turns:
        number = turn["turn_index"]
        said.append(_user_turn(turn, by_turn[number, "user"]))
        judged = _judge_turn(reading, judgements[number])
        text = turn["assistant_text"]
        said.append(
            Said(
                number,
                row["target"],
                2,
                "(no answer)" if text is None else text,
                guards=tuple(turn["answer_guards"] or ()),
                calls=tuple(by_turn[number, "target"]),
                judged=judged,
                ratings=tuple(ratings[number]),
            )
        )
    if row["final_user_text"] is not None:
        progress = Label("progress", row["final_progress"] or "none")
        last = len(turns) + 1
        guards, asked = tuple(row["final_guards"] or ()), tuple(by_turn[last, "user"])
        said.append(Said(last, "User, not answered", 1, row["final_user_text"], (progress,), guards, calls=asked))
    final = rows_where(reading, "final_intent_judgements", own)
    return TalkPage(
        kind="conversation",
        id=conversation_id,
        title=f"{row['target']}: {seed.get('topic') or 'no topic'}",
        row=row,
        facts=_known(
            ("final intent", seed.get("final_intent")),
            (f"persona (the target is told: {row['persona_to_target']})", persona.get("description")),
            ("simulator", row["simulator"]),
            ("pool", row["pool"]),
            ("language", seed.get("language")),
            ("stopped", row["stop_reason"]),
            ("fault", row["fault"]),
            ("answered turns", row["t_actual"]),
        ),
        links=tuple(_there(("chat_seeds", seed), ("persona_candidates", persona))),
        said=tuple(said),
        judged=_judge_final(reading, final) if final else None,
        elements=(),
        others=_others(reading, "conversations", "chat_seed_id", row),
        calls=tuple(calls),
    )


def _user_turn(turn: Record, calls: list[Call]) -> Said:
    labels = [compare_labels(kind, turn[f"gold_{kind}"], turn[f"predicted_{kind}"]) for kind in LABELS]
    labels.append(Label("progress", turn["progress"]))
    measured = (("drift", turn["drift_latent"]), ("near the final intent", turn["final_intent_cosine"]))
    labels += [Label(name, f"{value:.2f}") for name, value in measured if value is not None]
    return Said(
        turn["turn_index"],
        "User",
        1,
        turn["user_text"],
        tuple(labels),
        tuple(turn["user_guards"] or ()),
        _known(
            ("no prediction", turn["perception_fault"]),
            ("asked again for labels", turn["label_reasks"] or None),
            ("asked again, out of role", turn["role_breaks"] or None),
        ),
        tuple(calls),
    )


def _calls_by_turn(calls: Sequence[Record], turns: int) -> Mapping[tuple[int, str], list[Call]]:
    """Of the requests of a conversation those of each turn, as they can be told: a target is asked once a turn for
    labels and once for its answer, one turn after the other. Where their number is another, they stand with none."""
    found: defaultdict[tuple[int, str], list[Call]] = defaultdict(list)
    for purpose, side in (("perception", "user"), ("generation", "target")):
        own = [call for call in calls if call["purpose"] == purpose]
        if len(own) == turns:
            for number, call in enumerate(own, start=1):
                found[number, side].append(Call(purpose, call["request_id"]))
    simulated = [call for call in calls if call["purpose"] == "simulation"]
    if len(simulated) in (turns - 1, turns):  # the seed gives the first turn, and the last one may stay unanswered
        for number, call in enumerate(simulated, start=2):
            found[number, "user"].append(Call("simulation", call["request_id"]))
    return found


def _judge_turn(reading: Reading, judgements: Sequence[Record]) -> Judged | None:
    if not judgements:
        return None
    groups = [(dimension, list(sub_indicators_of(dimension))) for dimension in DIMENSION_METRIC]
    return _judged(reading, "turn_judgements", judgements, groups)


def _judged(
    reading: Reading, table: str, judgements: Sequence[Record], groups: Sequence[tuple[str, Sequence[str]]]
) -> Judged:
    """Rows of judges side by side; `groups` of columns, whose reasons stand in `reasons` or in a column beside."""
    in_order = sorted(judgements, key=lambda one: str(one["judge"]))
    reasons = [parse_json(one.get("reasons")) for one in in_order]

    def mark(place: int, name: str) -> Mark:
        one, told = in_order[place], reasons[place]
        reason = told.get(name) if isinstance(told, Mapping) else one.get(f"{name}_reason", one.get("reason"))
        return Mark(None if one[name] is None else float(one[name]), None if reason is None else str(reason))

    def line(name: str) -> tuple[str, tuple[Mark, ...], float | None]:
        marks = tuple(mark(place, name) for place in range(len(in_order)))
        known = [one.score for one in marks if one.score is not None]
        return name, marks, max(known) - min(known) if len(known) > 1 else None

    return Judged(
        tuple(str(one["judge"]) for one in in_order),
        tuple(explain_missing(one).lstrip(":, ") for one in in_order),
        tuple((heading, tuple(line(name) for name in names)) for heading, names in groups),
        tuple(tuple(find_calls(reading, table, one)) for one in in_order),
    )


def _judge_final(reading: Reading, judgements: Sequence[Record]) -> Judged:
    return _judged(reading, "final_intent_judgements", judgements, [("final intent", ("completed", "satisfaction"))])


def read_interaction(reading: Reading, interaction_id: str) -> TalkPage:
    """An interaction of DEMO. NotThere where there is none."""
    row = find_row(reading, "interactions", {"interaction_id": interaction_id})
    episode = _maybe(reading, "interaction_episodes", "episode_id", row["episode_id"]) or {}
    names = [episode.get(f"speaker{side}") or f"Participant {side}" for side in (1, 2)]
    calls = find_calls(reading, "interactions", row)
    speaking = [call for call in calls if call["purpose"] == "speak"]
    turns = rows_where(reading, "interaction_turns", {"interaction_id": interaction_id})
    each = len(speaking) == len(turns)
    scores = rows_where(reading, "interaction_scores", {"interaction_id": interaction_id})
    plays = "both sides" if row["partner"] == row["target"] else f"with {row['partner']}"
    return TalkPage(
        kind="interaction",
        id=interaction_id,
        title=f"{row['target']}, {plays}: {episode.get('topic') or 'no topic'}",
        row=row,
        facts=_known(
            (f"goal of {names[0]} ({row['target']})", episode.get("goal1")),
            (f"goal of {names[1]} ({row['partner']})", episode.get("goal2")),
            (names[0], episode.get("background1")),
            (names[1], episode.get("background2")),
            ("relationship", episode.get("relationship")),
            ("familiarity", episode.get("familiarity")),
            ("where and when", ", ".join(filter(None, (episode.get("location"), episode.get("time"))))),
            ("goal type", episode.get("goal_type")),
            ("stopped", row["stop_reason"]),
            ("fault", row["fault"]),
        ),
        links=tuple(_there(("interaction_episodes", episode))),
        said=tuple(
            Said(
                turn["turn_index"],
                names[turn["speaker"] - 1],
                turn["speaker"],
                turn["text"],
                guards=tuple(turn["guards"] or ()),
                calls=(Call("speak", speaking[place]["request_id"]),) if each else (),
            )
            for place, turn in enumerate(turns)
        ),
        judged=_judged(reading, "interaction_scores", scores, [("interaction", INTERACTION_DIMENSIONS)])
        if scores
        else None,
        elements=(),
        others=_others(reading, "interactions", "episode_id", row),
        calls=tuple(calls),
    )


def read_dialogue(reading: Reading, dialogue_id: str) -> TalkPage:
    """A written dialogue with its labels, reviews, votes and verdicts. NotThere where there is none."""
    row = find_row(reading, "dialogues", {"dialogue_id": dialogue_id})
    pairing = _maybe(reading, "pairings", "pairing_id", row["pairing_id"]) or {}
    conflict = _maybe(reading, "conflicts", "pairing_id", row["pairing_id"]) or {}
    scene = _maybe(reading, "scenes", "scene_id", pairing.get("scene_id")) or {}
    people = [
        _maybe(reading, "characters", "character_id", pairing.get(f"character{side}_id")) or {} for side in (1, 2)
    ]
    names = (row["speaker1"], row["speaker2"])
    of_turn, rest = _elements(reading, dialogue_id)
    return TalkPage(
        kind="dialogue",
        id=dialogue_id,
        title=f"{names[0]} and {names[1]}: {scene.get('topic') or 'no topic'}",
        row=row,
        facts=_known(
            (f"goal of {names[0]}", scene.get("goal1")),
            (f"goal of {names[1]}", scene.get("goal2")),
            (names[0], people[0].get("background")),
            (names[1], people[1].get("background")),
            ("relationship", conflict.get("relationship")),
            ("familiarity", conflict.get("familiarity")),
            (
                "where and when",
                ", ".join(filter(None, (scene.get("location"), scene.get("time"), conflict.get("talkway")))),
            ),
            ("goal type", scene.get("goal_type")),
            ("summary, first side", row["summary1"]),
            ("summary, second side", row["summary2"]),
            ("flow of information", "\n".join(row["workflow"] or ())),
            ("goal completion", f"{row['goal_completion']} of 10: {row['goal_completion_reason']}"),
            ("writer", row["writer"]),
            ("language", row["language"]),
            ("guards", ", ".join(row["guards"] or ())),
        ),
        links=tuple(
            _there(
                ("pairings", pairing),
                ("conflicts", conflict),
                ("scenes", scene),
                ("characters", people[0]),
                ("characters", people[1]),
            )
        ),
        said=tuple(
            Said(
                turn["turn_index"],
                names[turn["speaker"] - 1],
                turn["speaker"],
                turn["text"],
                _utterance_labels(turn),
                elements=tuple(of_turn[turn["turn_index"]]),
            )
            for turn in rows_where(reading, "utterances", {"dialogue_id": dialogue_id})
        ),
        judged=None,
        elements=tuple(rest),
        others=(),
        calls=tuple(find_calls(reading, "dialogues", row)),
    )


def _utterance_labels(turn: Record) -> tuple[Label, ...]:
    strategy = turn["strategy"] or {}
    stances = "; ".join(f"{one['aspect']}: {one['viewpoint']}" for one in turn["stance"] or ())
    labels = [
        Label("intent", turn["intent"]),
        Label("sentiment", turn["sentiment"]),
        Label("emotion", turn["emotion"]),
        Label("strategy", f"{strategy.get('description')} ({strategy.get('type')})"),
    ]
    return (*labels, Label("stance", stances)) if stances else tuple(labels)


def _elements(reading: Reading, dialogue_id: str) -> tuple[Mapping[int, list[Element]], list[Element]]:
    """The labels of a dialogue that were reviewed: those of each turn, and the others."""
    own = {"dialogue_id": dialogue_id}
    verdicts = {one["element"]: one for one in rows_where(reading, "verdicts", own)}
    reviews = _by(rows_where(reading, "reviews", own), "element")
    votes = _by(rows_where(reading, "votes", own), "element")
    of_turn: defaultdict[int, list[Element]] = defaultdict(list)
    rest: list[Element] = []
    for path in sorted({*verdicts, *reviews, *votes}, key=_natural):
        chosen = tuple((vote, _chosen(vote)) for vote in votes[path])
        element = Element(path, verdicts.get(path), tuple(reviews[path]), chosen)
        group, _, tail = path.partition(".")
        number = tail.partition(".")[0]
        of_turn[int(number)].append(element) if group == "utterance" and number.isdecimal() else rest.append(element)
    return of_turn, rest


def _natural(path: str) -> list[tuple[int, str]]:
    return [(int(part) if part.isdecimal() else -1, part) for part in path.split(".")]


def _chosen(vote: Record) -> str | None:
    """What a voter chose, as it was shown."""
    candidates = parse_json(vote["candidates"])
    place = vote["candidate"]
    if place is None or not isinstance(candidates, list) or not 0 <= place < len(candidates):
        return None
    chosen = candidates[place]
    value = chosen.get("value", chosen) if isinstance(chosen, Mapping) else chosen
    return write_whole(value)


def read_item(reading: Reading, item_id: str, target: str | None = None, sample: int | None = None) -> ItemPage:
    """An item of element awareness, with what every target (or one) read out of it. NotThere where there is none."""
    row = find_row(reading, "awareness_items", {"item_id": item_id})
    every = rows_where(reading, "awareness_predictions", {"item_id": item_id})
    scores = _by(rows_where(reading, "awareness_scores", {"item_id": item_id}), "target", "sample")
    chosen = [one for one in every if target in (None, one["target"]) and sample in (None, one["sample"])]
    if every and not chosen:
        there = ", ".join(sorted({one["target"] for one in every}))
        raise NotThere(f"item {item_id} has no prediction of {target!r} (sample {sample}); expected one of: {there}")
    return ItemPage(
        item_id,
        row,
        tuple(
            Prediction(
                one,
                _judged(
                    reading,
                    "awareness_scores",
                    scores[one["target"], one["sample"]],
                    [("prediction", ("accuracy", "hallucination"))],
                ),
                tuple(
                    call for call in find_calls(reading, "awareness_predictions", one) if call["stage"] == "awareness"
                ),
            )
            for one in chosen
        ),
        tuple((one["target"], one["sample"]) for one in every),
        (target, sample),
    )


def _maybe(reading: Reading, table: str, column: str, value: Any) -> Record | None:
    """A row that may be of a stage that the build does not have."""
    return next(iter(rows_where(reading, table, {column: value})), None) if value is not None else None


def _others(reading: Reading, table: str, column: str, row: Record) -> tuple[Record, ...]:
    key = f"{table[:-1]}_id"
    return tuple(one for one in rows_where(reading, table, {column: row[column]}) if one[key] != row[key])


def _there(*links: tuple[str, Record]) -> Iterable[tuple[str, Record]]:
    return ((table, row) for table, row in links if row)


def _known(*facts: tuple[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in facts if value not in (None, ""))


def _by(records: Iterable[Record], *key: str) -> defaultdict[Any, list[Record]]:
    """Rows by a column, or by several as tuples."""
    found: defaultdict[Any, list[Record]] = defaultdict(list)
    for record in records:
        found[record[key[0]] if len(key) == 1 else tuple(record[name] for name in key)].append(record)
    return found
