"""Dialogues in whatever shape: recognised, or mapped by paths; and where neither can be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.foundation.errors import SourceError
from tasks.foundation.settings.sections import SceneSource
from tasks.foundation.sources import BadRow
from tasks.foundation.sources.paths import find, has, is_path, list_paths
from tasks.scenes.readers import READERS, SourceDialogue
from tasks.scenes.shapes import SHAPES

SAID = ["Is the ferry late?", "It sank a little.", "How little?", "To the second deck."]
WHO = ["Ole", "Kaja", "Ole", "Kaja"]
Values = list[Any] | dict[str, Any] | str


def written(folder: Path, value: Values, name: str) -> str:
    lines = [json.dumps(row) for row in value] if name.endswith("l") else [json.dumps(value)]
    text = value if isinstance(value, str) else "\n".join(lines)
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def read(folder: Path, value: Values, name: str = "talks.jsonl", **settings: Any) -> list[SourceDialogue]:
    source = SceneSource(corpus="talks", path=written(folder, value, name), **settings)
    rows, parse = READERS[source.reader](source)
    return [parse(row) for row in rows]


def entries(text: str, speaker: str) -> list[dict[str, str]]:
    return [{speaker: who, text: said} for who, said in zip(WHO, SAID, strict=True)]


RECOGNISED: dict[str, tuple[Values, str]] = {
    "objects in a list": ([{"id": 1, "log": entries("utterance", "agent")}], "a.jsonl"),
    "sharegpt": ([{"conversations": entries("value", "from")}], "a.jsonl"),
    "messages after an instruction": (
        [{"messages": [{"role": "system", "content": "Be brief."}, *entries("content", "role")]}],
        "a.jsonl",
    ),
    "an object of lists": ([{"turns": {"utterance": SAID, "speaker": WHO}}], "a.jsonl"),
    "another name of the speakers": ([{"dialogue": SAID, "speaker": WHO}], "a.jsonl"),
    "lines": ([{"dialogue": "\r\n".join(f"{who}: {said}" for who, said in zip(WHO, SAID, strict=True))}], "a.jsonl"),
    "texts with their speakers": (
        [{"dialogue": [f"{who}：{said}" for who, said in zip(WHO, SAID, strict=True)]}],
        "a.jsonl",
    ),
    "an object by id": ({"x": {"dialog": entries("text", "name")}, "y": {"dialog": entries("text", "name")}}, "a.json"),
    "a list under a key": ({"version": 2, "data": [{"messages": entries("content", "role")}]}, "a.json"),
    "a list in a cell": (f'no,dialogue,speakers\n1,"{SAID!r}","{WHO!r}"\n', "a.csv"),
    "objects in a cell": (
        'no,messages\n1,"' + json.dumps(entries("content", "role")).replace('"', '""') + '"\n',
        "a.csv",
    ),
    "one row an utterance": (
        "conv_id,turn_id,speaker,text\n" + "".join(f"c,{10 - at},{WHO[-at]},{SAID[-at]}\n" for at in range(1, 5)),
        "a.csv",
    ),
}


@pytest.mark.parametrize("case", RECOGNISED)
def test_a_common_shape_is_recognised(tmp_path: Path, case: str) -> None:
    value, name = RECOGNISED[case]
    found = read(tmp_path, value, name)[0]
    assert (list(found.texts), list(found.speakers)) == (SAID, WHO)


@pytest.mark.parametrize(
    ("row", "shape"),
    [
        ({"dialog": SAID, "act": [1, 2, 1, 2]}, "dailydialog"),
        ({"personality": ["x"], "utterances": [{"history": SAID[:2]}, {"history": SAID}]}, "personachat"),
        ({"dialogue": " __eou__ ".join(SAID) + " __eou__"}, None),
    ],
)
def test_without_speakers_two_take_turns(tmp_path: Path, row: dict[str, Any], shape: str | None) -> None:
    for named in (None, shape):
        (found,) = read(tmp_path, [row], shape=named)
        assert (list(found.texts), list(found.speakers)) == (SAID, ["A", "B", "A", "B"])


def test_of_a_pair_that_is_called_system_both_speak(tmp_path: Path) -> None:
    turns = [{"speaker": ["USER", "SYSTEM"][at % 2], "utterance": said} for at, said in enumerate(SAID)]
    (found,) = read(tmp_path, [{"turns": turns}])
    assert list(found.speakers) == ["USER", "SYSTEM", "USER", "SYSTEM"]


@pytest.mark.parametrize(
    ("value", "mapping"),
    [
        (
            [{"a": {"b": [{"c": {"said": said}, "who": who} for said, who in zip(SAID, WHO, strict=True)]}}],
            {"dialogue": "a.b[].c.said", "speakers": "a.b[].who"},
        ),
        ([{"a.b": SAID, "names": WHO}], {"dialogue": "a.b", "speakers": "names"}),
        (
            [{"chat": [f"{w} | {s}" for w, s in zip(WHO, SAID, strict=True)]}],
            {"dialogue": "chat", "speakers_before": "|"},
        ),
        (
            [{"parts": [{"lines": SAID[:1]}, {"lines": SAID[1:]}], "w": WHO}],
            {"dialogue": "parts[].lines[]", "speakers": "w"},
        ),
        ([{"m": {"1": {"t": SAID[0]}, "2": {"t": SAID[1]}}, "w": WHO[:2]}], {"dialogue": "m.*.t", "speakers": "w"}),
    ],
)
def test_a_mapping_says_where_things_are(tmp_path: Path, value: Values, mapping: dict[str, str]) -> None:
    (found,) = read(tmp_path, value, mapping=mapping)
    assert list(found.texts) == SAID[: len(found.texts)]
    assert list(found.speakers) == WHO[: len(found.texts)]


def test_rows_of_a_dialogue_are_put_in_their_order(tmp_path: Path) -> None:
    rows = [{"d": d, "n": n, "w": WHO[n % 4], "t": f"{d} says {n}."} for d in "xy" for n in (10, 9, 2, 11)]
    mapping = {"dialogue": "t", "speakers": "w", "group_by": "d", "order_by": "n"}
    found = read(tmp_path, rows, mapping=mapping)
    assert [list(each.texts) for each in found] == [[f"{d} says {n}." for n in (2, 9, 10, 11)] for d in "xy"]
    assert len(read(tmp_path, rows, mapping=mapping, limit=1)) == 1


def test_a_dialogue_that_goes_on_after_another_stops_the_source(tmp_path: Path) -> None:
    rows = [{"d": d, "w": "AB"[n % 2], "t": "Yes."} for n, d in enumerate("xxyyx")]
    with pytest.raises(SourceError, match=r"'x' at talks.jsonl:5, after others. Sort the file by 'd'"):
        read(tmp_path, rows, mapping={"dialogue": "t", "speakers": "w", "group_by": "d"})


def test_a_path_that_leads_nowhere_names_those_that_there_are(tmp_path: Path) -> None:
    rows = [{"talk": {"turns": [{"text": said, "who": who} for said, who in zip(SAID, WHO, strict=True)]}}]
    with pytest.raises(
        SourceError, match=r"lacks the column 'talk.turn\[\].text'; .*did you mean 'talk.turns\[\].text'"
    ):
        read(tmp_path, rows, mapping={"dialogue": "talk.turn[].text", "speakers": "talk.turns[].who"})
    with pytest.raises(SourceError, match=r"lacks the column 'talk.turns\[\].whom'"):
        read(tmp_path, rows, mapping={"dialogue": "talk.turns[].text", "speakers": "talk.turns[].whom"})


def test_an_unknown_shape_is_said_with_the_paths_of_its_rows(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"expected rows of a common shape .*found a.b, c. Say in `mapping`"):
        read(tmp_path, [{"a": {"b": 1}, "c": "x"}])
    with pytest.raises(SourceError, match="expected rows of the shape 'sharegpt'"):
        read(tmp_path, [{"messages": entries("content", "role")}], shape="sharegpt")


def test_an_utterance_without_a_speaker_in_front_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadRow, match="number 2 of 2: 'no name here'"):
        read(tmp_path, [{"x": ["A: yes", "no name here"]}], mapping={"dialogue": "x", "speakers_before": ":"})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"mapping": {"speakers": "who"}}, "must have 'dialogue'"),
        ({"mapping": {"dialogue": "x", "order_by": "n"}}, "expected `group_by` beside it"),
        ({"mapping": {"dialogue": "x"}, "shape": "turns"}, "both of them"),
        ({"mapping": {"dialogue": "x"}, "reader": "soda"}, "which knows its own"),
        ({"mapping": {"dialogue": "x[.y"}}, "is no path"),
        ({"mapping": {"dialogues": "x"}}, "Input should be"),
    ],
)
def test_settings_that_contradict_one_another_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        SceneSource(corpus="talks", path="x", **settings)


def test_every_shape_has_paths() -> None:
    assert all(is_path(path) for _, shape in SHAPES for part, path in shape.items() if part != "speakers_before")


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.from_regex(r"[a-z]{1,3}", fullmatch=True), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,3}", fullmatch=True), JSON, max_size=3))
def test_every_path_that_is_listed_can_be_followed(row: dict[str, Any]) -> None:
    for path in list_paths(row):
        assert is_path(path)
        assert has(row, path) or not isinstance(find(row, path), str | int)


@pytest.mark.parametrize("text", ["", "a..b", ".a", "a[", "a[x]", "a.", "a]b"])
def test_what_is_no_path_is_told_apart(text: str) -> None:
    assert not is_path(text)
