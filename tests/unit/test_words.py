"""What is measured of users' messages over arrays is what a plain loop over each text finds."""

from __future__ import annotations

import sys
import unicodedata

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.metrics.likeness import list_measures
from tasks.metrics.simulator_health import Heard, measure_conversations
from tasks.metrics.words import Said, fold, mattr, split_words
from tests.unit import plain_messages as plain

WINDOW = 5
WORDS = [
    *("I", "i", "you've", "It’s", "that", "that", "oven", "Oven", "STRASSE", "Straße", "ΣΟΦΟΣ", "naïve", "please"),
    *("Thanks", "sorry", "worried", "glad", "u", "pls", "know", "what", "how", "the", "kitchen", "broken", "money"),
    *(
        "soooo",
        "3,000",
        "42",
        "x²",
        "谢谢",
        "好的",
        "我很焦虑",
        "您",
        "吗",
        "请问",
        "炉子坏了",
        "再次在",
        "cafe\u0301",
        "_a_",
        "🎉",
    ),
]
MARKS = [" ", " ", " ", ", ", ". ", " .", "? ", "！", "。", "\n", "\x1c", "\u3000", ",", "…"]


@st.composite
def messages(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(MARKS)), max_size=12))
    return "".join(f"{word}{mark}" for word, mark in parts)


texts = st.text(st.characters(exclude_categories=("Cs", "Cn")), max_size=30)
dialogues = st.lists(st.lists(st.one_of(messages(), texts), max_size=5), max_size=6)


def test_a_letter_is_one_for_both_whatever_its_script() -> None:
    """Characters that this Python's Unicode does not know yet may be letters for a newer one."""
    every = [chr(code) for code in range(1, sys.maxunicode + 1) if unicodedata.category(chr(code)) not in ("Cs", "Cn")]
    (words,) = split_words(pl.Series([f"a{sign}b" for sign in every]))
    spelt = words.spelt.to_list()
    differing = [sign for sign, one in zip(every, spelt, strict=True) if one.split() != plain.tokens(f"a{sign}b")]
    assert not differing


@given(st.lists(st.one_of(messages(), texts), max_size=8))
def test_texts_are_folded_and_split_as_python_does(several: list[str]) -> None:
    given_texts = pl.Series(several, dtype=pl.String)
    assert fold(given_texts).to_list() == [text.casefold() for text in several]
    words, none = split_words(given_texts, pl.Series([None], dtype=pl.String))
    assert [one.split(" ") if one else [] for one in words.spelt] == [plain.tokens(text) for text in several]
    assert words.vocabulary.gather(words.codes).to_list() == [word for text in several for word in plain.tokens(text)]
    assert none.lengths.tolist() == [0]


@given(dialogues)
def test_users_are_measured_as_text_by_text(several: list[list[str]]) -> None:
    said = Said.of(several)
    (words,) = split_words(said.texts)
    measures = list_measures(WINDOW)
    for name, take in plain.take_of_messages().items():
        expected = [take(text) for each in several for text in each]
        assert measures[name].take(said, words).astype(float).tolist() == expected, name
    for name, take in plain.take_of_dialogues(WINDOW).items():
        expected = [take(each) if each else np.nan for each in several]
        assert measures[name].take(said, words) == pytest.approx(np.array(expected), abs=1e-12, nan_ok=True), name


@given(dialogues, st.data())
def test_the_simulator_is_measured_as_conversation_by_conversation(
    several: list[list[str]], data: st.DataObject
) -> None:
    intents = data.draw(st.lists(st.one_of(st.none(), messages()), min_size=len(several), max_size=len(several)))
    begun = data.draw(st.lists(st.booleans(), min_size=len(several), max_size=len(several)))
    said, nothing = Said.of(several), np.zeros(len(several))
    seeded = (said.position == 0) & np.array(begun, dtype=bool)[said.dialogue]
    finals = pl.Series(intents, dtype=pl.String)
    found = measure_conversations(Heard(said, seeded, finals, nothing, nothing, nothing), WINDOW)
    heard = [
        plain.Heard(each[0] if each and seed else None, tuple(each[1:] if seed else each), intent, 0, 0)
        for each, intent, seed in zip(several, intents, begun, strict=True)
    ]
    expected = {
        "simulator_empty_share": [plain.empty_turns(one) for one in heard],
        "simulator_repeated_share": [plain.repeated_turns(one) for one in heard],
        "simulator_polite_share": [plain.polite_turns(one) for one in heard],
        "simulator_front_loading": [plain.front_loading(one) if one.turns else np.nan for one in heard],
        "simulator_verbosity_variation": [plain.verbosity_variation(one) for one in heard],
        "simulator_mattr": [
            plain.mattr([word for text in one.simulated for word in plain.tokens(text)], WINDOW) for one in heard
        ],
    }
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name] == pytest.approx(np.array(values), abs=1e-12, nan_ok=True), name


def test_blocks_are_whole_dialogues_and_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.metrics.words._BLOCK", 3)
    several = [["a"], [], ["b", "c", "d", "e"], ["f"], ["g"], []]
    blocks = list(Said.of(several).blocks())
    assert [chosen for chosen, _ in blocks] == [slice(0, 2), slice(2, 3), slice(3, 6)]
    assert [each.texts.to_list() for _, each in blocks] == [["a"], ["b", "c", "d", "e"], ["f", "g"]]
    assert [each.dialogue.tolist() for _, each in blocks] == [[0], [0, 0, 0, 0], [0, 1]]
    assert [chosen for chosen, _ in Said.of([]).blocks()] == [slice(0, 0)]


def test_some_dialogues_alone_are_numbered_anew() -> None:
    some = Said.of([["a"], ["b", "c"], [], ["d"]]).only(np.array([1, 2]))
    assert (some.texts.to_list(), some.dialogue.tolist(), some.dialogues) == (["b", "c"], [0, 0], 2)


def test_lexical_diversity_of_known_texts() -> None:
    texts = [["a", "b", "b", "a"], ["a", "b", "a"], ["a"], [], ["a"] * 100]
    codes = np.array([ord(word) for words in texts for word in words])
    sequence = np.repeat(np.arange(len(texts)), [len(words) for words in texts])
    of_two, of_fifty = (mattr(codes, sequence, len(texts), window) for window in (2, 50))
    assert of_two[0] == pytest.approx(5 / 6)
    assert of_fifty[[1, 2, 4]] == pytest.approx([2 / 3, 1.0, 1 / 50])
    assert np.isnan(of_fifty[3])
