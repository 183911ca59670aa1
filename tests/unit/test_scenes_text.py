"""Spacing of Chinese and English text, names in goals, repeats."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.texts.minhash import fold
from tasks.scenes.goals import without_names
from tasks.scenes.readers import rejoin, tidy


@pytest.mark.parametrize(
    ("segmented", "joined"),
    [
        ("你 去 那 儿 竟 然 不 喊 我 ， 快 点 给 我 道 歉", "你去那儿竟然不喊我，快点给我道歉"),
        ("这本 打折 ， 才 十五块", "这本打折，才十五块"),
        ("我 用 S E E D . 2 4 小 时", "我用SEED. 24小时"),
        ("玩 得 h a p p y 不 ？", "玩得happy不？"),
        ("有 刘 海 p 9 就 再 战", "有刘海p9就再战"),
        ("三 天 砖 才 赚 来 的 2 0 元", "三天砖才赚来的20元"),
        ("听 Taylor Swift 的 歌", "听Taylor Swift的歌"),
        ("换 39 码 的 ， 谢谢", "换39码的，谢谢"),
        ("阿 门 . . . 愿 主", "阿门...愿主"),
        ("做 好 回 来 了 - -", "做好回来了--"),
        ("no good , really", "no good, really"),
        ("“ 可 悲 ” 、 《 闺 蜜 》", "“可悲”、《闺蜜》"),
        ("  ", ""),
    ],
)
def test_segmented_chinese_is_joined_and_latin_words_stay_apart(segmented: str, joined: str) -> None:
    assert rejoin(segmented) == joined


MIXED = st.text(st.sampled_from(list("我你好，。！？“”…～ab12XY .,!?-()[]@#%'’   ")), max_size=40)


@given(MIXED)
def test_joining_twice_is_joining_once(text: str) -> None:
    assert rejoin(rejoin(text)) == rejoin(text)


@given(st.text(max_size=60))
def test_joining_changes_nothing_but_spaces(text: str) -> None:
    assert "".join(rejoin(text).split()) == "".join(text.split())


@given(MIXED)
def test_no_space_is_left_beside_a_chinese_character(text: str) -> None:
    assert not re.search(r"[我你好，。！？] | [我你好，。！？]", rejoin(text))


@given(st.lists(st.text("abcdefgh", min_size=2, max_size=6), min_size=2, max_size=6))
def test_latin_words_keep_the_space_between_them(words: list[str]) -> None:
    assert rejoin("  ".join(words)) == " ".join(words)


@pytest.mark.parametrize(
    ("spaced", "tidied"),
    [
        ("Good morning , sir . Is there a bank near here ?", "Good morning, sir. Is there a bank near here?"),
        ("Well , that's too far.Can you change it ?", "Well, that's too far. Can you change it?"),
        ("1000 Yuan.Here you are .", "1000 Yuan. Here you are."),
        ("No , It's only about five minutes ' walk .", "No, It's only about five minutes' walk."),
        ("I ’ m fine , do n't worry . I ’ Ve seen it", "I’m fine, don't worry. I’Ve seen it"),
        ("Ah ... yes !!", "Ah... yes!!"),
        ("It costs 3.50 at example.com , e.g. today", "It costs 3.50 at example.com, e.g. today"),
        ("She said 'stop' and 'go'.", "She said 'stop' and 'go'."),
    ],
)
def test_english_punctuation_goes_where_it_belongs(spaced: str, tidied: str) -> None:
    assert tidy(spaced) == tidied


@given(st.text(st.sampled_from(list("abstISV .,!?'’\")3%")), max_size=40))
def test_tidying_twice_is_tidying_once(text: str) -> None:
    assert tidy(tidy(text)) == tidy(text)


@pytest.mark.parametrize(
    ("goal", "own", "other", "mended"),
    [
        ("Veda wants the priest's help.", "Veda", "Priest", "This person wants the other person's help."),
        ("To comfort SHAVON and rylea", "Rylea", "Shavon", "To comfort the other person and this person"),
        ("Ask Dr. Mara Lind; Lind knows", "Tom", "Dr. Mara Lind", "Ask the other person; the other person knows"),
        ("Get in. Mara has keys", "Tom", "Mara", "Get in. The other person has keys"),
        ("Will will help if he may", "May", "Will", "The other person will help if he may"),
        ("Catch the bus with the Bus Driver", "Ana", "Bus Driver", "Catch the bus with the other person"),
        ("Persuade Person B to stay", "Person A", "Person B", "Persuade the other person to stay"),
        ("Get an A from B", "A", "B", "Get an A from B"),
        ("Anastasia is no Ana", "Ana", "Bo", "Anastasia is no this person"),
    ],
)  # fmt: skip
def test_names_of_the_seed_are_taken_out_of_english_goals(goal: str, own: str, other: str, mended: str) -> None:
    assert without_names(goal, own, other, "en") == mended


def test_names_of_the_seed_are_taken_out_of_chinese_goals() -> None:
    assert without_names("小李想让王阿姨原谅小李", "小李", "王阿姨", "zh") == "自己想让对方原谅自己"
    assert without_names("让Amy陪Bob去医院", "Bob", "Amy", "zh") == "让对方陪自己去医院"


NAMES = st.sampled_from(["Veda", "Rylea", "Jean-Luc", "Mr. Ruiz", "Squadron Leader Rao", "O'Neil", "Zoë"])


@given(NAMES, NAMES, st.lists(st.sampled_from(["ask", "the", "for", "{own}", "{other}", "'s", ","]), max_size=12))
def test_no_name_is_left_in_a_goal(own: str, other: str, words: list[str]) -> None:
    goal = " ".join(words).format(own=own, other=other)
    mended = without_names(goal, own, other, "en").lower()
    assert own.lower() not in mended and other.lower() not in mended
    assert without_names(mended, own, other, "en").lower() == mended


def test_folding_levels_width_case_and_spaces() -> None:
    assert fold(" Ｈello\u3000 WORLD ") == "hello world"
