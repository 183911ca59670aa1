"""Which dialogues are distilled: filters, near-duplicates, and a sample drawn before anything is paid for."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.foundation.errors import ConfigError
from tasks.foundation.tables.types import Language
from tasks.foundation.texts.minhash import NearTexts, fold, in_common, sequences
from tasks.scenes import gather as gathering
from tasks.scenes.sampling import draw
from tasks.scenes.task import STAGE
from tasks.scenes.wanted import FILTERS, filter_rules
from tests.unit.source_stages import FakeContext, rows_of, write_jsonl


def reason(text: str) -> str | None:
    (found,) = filter_rules().search([fold(text)])
    return found and found.why


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("it is on www.example.org now", "url"),
        ("看ｈｔｔｐ：／／x", "url"),
        ("see shop.example.com.", "url"),
        ("write to ann.lee@mail.org", "contact"),
        ("我的QQ号：12345678", "contact"),
        ("打我电话13912345678吧", "contact"),
        ("call me at 555-234-5678", "contact"),
        ("Click HERE for a promo code", "advert"),
        ("加我微信吧", "advert"),
        ("网赌要小心", "advert"),
        ("she sent me nude photos", "unsafe_sexual"),
        ("他看黄片", "unsafe_sexual"),
        ("I want to kill myself", "unsafe_self_harm"),
        ("她想自杀", "unsafe_self_harm"),
        ("I'm going to stab him", "unsafe_violence"),
        ("我要弄死你", "unsafe_violence"),
        ("you retard", "unsafe_hate"),
        ("傻逼", "unsafe_hate"),
        ("he was smoking weed", "unsafe_drugs"),
        ("他吸毒", "unsafe_drugs"),
    ],
)
def test_unwanted_talk_is_left_out_by_the_rule_that_lists_it(text: str, rule: str) -> None:
    assert reason(text) == rule


@pytest.mark.parametrize(
    "text",
    [
        "Maybe you need to cut yourself some slack",
        "It costs 3.50, e.g. today",
        "That joke killed me",
        "The grapes are in a spick and span kitchen",
        "我今年25岁，身高175",
        "这部片子是黄色封面",
        "Order 555 arrived on 12-10-2024",
    ],
)
def test_everyday_talk_is_wanted(text: str) -> None:
    assert reason(text) is None


def test_the_first_rule_that_fits_gives_the_reason_and_what_it_found() -> None:
    url, none, hate = filter_rules().search(["see http://x and click here", "fine", "傻逼"])
    assert url is not None and (url.why, url.reason) == ("url", "expected talk between two people, found 'http://'")
    assert none is None and hate is not None and hate.why == "unsafe_hate"
    assert filter_rules().search([]) == []


def test_every_rule_of_the_file_has_patterns_in_lower_case() -> None:
    assert len(filter_rules().patterns) == 8
    for name, pattern in filter_rules().patterns:
        letters = pattern.replace("\\b", "").replace("\\.", "")
        assert letters == letters.lower(), f"{name}: dialogues are searched in lower case"


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ("[{name: a_rule, patterns: ['(']}]", "rule 'a_rule': '\\(' is no pattern"),
        ("[{name: a_rule, patterns: ['x*']}]", "would leave out every dialogue"),
        ("[{name: too_long, patterns: [x]}]", "expected names of their own, found too_long again"),
        ("[{name: a_rule, patterns: [x]}, {name: a_rule, patterns: [y]}]", "found a_rule again"),
        ("[{name: Bad Name, patterns: [x]}]", "rules.0.name"),
        ("[{name: a_rule, patterns: ['(?<=a)b']}]", "is no pattern"),
    ],
)
def test_a_filter_file_that_cannot_be_used_is_refused(tmp_path: Path, rules: str, told: str) -> None:
    path = tmp_path / "filters.yaml"
    path.write_text(f"description: d\nrules: {rules}\n")
    with pytest.raises(ConfigError, match=told):
        filter_rules(path)


def test_the_filter_file_is_part_of_what_the_rows_depend_on() -> None:
    assert FILTERS in STAGE.files(FakeContext(STAGE).settings)


@given(st.text(max_size=60), st.sampled_from(["en", "zh"]))
def test_a_text_has_all_sequences_in_common_with_itself(text: str, language: Language) -> None:
    own = sequences(text, language)
    assert in_common(own, own) == 1.0 and len(own) >= 1
    assert in_common(own, sequences(text + " and quite something else at the end of it", language)) < 1.0


def test_sequences_in_common_are_those_of_a_set() -> None:
    a, b = "the cat sat", "the cat sang"
    sets = [{text[start : start + 5] for start in range(len(text) - 4)} for text in (a, b)]
    expected = len(sets[0] & sets[1]) / len(sets[0] | sets[1])  # 6 of 9
    assert in_common(sequences(a, "en"), sequences(b, "en")) == pytest.approx(expected) == pytest.approx(6 / 9)


def altered(text: str, words: int, draw: random.Random) -> str:
    parts = text.split(" ")
    for place in draw.sample(range(len(parts)), words):
        parts[place] = "".join(draw.choices("abcdefgh", k=6))
    return " ".join(parts)


def test_texts_nearer_than_the_threshold_are_found_and_no_others() -> None:
    draw = random.Random(1)
    texts = [" ".join("".join(draw.choices("abcdefghij", k=5)) for _ in range(80)) for _ in range(60)]
    near = NearTexts("en", 0.8)
    assert [near.keep_unless_near(text) for text in texts] == [None] * 60
    for number, text in enumerate(texts):
        for words in (1, 4, 12):
            other = altered(text, words, draw)
            is_near = in_common(sequences(text, "en"), sequences(other, "en")) >= 0.8
            assert is_near == (words < 12)
            assert not is_near or near.keep_unless_near(other) == number


def talk(*texts: str) -> dict[str, Any]:
    return {"dialogue": list(texts)}


LONG = "We walked along the harbour until the lamps came on and then we talked about the boat that was never mended"
OTHER = "Nobody at the depot had seen a bus like that one before although it had passed under the bridge every Monday"
TALKS = [
    talk(LONG, "Yes.", OTHER),
    talk(LONG, "Yes!", OTHER),
    talk(OTHER, "No, thank you.", "Then we will go home alone."),
]


def prepared(tmp_path: Path, rows: list[Any], *overrides: str) -> tuple[Any, dict[str, Any]]:
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    context = FakeContext(STAGE, f"scenes.sources=[{{corpus: own, reader: jsonl, path: {path}}}]", *overrides)
    made = STAGE.prepare(context)
    made.accounting.check("scenes")
    return made, {name: rows_of(some) for name, some in made.rows.items()}


def test_a_near_duplicate_is_passed_over_when_the_sample_is_drawn(tmp_path: Path) -> None:
    made, rows = prepared(tmp_path, TALKS, "scenes.sample={en: 3, zh: 0}")
    assert len(rows["seed_dialogues"]) == 3, "every usable dialogue is a seed"
    (near,) = rows["duplicates"]
    assert near.method == "minhash" and near.duplicate_of in made.items and near.row_id not in made.items
    assert [row.seed_id for row in rows["sampled_seeds"]] == [
        row.seed_id for row in rows["seed_dialogues"] if row.seed_id in made.items
    ]
    assert made.accounting.filtered == {"duplicate": 1} and len(made.items) == 2


def test_only_exact_repeats_are_passed_over_where_the_settings_say_so(tmp_path: Path) -> None:
    made, rows = prepared(tmp_path, TALKS, "scenes.sample={en: 3, zh: 0}", "scenes.near_duplicate=1.0")
    assert len(made.items) == 3 and not rows["duplicates"]


def test_dialogues_that_are_passed_over_are_replaced_by_the_next_of_the_order(tmp_path: Path) -> None:
    same = [talk(LONG, f"Number {number} it is.", OTHER) for number in range(60)]
    others = [
        talk(f"{number} geese", f"and {number * 7} hens cross", f"the road at {number * 13}") for number in range(9)
    ]
    made, rows = prepared(tmp_path, same + others, "scenes.sample={en: 10, zh: 0}")
    assert len(made.items) == 10
    assert {row.method for row in rows["duplicates"]} == {"minhash"}
    filtered = made.accounting.filtered
    assert filtered["duplicate"] + filtered.get("not_sampled", 0) == 69 - 10


def test_a_corpus_in_many_chunks_ends_as_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [talk(f"line {number % 40}", "see www.x.org" if number % 9 == 0 else "yes", "no") for number in range(100)]
    made = []
    for chunk in (7, 2048):
        monkeypatch.setattr(gathering, "CHUNK_ROWS", chunk)
        ended, tables = prepared(tmp_path, [*rows, "!{", talk("a")], "scenes.sample={en: 5, zh: 0}")
        made.append(({name: sorted(some, key=repr) for name, some in tables.items()}, ended.items, ended.accounting))
    assert made[0] == made[1]
    assert made[0][2].filtered["url"] == 12 and made[0][2].failed == {"parse": 1}


def test_no_seed_is_drawn_of_a_language_that_is_not_asked_for(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", TALKS)
    context = FakeContext(STAGE, f"scenes.sources=[{{corpus: own, reader: jsonl, path: {path}}}]")
    seeds: Any = STAGE.prepare(context).rows["seed_dialogues"]
    assert draw(seeds, "en", 0, 0.8, 1).ids == [] and draw(seeds, "zh", 5, 0.8, 1).ids == []
