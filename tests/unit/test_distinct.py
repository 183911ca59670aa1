"""Duplicates among texts that models wrote, and how alike the rest is on average, checked by brute force."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.settings.sections import NearSection
from tasks.foundation.tables.personas import Duplicate
from tasks.foundation.texts.dedupe import find_duplicates
from tasks.foundation.texts.encoder import Encoder
from tasks.foundation.texts.minhash import in_common, sequences
from tasks.foundation.texts.similarity import ByCharacters, Similarity, mean_cosine, measure_likeness, sampled_pairs
from tasks.foundation.texts.word_encoder import WordEncoder

NEAR = NearSection(cosine=0.85, jaccard=0.6)
WORDS = WordEncoder()
CHARACTERS = ByCharacters("zh", "a test")
TEXTS = st.dictionaries(
    st.text("0123456789", min_size=1, max_size=4),
    st.lists(st.sampled_from(["oak", "tea", "rain", "boat"]), min_size=1, max_size=4).map(" ".join),
    max_size=12,
)


def found(texts: Mapping[str, str], similarity: Similarity = WORDS, near: NearSection | None = NEAR) -> list[Duplicate]:
    return find_duplicates("scenes", texts, "en" if isinstance(similarity, Encoder) else "zh", similarity, near, 1)


@given(TEXTS, st.randoms())
def test_no_two_kept_texts_are_near_and_each_dropped_one_names_a_kept_one_that_is(
    texts: dict[str, str], random: Random
) -> None:
    duplicates = found(texts)
    kept = texts.keys() - {duplicate.row_id for duplicate in duplicates}
    alone = {each: WORDS.encode_alone(text) for each, text in texts.items()}
    assert all(alone[a] @ alone[b] < 0.85 + 1e-9 for a, b in combinations(kept, 2))
    for duplicate in duplicates:
        assert duplicate.duplicate_of in kept
        assert alone[duplicate.row_id] @ alone[duplicate.duplicate_of] > 0.85 - 1e-9
    shuffled = sorted(texts, key=lambda each: random.random())
    again = found({each: texts[each] for each in shuffled})
    assert {each.row_id: each.duplicate_of for each in again} == {each.row_id: each.duplicate_of for each in duplicates}


def test_chinese_texts_without_an_encoder_are_held_against_each_other_by_their_characters() -> None:
    texts = {
        "a": "想说服对方周末把车借给自己，又担心对方不放心。",
        "b": "想说服对方周末把车借给自己，也担心对方不放心。",
        "c": "想弄清楚邻居家的狗为什么整夜叫个不停。",
    }
    (duplicate,) = found(texts, CHARACTERS)
    assert {duplicate.row_id, duplicate.duplicate_of} == {"a", "b"}
    assert (duplicate.table_name, duplicate.method, duplicate.cosine) == ("scenes", "minhash", None)


@pytest.mark.parametrize("near", [None, NEAR])
def test_a_repeat_but_for_case_width_and_spaces_is_found_whether_or_not_texts_are_compared(
    near: NearSection | None,
) -> None:
    (duplicate,) = found({"a": "To keep  the BICYCLE", "b": "to keep the Ｂicycle", "c": "something else"}, near=near)
    assert {duplicate.row_id, duplicate.duplicate_of} == {"a", "b"} and duplicate.method == "exact"


def test_without_thresholds_near_texts_stay() -> None:
    texts = {"a": "oak tea rain boat", "b": "oak tea rain boat boat"}
    assert found(texts) and not found(texts, near=None)


@given(st.integers(2, 9), st.integers(0, 100))
def test_the_mean_cosine_is_that_of_all_pairs(n: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(n, 5))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    brute = [float(a.astype(float) @ b.astype(float)) for a, b in combinations(vectors, 2)]
    assert mean_cosine(vectors) == pytest.approx(np.mean(brute), abs=1e-6)


def test_likeness_says_over_how_many_texts_and_pairs_it_is() -> None:
    # cosines: (oak, oak) 1, (oak, tea) 0 twice → 1/3.
    row = measure_likeness("characters", ["oak", "oak", "tea"], "en", WORDS, seed=1)
    assert (row.statistic, row.n, row.n_of) == ("mean_cosine", 3, 3) and row.value == pytest.approx(1 / 3)
    texts = ["喝茶看雨", "喝茶看雪", "下棋"]
    chinese = measure_likeness("characters", texts, "zh", CHARACTERS, seed=1)
    shares = [in_common(sequences(a, "zh"), sequences(b, "zh")) for a, b in combinations(texts, 2)]
    assert (chinese.statistic, chinese.n, chinese.n_of) == ("mean_jaccard", 3, 3)
    assert chinese.value == pytest.approx(sum(shares) / 3) and chinese.value > 0


@pytest.mark.parametrize("similarity", [WORDS, CHARACTERS])
@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_texts_have_no_likeness(similarity: Similarity, n: int) -> None:
    row = measure_likeness("scenes", ["oak"] * n, "en", similarity, seed=1)
    assert row.value is None and (row.n, row.n_of) == (n, 0)


@given(st.integers(0, 60), st.integers(1, 300))
def test_pairs_are_different_ones_as_many_as_wanted_or_all_there_are(n: int, most: int) -> None:
    pairs = sampled_pairs(n, 1, most)
    assert len(pairs) == len(set(pairs)) and all(0 <= a < b < n for a, b in pairs)
    assert len(pairs) == min(most, n * (n - 1) // 2)
