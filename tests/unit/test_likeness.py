"""Simulated users against real ones: what is measured, how far two samples are apart, and what real messages are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError
from scipy.stats import wasserstein_distance

from tasks.foundation.errors import SourceError
from tasks.foundation.settings.sections import RealUsersSource
from tasks.foundation.stats.bootstrap import Bootstrap
from tasks.foundation.tables import TABLES
from tasks.metrics.likeness import Compared, compare_users, list_measures
from tasks.metrics.real_users import MOST_DIALOGUES, read_real_users, read_seed_users
from tasks.metrics.task import STAGE
from tasks.metrics.words import Said, split_words
from tests.unit.metrics_study import Context, conversation, turn

BOOTSTRAP = Bootstrap(400, 5)
MEASURES = list_measures(50)


@pytest.mark.parametrize(
    ("measure", "text", "value"),
    [
        ("length", "I don't know, 谢谢!", 5),
        ("question", "What now?", 1),
        ("question", "how do i cook rice", 1),
        ("question", "能帮我看看吗", 1),
        ("question", "I know how it goes.", 0),
        ("no_end_mark", "ok then", 1),
        ("no_end_mark", "好的。", 0),
        ("no_end_mark", "great 🎉", 0),
        ("typing_slip", "i dont think so", 1),
        ("typing_slip", "I think that that is it.", 1),
        ("typing_slip", "soooo good", 1),
        ("typing_slip", "Well , maybe.", 1),
        ("typing_slip", "我不知道,真的。", 1),
        ("typing_slip", "I don't think so. Is it 3,000?", 0),
        ("typing_slip", "我不知道，真的。", 0),
        ("polite", "Could you help me, please?", 1),
        ("polite", "Give me a recipe.", 0),
        ("feeling", "I am so worried about it.", 1),
        ("feeling", "我很焦虑。", 1),
        ("feeling", "It is on the table.", 0),
    ],
)
def test_a_message_is_measured_by_what_anyone_can_see(measure: str, text: str, value: float) -> None:
    assert _take(measure, [text]) == value


def test_a_users_side_is_measured_as_a_whole() -> None:
    assert _take("own_words_again", ["I want a new oven.", "I want a new oven."]) == 1.0
    assert _take("own_words_again", ["I want a new oven.", "Where can one buy it?"]) == 0.0
    assert np.isnan(_take("own_words_again", ["I want a new oven."]))
    assert _take("told_at_once", ["oven broken kitchen", "oven money"]) == pytest.approx(3 / 4)
    assert _take("told_at_once", ["hello there friend", "oven broken kitchen"]) == pytest.approx(2 / 5)
    assert _take("length_variation", ["one two", "one two"]) == 0.0


def _take(measure: str, messages: list[str]) -> float:
    said = Said.of([messages])
    return float(MEASURES[measure].take(said, *split_words(said.texts))[0])


def _users(rng: np.random.Generator, dialogues: int, polite: float, longest: int) -> list[list[str]]:
    """Four messages each, of 1 to `longest` words, a share of them polite."""
    return [
        [
            " ".join(["oven"] * int(rng.integers(1, longest + 1))) + (" please." if rng.random() < polite else " now.")
            for _ in range(4)
        ]
        for _ in range(dialogues)
    ]


def _compare(one: list[list[str]], other: list[list[str]]) -> dict[str, Compared]:
    sides = [Said.of(one), Said.of(other)]
    return {found.measure: found for found in compare_users(sides[0], np.arange(len(one)), sides[1], 50, BOOTSTRAP)}


def test_distances_are_those_of_scipy_and_known_differences_are_found() -> None:
    rng = np.random.default_rng(0)
    one, other = _users(rng, 150, 0.8, 20), _users(rng, 220, 0.3, 10)
    found = _compare(one, other)
    lengths = [[_take("length", [text]) for side in users for text in side] for users in (one, other)]
    assert found["length"].distance == pytest.approx(wasserstein_distance(*lengths))
    assert found["length"].difference == pytest.approx(np.mean(lengths[0]) - np.mean(lengths[1]))
    assert found["length"].n == (600, 880)
    polite = found["polite"]
    assert polite.difference == pytest.approx(0.5, abs=0.06)
    assert polite.distance == pytest.approx(abs(polite.difference))
    for measure, truth in (("polite", 0.5), ("length", 5.0)):
        low, high = found[measure].difference_ends
        assert low is not None and high is not None and 0 < low < truth < high
    assert [sum(histogram) for histogram in found["length"].histograms] == pytest.approx([1, 1], abs=1e-4)
    assert len(polite.edges) == 3 and polite.histograms[0][1] == pytest.approx(polite.means[0], abs=1e-6)


def test_users_of_one_kind_are_not_told_apart() -> None:
    rng = np.random.default_rng(2)
    found = _compare(_users(rng, 200, 0.4, 12), _users(rng, 200, 0.4, 12))
    for measure in ("polite", "length", "length_variation"):
        low, high = found[measure].difference_ends
        assert low is not None and high is not None and low < 0 < high


def test_too_few_dialogues_say_nothing() -> None:
    assert _compare([["Hello there."]], [["Hi."], ["Oh."]]) == {}


# Real users


def _write(path: Path, rows: list[Any]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


WILDCHAT = {
    "conversation_hash": "x",
    "language": "English",
    "conversation": [
        {"role": "user", "content": "how do i fix\nan oven", "language": "English"},
        {"role": "assistant", "content": "Call a smith.", "language": "English"},
        {"role": "user", "content": "no money", "language": "English"},
    ],
}


@pytest.mark.parametrize(
    ("row", "column", "messages"),
    [
        (WILDCHAT, "conversation", ["how do i fix an oven", "no money"]),
        (
            {"conversations": [{"from": "human", "value": "Hi."}, {"from": "gpt", "value": "Yes?"}]},
            "conversations",
            ["Hi."],
        ),
        ({"messages": ["One.", " ", "Two."]}, "messages", ["One.", "Two."]),
        ({"text": "One message alone."}, "text", ["One message alone."]),
    ],
)
def test_the_forms_of_real_conversations_are_read(tmp_path: Path, row: Any, column: str, messages: list[str]) -> None:
    source = RealUsersSource(path=str(_write(tmp_path / "chats.jsonl", [row])), column=column)
    found = read_real_users([source])
    assert {language: list(users.dialogues) for language, users in found.items()} == {"en": [messages]}
    assert found["en"].name == source.path


def test_languages_are_told_apart_others_left_out_and_no_more_is_read_than_needed(tmp_path: Path) -> None:
    rows: list[Any] = [
        {"text": "我的烤箱坏了，怎么办？"},
        {"text": "Ich weiß nicht, was ich mit dem Ofen machen soll."},
        {"text": None},
    ]
    rows += [{"text": f"My oven number {n} is broken again."} for n in range(MOST_DIALOGUES + 5)]
    found = read_real_users([RealUsersSource(path=str(_write(tmp_path / "a.jsonl", rows)), column="text")])
    assert {language: len(users.dialogues) for language, users in found.items()} == {"en": MOST_DIALOGUES, "zh": 1}
    limited = RealUsersSource(path=str(tmp_path / "a.jsonl"), column="text", limit=1)
    assert list(read_real_users([limited])) == ["zh"]


def test_a_source_without_messages_says_what_was_expected(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.jsonl", [{"conversation": [{"role": "assistant", "content": "Hello."}]}])
    with pytest.raises(SourceError, match="expected messages of users in column 'conversation'"):
        read_real_users([RealUsersSource(path=str(path))])
    with pytest.raises(ValidationError, match="revision"):
        RealUsersSource(hub="some/chats")


def _seeds() -> dict[str, list[dict[str, Any]]]:
    def seed(number: int) -> dict[str, Any]:
        said = [f"Well, thing {number}?", "Oh, I see.", f"It is broken, all {number} of it.", "Then mend it."]
        return {
            "seed_id": f"s{number}",
            "corpus": "lccc",
            "split": "all",
            "source_index": number,
            "language": "en",
            "turns": [{"speaker": "AB"[place % 2], "text": text} for place, text in enumerate(said)],
            "turn_count": 4,
            "narrative": None,
            "licence": "MIT",
        }

    empty = dict.fromkeys(("goal1", "goal2", "time", "location", "topic", "atmosphere", "domain"), "x")
    scenes = [
        {"scene_id": f"c{n}", "seed_id": f"s{n}", "language": "en", "goal_type": "advice", **empty} for n in range(3)
    ]
    return {"seed_dialogues": [seed(n) for n in range(5)], "scenes": scenes}


def test_people_of_the_seed_dialogues_of_scenes_stand_in() -> None:
    found = read_seed_users(Context(_seeds()).read)
    assert found["en"].name == "seed dialogues (lccc)"
    assert len(found["en"].dialogues) == 6
    assert ["Oh, I see.", "Then mend it."] in [list(side) for side in found["en"].dialogues]
    assert read_seed_users(Context({}).read) == {}


def _chats(polite: bool) -> dict[str, list[dict[str, Any]]]:
    seeds = [
        {
            **dict.fromkeys(TABLES["chat_seeds"].columns),
            "chat_seed_id": f"k{n}",
            "pool": "p",
            "rank": n,
            "persona_id": f"x{n}",
            "language": "en",
            "final_intent": "mend the oven",
            "first_query": "Hello?",
        }
        for n in range(6)
    ]
    talks = [conversation(f"v{n}", chat_seed_id=f"k{n}", target="scripted-c", pool="p") for n in range(6)]
    said = "Could you please tell me more, thank you?" if polite else "tell me more"
    turns = [turn(f"v{n}", index, user_text=said) for n in range(6) for index in (1, 2)]
    return {"chat_seeds": seeds, "conversations": talks, "conversation_turns": turns}


def test_the_stage_writes_what_it_found_and_whom_it_compared_with(tmp_path: Path) -> None:
    path = _write(tmp_path / "real.jsonl", [{"text": f"need an oven, no {n}"} for n in range(30)])
    source = json.dumps([{"path": str(path), "column": "text", "licence": "mine"}])
    rows = STAGE.prepare(Context(_chats(polite=True), f"metrics.real_users={source}")).rows["user_likeness"]
    found = {row.measure: row for row in rows}  # type: ignore[union-attr, attr-defined]
    assert found["polite"].difference == 1.0 and found["polite"].real == str(path)
    assert found["no_end_mark"].difference == -1.0
    assert (found["length"].n_simulated, found["length"].n_real) == (12, 30)
    frame = pl.DataFrame([row.model_dump() for row in rows])  # type: ignore[union-attr, attr-defined]
    assert set(frame["simulator"]) == {"scripted-b"}
    by_seeds = STAGE.prepare(Context({**_chats(polite=True), **_seeds()})).rows["user_likeness"]
    assert {row.real for row in by_seeds} == {"seed dialogues (lccc)"}  # type: ignore[union-attr, attr-defined]
    assert STAGE.prepare(Context(_chats(polite=True))).rows["user_likeness"] == []
