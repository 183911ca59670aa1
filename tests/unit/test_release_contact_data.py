"""Contact data in released texts is hidden, and nothing else is."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tasks.foundation.tables import TABLES
from tasks.foundation.texts.contact_data import hide
from tasks.release.contact_data import hide_in_rows
from tests.unit.evaluation_build import item


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Write to ann.lee+home@mail.example.org.", "email"),
        ("Ring (212) 555-0187 tonight", "phone"),
        ("电话13800138000，晚上打", "phone"),
        ("My office: +49 30 901820", "phone"),
        ("She lives at 1600 N. Willow Creek Road, Apt 4", "postal address"),
        ("他住建国路88号3号楼1202室", "postal address"),
        ("身份证号11010519491231002X", "identity number"),
        ("SSN 123-45-6789", "social security number"),
        ("card 4111 1111 1111 1111 please", "payment card"),
        ("log in at 192.168.10.7", "network address"),
    ],
)
def test_contact_data_goes(text: str, kind: str) -> None:
    hidden, counts = hide(text)
    assert counts == {kind: 1}
    assert f"[{kind}]" in hidden
    assert not any(part in hidden for part in ("555-0187", "1111", "Willow", "建国路88", "@", "6789", "002X"))


@pytest.mark.parametrize(
    "text",
    [
        "We met at 10:30 on 2024-11-05 in room 12, all 300 of us.",
        "Take road 5 for 20 km; it costs 1,234,567 yen or 3.50 a piece.",
        "On 12 May we drive; version 1.2.3 of the plan, score 7/10.",
        "我们三点见，大概走20分钟，房间在3楼，第88号桌。",
        "card 4111 1111 1111 1112 is none, and 11010519491231002A neither",
    ],
)
def test_numbers_that_are_nobodys_stay(text: str) -> None:
    assert hide(text) == (text, {})


def test_keys_and_ids_stay_and_json_is_still_json() -> None:
    kind = TABLES["awareness_items"]
    row = item("utterance", '{"content":"mail a@b.example"}', item_id="a@b.example", utterance_text="a@b.example or so")
    [found], counts = (lambda pair: (pair[0].to_pylist(), pair[1]))(hide_in_rows(kind, kind.arrow([row])))
    assert found["item_id"] == "a@b.example"
    assert found["gold"] == '{"content":"mail [email]"}'
    assert found["utterance_text"] == "[email] or so"
    assert counts == {"email": 2}


def test_rows_keep_their_schema() -> None:
    kind = TABLES["persona_candidates"]
    rows, counts = hide_in_rows(kind, kind.schema.empty_table())
    assert rows.schema == kind.schema and not counts
    assert isinstance(rows, pa.Table)
