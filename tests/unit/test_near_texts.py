"""Texts compared by their characters: what two have in common, and who is found near whom."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.texts.dedupe import deduplicate_texts
from tasks.foundation.texts.minhash import MISSED, MinHash, NearTexts, bands_for, fold, in_common, sequences

NURSE = "我是一名住在成都的三十二岁护士，在一家社区医院工作了八年，平时喜欢喝茶散步，周末常和两个孩子去河边钓鱼。"
TEACHER = "他今年五十岁，在山里的小学教数学，每天骑车上班，家里养着三只猫，最怕别人问起他年轻时写过的那些诗。"
HAN = "的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生"


def changed(text: str, share: float, seed: int = 0) -> str:
    """The text with some of its characters replaced."""
    draw = random.Random(seed)
    return "".join(draw.choice(HAN) if draw.random() < share else character for character in text)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=80, unique=True), st.randoms())
def test_the_order_of_sequences_makes_no_difference(hashes: list[int], draw: random.Random) -> None:
    minhash = MinHash(24)
    shuffled = draw.sample(hashes, len(hashes))
    assert (minhash.sign(np.array(hashes, np.uint64)) == minhash.sign(np.array(shuffled, np.uint64))).all()


def test_signatures_agree_as_often_as_texts_have_sequences_in_common() -> None:
    minhash = MinHash(2000)
    for share in (0.0, 0.02, 0.08, 0.2):
        own, other = sequences(NURSE * 3, "zh"), sequences(changed(NURSE * 3, share), "zh")
        estimate = (minhash.sign(own) == minhash.sign(other)).mean()
        assert estimate == pytest.approx(in_common(own, other), abs=0.05)
    assert in_common(sequences(NURSE, "zh"), sequences(TEACHER, "zh")) < 0.05


def test_a_long_text_has_the_signature_of_all_its_sequences() -> None:
    hashes = np.random.default_rng(0).integers(0, 2**63, 20_000, np.uint64)
    minhash = MinHash(8)
    halves = [minhash.sign(hashes[:9_000]), minhash.sign(hashes[9_000:])]
    assert (minhash.sign(hashes) == np.minimum(*halves)).all()


@given(st.floats(0.3, 1.0))
def test_bands_are_enough_for_pairs_at_the_threshold(threshold: float) -> None:
    bands, rows = bands_for(threshold)
    assert (1 - threshold**rows) ** bands <= MISSED * 1.0001


def test_chinese_is_compared_by_three_characters_and_english_by_five() -> None:
    assert len(sequences("喝茶散步", "zh")) == 2 and len(sequences("walking", "en")) == 3
    assert in_common(sequences("喝茶散步", "zh"), sequences("喝茶散心", "zh")) == pytest.approx(1 / 3)


@pytest.mark.parametrize("texts", [["好", "坏", "不", "是"], ["你好", "您好", "再见"], ["喝茶", "喝", "茶", ""]])
def test_very_short_texts_are_not_all_alike(texts: list[str]) -> None:
    near = NearTexts("zh", 0.6)
    assert [near.keep_unless_near(text) for text in texts] == [None] * len(texts)
    assert [near.keep_unless_near(text) for text in texts] == list(range(len(texts))), "but each is like itself"


@pytest.mark.parametrize("text", ["", "\0", "\0\0\0\0", "\ud800", "\ud800茶\udfff\U0010ffff", "茶" * 350_000])
def test_any_text_at_all_can_be_compared(text: str) -> None:
    near = NearTexts("zh", 0.6)
    assert near.keep_unless_near(NURSE) is None and near.keep_unless_near(text) is None
    assert near.keep_unless_near(text) == 1


def test_among_many_texts_the_near_ones_are_found_and_no_others() -> None:
    draw = random.Random(3)
    texts = ["".join(draw.choice(HAN + NURSE + TEACHER) for _ in range(draw.randint(30, 200))) for _ in range(300)]
    near = NearTexts("zh", 0.6)
    assert [near.keep_unless_near(text) for text in texts] == [None] * 300
    found = [near.keep_unless_near(changed(text, 0.04, seed)) for seed, text in enumerate(texts[:100])]
    expected = [
        number if in_common(sequences(text, "zh"), sequences(changed(text, 0.04, number), "zh")) >= 0.6 else None
        for number, text in enumerate(texts[:100])
    ]
    assert found == expected and 80 < sum(each is not None for each in found) < 100


def test_who_is_kept_does_not_depend_on_the_order_of_the_rows() -> None:
    texts = {"p1": NURSE, "p2": changed(NURSE, 0.03), "p3": TEACHER, "p4": NURSE, "p5": f" {NURSE} "}
    found = []
    for ids in (list(texts), sorted(texts, reverse=True)):
        hashes = [texts[each] for each in ids]
        result = deduplicate_texts(ids, hashes, lambda at, i=ids: texts[i[at]], "zh", threshold=0.6, seed=7)  # type: ignore[misc]
        kept = [ids[row] for row in result.kept]
        found.append((kept, [(ids[each.row], ids[each.closest], each.method) for each in result.dropped]))
    assert found[0] == found[1]
    kept, dropped = found[0]
    assert len(kept) == 2 and "p3" in kept and {each for each, _, _ in dropped} | set(kept) == set(texts)
    assert all(near == next(each for each in kept if each != "p3") for _, near, _ in dropped)


def test_differences_of_width_case_and_spaces_are_levelled() -> None:
    assert fold("Ｈello　世 界\n", joint="") == fold("hello世界", joint="") == "hello世界"
